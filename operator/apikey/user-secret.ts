/** The user's Secret: what it holds, and what one that exists tells. Pure. */
import { z } from 'zod'
import { namespaceOf, uidOf } from '../kube/port.ts'
import { type Credential, credentialForm, credentialPrefix, hashCredential, type KeyHash } from '../../gateway/shared/credential.ts'
import type { ApiKey } from '../api/apikey.ts'
import type { Secret } from '../kube/resources.ts'

/** Annotations that tie a Secret to one generation of a key. */
export const KEY_ID_ANNOTATION = 'headgate.dev/key-id'
export const GENERATION_ANNOTATION = 'headgate.dev/generation'
const TEMPLATE_ANNOTATION = 'headgate.dev/template'
/** Data key of the Credential itself. */
export const CREDENTIAL_ENTRY = 'SERVICE_API_KEY'

/** What `nextStep` may know of the Secret: never the value. */
export type ObservedSecret =
  /** Not read: a revocation must not wait for a read. */
  | { readonly state: 'Unknown' }
  /** The read failed; a deletion goes on without it. */
  | { readonly state: 'Unreadable' }
  | { readonly state: 'Absent' }
  /** Not ours: never touched. */
  | { readonly state: 'Foreign' }
  /** Of a deleted ApiKey with the same name: garbage collection is about to remove it. */
  | { readonly state: 'LeftOver' }
  | {
      readonly state: 'Ours'
      readonly uid: string
      /** SHA-256 of the value; undefined when it is no Credential of ours. */
      readonly hash: KeyHash | undefined
      readonly keyID: string
      /** Public id within the value; '' when it is no Credential of ours. */
      readonly valueID: string
      readonly generation: number
      readonly prefix: string
      /** Entries, labels and annotations are as they should be. */
      readonly current: boolean
    }

/** Name of the Secret of an ApiKey. */
export function secretName(apiKey: ApiKey): string {
  return apiKey.spec.secret?.name ?? apiKey.metadata.name
}

/**
 * The entries, so that `envFrom` alone configures an SDK. Every client appends its own path: OpenAI's want the `/v1`, Anthropic's do not.
 * @param publicURL without `/v1` and without a slash at the end
 */
export function secretEntries(credential: string, publicURL: string): Record<string, string> {
  return {
    SERVICE_API_KEY: credential,
    SERVICE_BASE_URL: `${publicURL}/v1`,
    OPENAI_API_KEY: credential,
    OPENAI_BASE_URL: `${publicURL}/v1`,
    ANTHROPIC_AUTH_TOKEN: credential,
    ANTHROPIC_BASE_URL: publicURL,
  }
}

/** A Secret that has everything but a key: a trial write shows whether quota, policies and rights admit the real one. */
export function trialSecret(apiKey: ApiKey, publicURL: string): Secret {
  return secretAround(apiKey, 'trial', publicURL, { id: 'trial', number: 0 })
}

/** The whole Secret of one generation. */
export function userSecret(apiKey: ApiKey, credential: Credential, publicURL: string, verifier: { id: string; number: number }): Secret {
  return secretAround(apiKey, credential, publicURL, verifier)
}

function secretAround(apiKey: ApiKey, value: string, publicURL: string, verifier: { id: string; number: number }): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: secretName(apiKey),
      namespace: namespaceOf(apiKey),
      labels: wantedLabels(apiKey),
      annotations: { ...wantedAnnotations(apiKey), [KEY_ID_ANNOTATION]: verifier.id, [GENERATION_ANNOTATION]: String(verifier.number) },
      ownerReferences: [
        {
          apiVersion: apiKey.apiVersion,
          kind: apiKey.kind,
          name: apiKey.metadata.name,
          uid: uidOf(apiKey),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    type: 'Opaque',
    data: encoded(secretEntries(value, publicURL)),
  }
}

/** @returns what a Secret tells; undefined stands for no Secret of that name */
export function observeSecret(apiKey: ApiKey, secret: Secret | undefined, publicURL: string): ObservedSecret {
  if (!secret) return { state: 'Absent' }
  if (!isControlledBy(apiKey, secret)) return { state: isLeftOver(apiKey, secret) ? 'LeftOver' : 'Foreign' }
  const annotations = secret.metadata.annotations ?? {}
  const material = materialIn(credentialIn(secret))
  return {
    state: 'Ours',
    uid: uidOf(secret),
    keyID: annotations[KEY_ID_ANNOTATION] ?? '',
    generation: generationIn(annotations[GENERATION_ANNOTATION]),
    current: material.hash === undefined || refreshedSecret(apiKey, secret, publicURL) === undefined,
    ...material,
  }
}

/** What may be known of a value that is a Credential of ours; of any other value nothing. */
function materialIn(value: string): { readonly hash: KeyHash | undefined; readonly valueID: string; readonly prefix: string } {
  const form = credentialForm(value)
  if (form.form !== 'own') return { hash: undefined, valueID: '', prefix: '' }
  return { hash: hashCredential(value), valueID: form.id, prefix: credentialPrefix(value) }
}

/** @returns 0 for an annotation that a user removed or edited: an entry could not hold anything but a number */
function generationIn(annotation = ''): number {
  return /^[0-9]{1,9}$/.test(annotation) ? Number(annotation) : 0
}

function isControlledBy(apiKey: ApiKey, { metadata }: Secret): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === apiKey.metadata.uid && owner.controller === true) === true
}

function isLeftOver(apiKey: ApiKey, { metadata }: Secret): boolean {
  return (
    metadata.ownerReferences?.some(
      ({ kind, name, controller }) => kind === apiKey.kind && name === apiKey.metadata.name && controller === true,
    ) === true
  )
}

function credentialIn(secret: Secret): string {
  return Buffer.from(secret.data?.[CREDENTIAL_ENTRY] ?? '', 'base64').toString('utf8')
}

/**
 * What must change so that entries, labels and annotations are as wanted; the value and everything foreign stay.
 * @returns undefined when nothing must
 */
export function refreshedSecret(
  apiKey: ApiKey,
  secret: Secret,
  publicURL: string,
): (Pick<Secret, 'data'> & Pick<Secret, 'metadata'>) | undefined {
  const entries = encoded(secretEntries(credentialIn(secret), publicURL))
  const former = templateOf(secret)
  const labels = merged(secret.metadata.labels, former.labels, wantedLabels(apiKey))
  const annotations = merged(secret.metadata.annotations, former.annotations, wantedAnnotations(apiKey))
  const isCurrent =
    contains(secret.data, entries) && isSame(secret.metadata.labels, labels) && isSame(secret.metadata.annotations, annotations)
  if (isCurrent) return undefined
  return { data: { ...secret.data, ...entries }, metadata: { ...secret.metadata, labels, annotations } }
}

/** Present keys without those that only the former template asked for, and the wanted ones. */
function merged(
  present: Readonly<Record<string, string>> = {},
  former: readonly string[],
  wanted: Readonly<Record<string, string>>,
): Record<string, string> {
  const kept = Object.entries(present).filter(([key]) => !former.includes(key))
  return { ...Object.fromEntries(kept), ...wanted }
}

function isSame(have: Readonly<Record<string, string>> = {}, want: Readonly<Record<string, string>>): boolean {
  return Object.keys(have).length === Object.keys(want).length && contains(have, want)
}

function wantedLabels(apiKey: ApiKey): Record<string, string> {
  return { ...apiKey.spec.secret?.template?.labels, 'app.kubernetes.io/managed-by': 'headgate-operator' }
}

/** With the keys of the template, so that one that is taken out of it is taken off the Secret too. */
function wantedAnnotations(apiKey: ApiKey): Record<string, string> {
  const { labels = {}, annotations = {} } = apiKey.spec.secret?.template ?? {}
  const keys = { labels: Object.keys(labels).toSorted(), annotations: Object.keys(annotations).toSorted() }
  const isEmpty = keys.labels.length + keys.annotations.length === 0
  return { ...annotations, ...(isEmpty ? {} : { [TEMPLATE_ANNOTATION]: JSON.stringify(keys) }) }
}

const templateKeys = z.object({ labels: z.array(z.string()), annotations: z.array(z.string()) })

/** Keys that the template asked for when the Secret was written last; none where a user has edited the annotation. */
function templateOf({ metadata }: Secret): z.infer<typeof templateKeys> {
  const nothing = { labels: [], annotations: [] }
  const text = metadata.annotations?.[TEMPLATE_ANNOTATION]
  if (text === undefined) return nothing
  try {
    const { labels, annotations } = templateKeys.parse(JSON.parse(text))
    return { labels, annotations: [...annotations, TEMPLATE_ANNOTATION] }
  } catch {
    return nothing // what the template had asked for stays on the Secret
  }
}

function encoded(entries: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, Buffer.from(value).toString('base64')]))
}

function contains(have: Readonly<Record<string, string>> | undefined, want: Readonly<Record<string, string>>): boolean {
  return Object.entries(want).every(([name, value]) => have?.[name] === value)
}
