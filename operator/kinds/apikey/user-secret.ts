/** Composes the user's Secret, and observes a present one. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { namespaceOf, type OwnerReference, uidOf } from '#kube/port.ts'
import type { KeyringVerifier } from '#contract/records/keyring-entry.ts'
import { credentialForm, credentialPrefix, hashCredential, type KeyHash } from '#contract/values/credential.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { Secret } from '#kube/resources.ts'

/** Annotations that bind a Secret to one generation of a key. */
const KEY_ID_ANNOTATION = 'headgate.dev/key-id'
const GENERATION_ANNOTATION = 'headgate.dev/generation'
const TEMPLATE_ANNOTATION = 'headgate.dev/template'
const CREDENTIAL_ENTRY = 'SERVICE_API_KEY'
/** Data key of the same value, only if the spec asks for it. */
const ANTHROPIC_ENTRY = 'ANTHROPIC_API_KEY'

/** The Secret for `nextStep`, without the value. */
export type ObservedSecret =
  /** Not read yet: a revocation must not wait for a read. */
  | { readonly state: 'Unknown' }
  /** The read failed. A deletion continues without the Secret. */
  | { readonly state: 'Unreadable' }
  | { readonly state: 'Absent' }
  /** Of another owner. The operator never changes this Secret. `apiKey`: the name of the ApiKey that owns it, if one does. */
  | { readonly state: 'Foreign'; readonly apiKey?: string }
  /** Of a deleted ApiKey with the same name. Garbage collection is about to remove this Secret. */
  | { readonly state: 'LeftOver' }
  | {
      readonly state: 'Ours'
      readonly uid: string
      /** SHA-256 of the value; undefined if the operator did not mint the value. */
      readonly hash: KeyHash | undefined
      readonly keyID: string
      /** Public id within the value; '' if the operator did not mint the value. */
      readonly valueID: string
      readonly generation: number
      readonly prefix: string
      /** Whether entries, labels and annotations are as wanted. */
      readonly current: boolean
    }

export function secretName(apiKey: ApiKey): string {
  return apiKey.spec.secret?.name ?? apiKey.metadata.name
}

/** The entries, with which `envFrom` alone configures an SDK: each SDK appends its own path. @param publicURL without `/v1` */
function secretEntries(apiKey: ApiKey, credential: string, publicURL: string): Record<string, string> {
  return {
    ...Object.fromEntries(optionalEntries(apiKey).map((name) => [name, credential])),
    SERVICE_API_KEY: credential,
    SERVICE_BASE_URL: `${publicURL}/v1`,
    OPENAI_API_KEY: credential,
    OPENAI_BASE_URL: `${publicURL}/v1`,
    ANTHROPIC_AUTH_TOKEN: credential,
    ANTHROPIC_BASE_URL: publicURL,
  }
}

/** The Secret of a trial write, with everything but a key. The write shows whether quota, policies and rights admit the real Secret. */
export function trialSecret(apiKey: ApiKey, publicURL: string): Secret {
  return userSecret(apiKey, 'trial', publicURL, { id: 'trial', number: 0 })
}

export function userSecret(apiKey: ApiKey, value: string, publicURL: string, verifier: Pick<KeyringVerifier, 'id' | 'number'>): Secret {
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
    data: encoded(secretEntries(apiKey, value, publicURL)),
  }
}

export function observeSecret(apiKey: ApiKey, secret: Secret | undefined, publicURL: string): ObservedSecret {
  if (!secret) return { state: 'Absent' }
  const owner = secret.metadata.ownerReferences?.find(({ controller }) => controller === true) // an object has at most one
  if (owner === undefined || owner.uid !== apiKey.metadata.uid) return notOurs(apiKey, owner)
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

/** Hash, id and prefix of a value that the operator minted; nothing of any other value. */
function materialIn(value: string): { readonly hash: KeyHash | undefined; readonly valueID: string; readonly prefix: string } {
  const form = credentialForm(value)
  if (form.form !== 'own') return { hash: undefined, valueID: '', prefix: '' }
  return { hash: hashCredential(value), valueID: form.id, prefix: credentialPrefix(value) }
}

/** @returns 0 if a user removed or edited the annotation, because a keyring entry needs a number */
function generationIn(annotation = ''): number {
  return /^[0-9]{1,9}$/.test(annotation) ? Number(annotation) : 0
}

function notOurs({ kind, metadata }: ApiKey, owner: OwnerReference | undefined): ObservedSecret {
  if (owner?.kind !== kind) return { state: 'Foreign' }
  return owner.name === metadata.name ? { state: 'LeftOver' } : { state: 'Foreign', apiKey: owner.name }
}

function credentialIn(secret: Secret): string {
  return Buffer.from(secret.data?.[CREDENTIAL_ENTRY] ?? '', 'base64').toString('utf8')
}

/** Updates all but the value and foreign keys. @returns undefined if nothing must change */
export function refreshedSecret(apiKey: ApiKey, secret: Secret, publicURL: string): Pick<Secret, 'data' | 'metadata'> | undefined {
  const former = templateOf(secret)
  const data = merged(secret.data, former.entries, encoded(secretEntries(apiKey, credentialIn(secret), publicURL)))
  const labels = merged(secret.metadata.labels, former.labels, wantedLabels(apiKey))
  const annotations = merged(secret.metadata.annotations, former.annotations, wantedAnnotations(apiKey))
  const isCurrent = isDeepStrictEqual(
    [secret.data ?? {}, secret.metadata.labels ?? {}, secret.metadata.annotations ?? {}],
    [data, labels, annotations],
  )
  return isCurrent ? undefined : { data, metadata: { ...secret.metadata, labels, annotations } }
}

/** Merges the wanted keys into the present keys, without keys of the former template. */
function merged(
  present: Readonly<Record<string, string>> = {},
  former: readonly string[],
  wanted: Readonly<Record<string, string>>,
): Record<string, string> {
  const kept = Object.entries(present).filter(([key]) => !former.includes(key))
  return { ...Object.fromEntries(kept), ...wanted }
}

function wantedLabels(apiKey: ApiKey): Record<string, string> {
  return { ...apiKey.spec.secret?.template?.labels, 'app.kubernetes.io/managed-by': 'headgate-operator' }
}

function optionalEntries(apiKey: ApiKey): readonly string[] {
  return apiKey.spec.secret?.anthropicApiKey === 'Include' ? [ANTHROPIC_ENTRY] : []
}

/** The annotations. One lists the keys of the template and the optional entries, so that the operator can later remove dropped keys. */
function wantedAnnotations(apiKey: ApiKey): Record<string, string> {
  const { labels = {}, annotations = {} } = apiKey.spec.secret?.template ?? {}
  const entries = optionalEntries(apiKey)
  const keys = { labels: Object.keys(labels).toSorted(), annotations: Object.keys(annotations).toSorted() }
  const isEmpty = keys.labels.length + keys.annotations.length + entries.length === 0
  const asked = entries.length === 0 ? keys : { ...keys, entries }
  return { ...annotations, ...(isEmpty ? {} : { [TEMPLATE_ANNOTATION]: JSON.stringify(asked) }) }
}

const templateKeys = z.object({
  labels: z.array(z.string()),
  annotations: z.array(z.string()),
  entries: z.array(z.string()).default([]),
})

/** The keys that the spec asked for at the last write of the Secret; none if a user has edited the annotation. */
function templateOf({ metadata }: Secret): z.infer<typeof templateKeys> {
  const nothing = { labels: [], annotations: [], entries: [] }
  const text = metadata.annotations?.[TEMPLATE_ANNOTATION]
  if (text === undefined) return nothing
  try {
    const { labels, annotations, entries } = templateKeys.parse(JSON.parse(text))
    const optional = entries.filter((name) => name === ANTHROPIC_ENTRY) // a user may have written any name into the annotation
    return { labels, annotations: [...annotations, TEMPLATE_ANNOTATION], entries: optional }
  } catch {
    return nothing // the keys of the former template stay on the Secret
  }
}

function encoded(entries: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, Buffer.from(value).toString('base64')]))
}
