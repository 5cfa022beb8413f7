/**
 * Restores keyring entries that were lost: from the record that the gateways still use, else from the user's Secret. Only for an ApiKey
 * that exists, and whose status or Secret names the very same key. Runs before anything is projected, so that no good key is refused.
 */
import { decodeKeyRecord, type KeyRecord } from '../../gateway/shared/key-record.ts'
import type { KeyringVerifier } from '../../gateway/shared/keyring-entry.ts'
import { type ApiKey, FINALIZER } from '../api/apikey.ts'
import { namespaceOf, uidOf } from '../kube/port.ts'
import { secrets } from '../kube/resources.ts'
import { inParallel } from '../loop/in-parallel.ts'
import type { ProjectionStore } from '../projection/store.ts'
import type { ApiKeyDeps } from './deps.ts'
import { isHashKey, restoredHashes } from './hash-source.ts'
import { entryOf } from './keyring-entry.ts'
import { type ObservedSecret, observeSecret, secretName } from './user-secret.ts'

/** Secrets read at once. */
const READS = 32
/** Secrets are read for this long at most, ms; what is left is recovered by the reconcile of each key. */
const READ_FOR_MS = 10_000

/** What became of the entries that were missing. */
export interface Recovery {
  readonly restored: number
  /** uids of keys that nobody could restore yet; their records in Redis must stay. */
  readonly open: ReadonlySet<string>
}

type RecoverDeps = Pick<ApiKeyDeps, 'keyring' | 'kube' | 'apiKeys' | 'recordEvent' | 'clock' | 'version' | 'publicURL'>

/**
 * Restores every entry that an ApiKey should have and has not.
 * @param store read only; what it cannot say now is looked for in the Secrets
 */
export async function recoverEntries(deps: RecoverDeps, store: ProjectionStore): Promise<Recovery> {
  const lost = [...deps.apiKeys.list()].filter((apiKey) => mayBeLost(apiKey, deps))
  if (lost.length === 0) return { restored: 0, open: new Set() }
  const records = await recordsOf(lost, store)
  const candidates = lost.filter((apiKey) => apiKey.status?.keyID !== undefined || records.has(uidOf(apiKey)))
  const byStatus = candidates.filter((apiKey) => {
    const record = records.get(uidOf(apiKey))
    return restore(apiKey, verifiersByStatus(apiKey, record, deps.clock.now()), record === undefined ? 'its manifest' : 'Redis', deps)
  })
  const restored = new Set(byStatus)
  const others = candidates.filter((apiKey) => !restored.has(apiKey) && !isHashKey(apiKey))
  const untilMs = deps.clock.monotonic() + READ_FOR_MS
  const open = new Set<string>()
  const bySecret = await inParallel(others, READS, async (apiKey) => {
    const secret = deps.clock.monotonic() < untilMs ? await read(apiKey, deps) : undefined
    if (secret === undefined) open.add(uidOf(apiKey))
    const found = secret && verifierBySecret(apiKey, secret, records.get(uidOf(apiKey)))
    return found !== undefined && restore(apiKey, [issuedVerifier(apiKey, found, deps.clock.now())], 'its Secret', deps)
  })
  return { restored: byStatus.length + bySecret.filter(Boolean).length, open }
}

/**
 * Keys in Redis of which neither the keyring nor the cache knows: left over from a deletion, or good keys whose entries were lost while
 * the watch of this process was cut off. Only the API server itself can tell.
 */
export async function unknownRecords(
  { keyring, apiKeys }: Pick<RecoverDeps, 'keyring' | 'apiKeys'>,
  store: ProjectionStore,
): Promise<readonly Pick<KeyRecord, 'uid' | 'namespace'>[]> {
  const known = new Set([...apiKeys.list()].map(uidOf))
  const isUnknown = (uid: string): boolean => !known.has(uid) && keyring.get(uid) === undefined && keyring.pending(uid) === undefined
  try {
    const meta = await store.meta()
    const ids = meta ? (await store.ids(meta.epoch, 'key')).filter(isUnknown) : []
    const texts = meta && ids.length > 0 ? await store.records(meta.epoch, 'key', ids) : new Map<string, string>()
    return [...texts.values()].flatMap((text) => readRecord(text) ?? [])
  } catch {
    return [] // Redis does not answer: the projection reports it
  }
}

function mayBeLost({ metadata }: ApiKey, { keyring }: RecoverDeps): boolean {
  const uid = metadata.uid ?? ''
  const isHeld = metadata.finalizers?.includes(FINALIZER) === true && metadata.deletionTimestamp === undefined
  return isHeld && keyring.get(uid) === undefined && keyring.pending(uid) === undefined && !keyring.isUnreadable(uid)
}

async function recordsOf(keys: readonly ApiKey[], store: ProjectionStore): Promise<ReadonlyMap<string, KeyRecord>> {
  const found = new Map<string, KeyRecord>()
  try {
    const meta = await store.meta()
    const texts = meta ? await store.records(meta.epoch, 'key', keys.map(uidOf)) : new Map<string, string>()
    for (const [uid, text] of texts) {
      const record = readRecord(text)
      if (record) found.set(uid, record)
    }
  } catch {
    return found // Redis does not answer: the projection reports it, and the Secrets still know the keys
  }
  return found
}

function readRecord(text: string): KeyRecord | undefined {
  try {
    return decodeKeyRecord(text)
  } catch {
    return undefined // of another version, or damaged: nothing to restore from
  }
}

type Found = Pick<KeyringVerifier, 'id' | 'hash' | 'expiresMs'>

/** The manifest of a key with source.type Hash restores the entry without Redis too. */
function verifiersByStatus(apiKey: ApiKey, record: KeyRecord | undefined, now: number): readonly KeyringVerifier[] {
  if (isHashKey(apiKey)) return restoredHashes(apiKey, record)
  const found = record?.verifiers.find(({ id }) => id === apiKey.status?.keyID)
  return found === undefined ? [] : [issuedVerifier(apiKey, found, now)]
}

function issuedVerifier({ status }: ApiKey, found: Found, now: number): KeyringVerifier {
  const createdMs = Date.parse(status?.verifiers?.[0]?.createTime ?? '') || now
  return { ...found, number: 1, state: 'Issued', createdMs, prefix: status?.prefix ?? '' }
}

/** A crash between delivery and status leaves the Secret and the record as the only witnesses. */
function verifierBySecret({ status }: ApiKey, secret: ObservedSecret, record: KeyRecord | undefined): Found | undefined {
  if (secret.state !== 'Ours' || secret.hash === undefined || secret.keyID !== secret.valueID) return undefined
  if (status?.keyID === secret.keyID) return { id: secret.keyID, hash: secret.hash, expiresMs: null }
  return status?.keyID === undefined ? record?.verifiers.find(({ hash }) => hash === secret.hash) : undefined
}

/** @returns undefined when the Secret cannot be read now */
async function read(apiKey: ApiKey, { kube, publicURL }: RecoverDeps): Promise<ObservedSecret | undefined> {
  try {
    const secret = await kube.get(secrets, { namespace: namespaceOf(apiKey), name: secretName(apiKey) })
    return observeSecret(apiKey, secret, publicURL)
  } catch {
    return undefined // the reconcile of this key reads again and reports why it cannot
  }
}

function restore(
  apiKey: ApiKey,
  verifiers: readonly KeyringVerifier[],
  from: string,
  { keyring, recordEvent, version }: RecoverDeps,
): boolean {
  if (verifiers.length === 0) return false
  keyring.commit(entryOf(apiKey, { verifiers, revision: keyring.revision, version: version() }), 'change', { isRestored: true })
  recordEvent(apiKey, 'KeyringRestored', `The keyring had lost the key; it was restored from ${from}. The key works on.`)
  return true
}
