/** The hosts that may receive a backend credential. The owner of the Secret lists the hosts in an annotation. Pure. */

/** Annotation of the Secret: hosts and origins, separated by commas. */
export const UPSTREAM_HOSTS_ANNOTATION = 'headgate.dev/upstream-hosts'
/** The operator reads this many entries and ignores the others. */
const MAX_ENTRIES = 64
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i
const ORIGIN = /^https?:\/\/[^/?#@]+\/?$/i
const IN_CLUSTER = /\.svc(\.cluster\.local)?$/
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/**
 * Parses the annotation. An entry is either `host[:port]`, which means https and within the cluster also http, or a full origin. Without a
 * port, the entry means the default port of the scheme. Entries of any other form are ignored.
 */
export function allowedOrigins(annotation: string | undefined): ReadonlySet<string> {
  const entries = (annotation ?? '').split(',', MAX_ENTRIES).map((entry) => entry.trim())
  return new Set(entries.flatMap(originsOf))
}

/**
 * Checks whether one backend may receive the credential.
 * @param url of the backend, which has passed `checkBackendUrl`
 * @param allowLoopback only in standalone: a credential sent to this machine stays on the machine
 * @returns undefined if the backend may receive the credential; otherwise the entry that the Secret's owner must add
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
