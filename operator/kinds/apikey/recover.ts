/**
 * Restores lost keyring entries from the record that the gateways still use, or else from the user's Secret. The ApiKey must exist, and its
 * status or Secret must name the same key. The recovery runs before the first projection, so that no valid key is refused.
 */
import { decodeKeyRecord, type KeyRecord } from '#contract/records/key-record.ts'
import type { KeyringVerifier } from '#contract/records/keyring-entry.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { namespaceOf, uidOf } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { inParallel } from '../../loop/in-parallel.ts'
import type { ProjectionStore } from '../../projection/store.ts'
import type { ApiKeyDeps } from './deps.ts'
import { isHashKey, restoredHashes } from './hash-source.ts'
import { entryOf } from './keyring-entry.ts'
import { type ObservedSecret, observeSecret, secretName } from './user-secret.ts'

/** Most concurrent reads of Secrets. */
const READS = 32
/** Longest time for reads of Secrets, ms. The reconcile of each remaining key recovers its entry. */
const READ_FOR_MS = 10_000

export interface Recovery {
  readonly restored: number
  /** uids of keys that are not restored yet. Their records in Redis must stay. */
  readonly open: ReadonlySet<string>
}

interface RecoverDeps extends Pick<ApiKeyDeps, 'keyring' | 'kube' | 'recordEvent' | 'clock' | 'version'> {
  readonly settings: Pick<ApiKeyDeps['settings'], 'publicURL'>
}

/**
 * Restores the missing entries of some ApiKeys.
 * @param store only read. If Redis does not answer, the Secrets are read instead
 */
export async function recoverEntries(apiKeys: Iterable<ApiKey>, deps: RecoverDeps, store: ProjectionStore): Promise<Recovery> {
  const lost = [...apiKeys].filter((apiKey) => mayBeLost(apiKey, deps))
  if (lost.length === 0) return { restored: 0, open: new Set() }
  const records = await recordsOf(store, () => Promise.resolve(lost.map(uidOf)))
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
 * Lists records in Redis whose keys are neither in the keyring nor in the cache: left over from a deletion, or valid keys whose entries were
 * lost while the watch of this process was cut off. Only a live read can decide.
 */
export async function unknownRecords(
  { keyring, apiKeys }: Pick<ApiKeyDeps, 'keyring' | 'apiKeys'>,
  store: ProjectionStore,
): Promise<readonly Pick<KeyRecord, 'uid' | 'namespace'>[]> {
  const known = new Set([...apiKeys.list()].map(uidOf))
  const isUnknown = (uid: string): boolean => !known.has(uid) && keyring.get(uid) === undefined && keyring.pending(uid) === undefined
  const records = await recordsOf(store, async (epoch) => (await store.ids(epoch, 'key')).filter(isUnknown))
  return [...records.values()]
}

function mayBeLost({ metadata }: ApiKey, { keyring }: RecoverDeps): boolean {
  const uid = metadata.uid ?? ''
  const isHeld = metadata.finalizers?.includes(FINALIZER) === true && metadata.deletionTimestamp === undefined
  return isHeld && keyring.get(uid) === undefined && keyring.pending(uid) === undefined && !keyring.isUnreadable(uid)
}

/** Readable records of some keys, by uid; none if Redis does not answer: the projection reports the outage, and the Secrets have the keys. */
async function recordsOf(
  store: ProjectionStore,
  uidsIn: (epoch: string) => Promise<readonly string[]>,
): Promise<ReadonlyMap<string, KeyRecord>> {
  const found = new Map<string, KeyRecord>()
  try {
    const meta = await store.meta()
    const texts = meta ? await store.records(meta.epoch, 'key', await uidsIn(meta.epoch)) : new Map<string, string>()
    for (const [uid, text] of texts) {
      const record = readRecord(text)
      if (record) found.set(uid, record)
    }
  } catch {
    return found
  }
  return found
}

function readRecord(text: string): KeyRecord | undefined {
  try {
    return decodeKeyRecord(text)
  } catch {
    return undefined // another version or damaged: nothing can be restored from this record
  }
}

type Found = Pick<KeyringVerifier, 'id' | 'hash' | 'expiresMs'>

/** Restores by the id in the status. For a key with source.type Hash, the manifest alone suffices, without Redis. */
function verifiersByStatus(apiKey: ApiKey, record: KeyRecord | undefined, now: number): readonly KeyringVerifier[] {
  if (isHashKey(apiKey)) return restoredHashes(apiKey, record)
  const found = record?.verifiers.find(({ id }) => id === apiKey.status?.keyID)
  return found === undefined ? [] : [issuedVerifier(apiKey, found, now)]
}

function issuedVerifier({ status }: ApiKey, found: Found, now: number): KeyringVerifier {
  const createdMs = Date.parse(status?.verifiers?.[0]?.createTime ?? '') || now
  return { ...found, number: 1, state: 'Issued', createdMs, prefix: status?.prefix ?? '' }
}

/** Restores from the Secret. After a crash between delivery and status, Secret and record must agree. */
function verifierBySecret({ status }: ApiKey, secret: ObservedSecret, record: KeyRecord | undefined): Found | undefined {
  if (secret.state !== 'Ours' || secret.hash === undefined || secret.keyID !== secret.valueID) return undefined
  if (status?.keyID === secret.keyID) return { id: secret.keyID, hash: secret.hash, expiresMs: null }
  return status?.keyID === undefined ? record?.verifiers.find(({ hash }) => hash === secret.hash) : undefined
}

/** @returns undefined if the Secret cannot be read now */
async function read(apiKey: ApiKey, { kube, settings: { publicURL } }: RecoverDeps): Promise<ObservedSecret | undefined> {
  try {
    const secret = await kube.get(secrets, { namespace: namespaceOf(apiKey), name: secretName(apiKey) })
    return observeSecret(apiKey, secret, publicURL)
  } catch {
    return undefined // the reconcile of this key reads the Secret again and reports the error
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
