/** Where a backend credential may be sent: the owner of its Secret lists the hosts in an annotation. Pure. */

/** Annotation of the Secret: hosts and origins, separated by commas. */
export const UPSTREAM_HOSTS_ANNOTATION = 'headgate.dev/upstream-hosts'
/** Entries that are read; more are ignored. */
const MAX_ENTRIES = 64
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i
const ORIGIN = /^https?:\/\/[^/?#@]+\/?$/i
const IN_CLUSTER = /\.svc(\.cluster\.local)?$/
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/**
 * Reads the annotation. An entry is `host[:port]`, which means https and within the cluster http too, or a full origin. Without a port the
 * default port of the scheme is meant. What is neither is ignored.
 */
export function allowedOrigins(annotation: string | undefined): ReadonlySet<string> {
  const entries = (annotation ?? '').split(',', MAX_ENTRIES).map((entry) => entry.trim())
  return new Set(entries.flatMap(originsOf))
}

/**
 * Checks one backend.
 * @param url of the backend; it has passed the check of backend addresses
 * @param allowLoopback standalone only: what is sent to this machine itself stays there
 * @returns undefined when the credential may be sent; else the entry that the Secret's owner would have to add
 */
export function missingHostEntry(url: string, origins: ReadonlySet<string>, allowLoopback: boolean): string | undefined {
  const { origin, protocol, hostname, host } = new URL(url)
  if (origins.has(origin) || (allowLoopback && LOOPBACK.test(hostname))) return undefined
  return protocol === 'https:' || isInCluster(hostname) ? host : origin
}

function originsOf(entry: string): string[] {
  if (ORIGIN.test(entry)) return originOf(entry)
  if (!HOST.test(entry)) return []
  const https = originOf(`https://${entry}`)
  const name = entry.replace(/:\d+$/, '').toLowerCase()
  return isInCluster(name) ? [...https, ...originOf(`http://${entry}`)] : https
}

function originOf(text: string): string[] {
  return URL.canParse(text) ? [new URL(text).origin] : []
}

function isInCluster(hostname: string): boolean {
  return IN_CLUSTER.test(hostname)
}
