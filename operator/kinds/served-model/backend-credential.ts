/** Reads the credential that gateways send to a backend, and the hosts that may receive it, from its Secret. Pure. */
import { hash } from 'node:crypto'
import type { Secret } from '#kube/resources.ts'

/** Gateways send only Secrets with this label (value "true") to backends. Otherwise the author of a model could send any Secret anywhere. */
const UPSTREAM_AUTH_LABEL = 'headgate.dev/upstream-auth'
/** Annotation of the Secret: hosts and origins, separated by commas. */
export const UPSTREAM_HOSTS_ANNOTATION = 'headgate.dev/upstream-hosts'
/** The operator reads this many entries and ignores the others. */
const MAX_ENTRIES = 64
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/i
const ORIGIN = /^https?:\/\/[^/?#@]+\/?$/i
const IN_CLUSTER = /\.svc(\.cluster\.local)?$/
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/
/** Values that fit into an HTTP header: printable ASCII without blanks. */
const CREDENTIAL = /^[\x21-\x7e]{1,2048}$/

export interface CredentialRef {
  readonly namespace: string
  readonly name: string
  readonly key: string
}

export type CredentialRead =
  | { readonly state: 'Found'; readonly value: string; readonly sum: string; readonly origins: ReadonlySet<string> }
  | { readonly state: 'NotFound'; readonly problem: string }
  | { readonly state: 'Unreadable'; readonly problem: string }

/** @param ref authSecretRef of a backend */
export function credentialRef(namespace: string, { name, key }: Omit<CredentialRef, 'namespace'>): CredentialRef {
  return { namespace, name, key }
}

/** Identity of a CredentialRef. None of its parts contains a slash. */
export function credentialKey({ namespace, name, key }: CredentialRef): string {
  return `${namespace}/${name}/${key}`
}

export function readCredential({ name, key }: CredentialRef, secret: Secret | undefined): CredentialRead {
  if (!secret) return notFound(`Secret ${name} does not exist in this namespace`)
  if (secret.metadata.labels?.[UPSTREAM_AUTH_LABEL] !== 'true')
    return notFound(`Secret ${name} lacks the label ${UPSTREAM_AUTH_LABEL}: "true", which its owner must set`)
  const encoded = secret.data?.[key]
  if (encoded === undefined) return notFound(`Secret ${name} has no data key "${key}"`)
  const value = Buffer.from(encoded, 'base64').toString('utf8').trim()
  if (!CREDENTIAL.test(value))
    return notFound(`data key "${key}" of Secret ${name} is not one line of printable ASCII of at most 2048 characters`)
  const origins = allowedOrigins(secret.metadata.annotations?.[UPSTREAM_HOSTS_ANNOTATION])
  return { state: 'Found', value, sum: hash('sha256', value, 'hex'), origins }
}

function notFound(problem: string): CredentialRead {
  return { state: 'NotFound', problem }
}

/**
 * Parses the annotation. An entry is either `host[:port]`, which means https and within the cluster also http, or a full origin. Without a
 * port, the entry means the default port of the scheme. Entries of any other form are ignored.
 */
export function allowedOrigins(annotation: string | undefined): ReadonlySet<string> {
  const entries = (annotation ?? '').split(',', MAX_ENTRIES).map((entry) => entry.trim())
  return new Set(entries.flatMap(originsOf))
}

/** @param url of a backend that has passed `checkBackendUrl` @returns the entry that the Secret's owner must add; undefined if none */
export function missingHostEntry(url: string, origins: ReadonlySet<string>, allowLoopback: boolean): string | undefined {
  const { origin, protocol, hostname, host } = new URL(url)
  if (origins.has(origin) || (allowLoopback && LOOPBACK.test(hostname))) return undefined
  return protocol === 'https:' || IN_CLUSTER.test(hostname) ? host : origin
}

function originsOf(entry: string): string[] {
  if (ORIGIN.test(entry)) return originOf(entry)
  if (!HOST.test(entry)) return []
  const https = originOf(`https://${entry}`)
  const name = entry.replace(/:\d+$/, '').toLowerCase()
  return IN_CLUSTER.test(name) ? [...https, ...originOf(`http://${entry}`)] : https
}

function originOf(text: string): string[] {
  return URL.canParse(text) ? [new URL(text).origin] : []
}
