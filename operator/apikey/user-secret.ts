/** The user's Secret: what it holds, and how one that is there is judged. Pure. */
import { namespaceOf, uidOf } from '../kube/port.ts'
import { type Credential, credentialForm, credentialPrefix, hashCredential, type KeyHash } from '../../gateway/shared/credential.ts'
import type { ApiKey } from '../api/apikey.ts'
import type { Secret } from '../kube/resources.ts'

/** Annotations that tie a Secret to one generation of a key. */
export const KEY_ID_ANNOTATION = 'headgate.dev/key-id'
export const GENERATION_ANNOTATION = 'headgate.dev/generation'
/** Data key of the Credential itself. */
export const CREDENTIAL_ENTRY = 'SERVICE_API_KEY'

/** What decide may know of the Secret: never the value. */
export type ObservedSecret =
  /** Not looked at: a revocation must not wait for a read. */
  | { readonly state: 'Unknown' }
  | { readonly state: 'Absent' }
  /** Somebody else's: never touched. */
  | { readonly state: 'Foreign' }
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

/** The whole Secret of one generation. */
export function userSecret(apiKey: ApiKey, credential: Credential, publicURL: string, verifier: { id: string; n: number }): Secret {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: secretName(apiKey),
      namespace: namespaceOf(apiKey),
      labels: wantedLabels(apiKey),
      annotations: { ...wantedAnnotations(apiKey), [KEY_ID_ANNOTATION]: verifier.id, [GENERATION_ANNOTATION]: String(verifier.n) },
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
    data: encoded(secretEntries(credential, publicURL)),
  }
}

/** Judges a Secret that is there. */
export function observeSecret(apiKey: ApiKey, secret: Secret | undefined, publicURL: string): ObservedSecret {
  if (!secret) return { state: 'Absent' }
  if (!isControlledBy(apiKey, secret)) return { state: 'Foreign' }
  const value = credentialIn(secret)
  const form = credentialForm(value)
  const usable = form.form === 'own'
  const annotations = secret.metadata.annotations ?? {}
  return {
    state: 'Ours',
    uid: uidOf(secret),
    hash: usable ? hashCredential(value) : undefined,
    keyID: annotations[KEY_ID_ANNOTATION] ?? '',
    valueID: usable ? form.id : '',
    generation: Number(annotations[GENERATION_ANNOTATION] ?? 0),
    prefix: usable ? credentialPrefix(value) : '',
    current: !usable || refreshedSecret(apiKey, secret, publicURL) === undefined,
  }
}

function isControlledBy(apiKey: ApiKey, { metadata }: Secret): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === apiKey.metadata.uid && owner.controller === true) === true
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
  const labels = wantedLabels(apiKey)
  const annotations = wantedAnnotations(apiKey)
  if (contains(secret.data, entries) && contains(secret.metadata.labels, labels) && contains(secret.metadata.annotations, annotations))
    return undefined
  return {
    data: { ...secret.data, ...entries },
    metadata: {
      ...secret.metadata,
      labels: { ...secret.metadata.labels, ...labels },
      annotations: { ...secret.metadata.annotations, ...annotations },
    },
  }
}

function wantedLabels(apiKey: ApiKey): Record<string, string> {
  return { ...apiKey.spec.secret?.template?.labels, 'app.kubernetes.io/managed-by': 'headgate-operator' }
}

function wantedAnnotations(apiKey: ApiKey): Record<string, string> {
  return { ...apiKey.spec.secret?.template?.annotations }
}

function encoded(entries: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, Buffer.from(value).toString('base64')]))
}

function contains(have: Readonly<Record<string, string>> | undefined, want: Readonly<Record<string, string>>): boolean {
  return Object.entries(want).every(([name, value]) => have?.[name] === value)
}
