/** Reads the credential that gateways send to a backend from its Secret. Pure. */
import { hash } from 'node:crypto'
import type { Secret } from '#kube/resources.ts'
import { allowedOrigins, UPSTREAM_HOSTS_ANNOTATION } from './credential-hosts.ts'

/** Gateways send only Secrets with this label (value "true") to backends. Otherwise the author of a model could send any Secret anywhere. */
export const UPSTREAM_AUTH_LABEL = 'headgate.dev/upstream-auth'
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
