/**
 * Derives the records that gateways must have when a leader takes over: every keyring entry with the policy of the present manifest. Before
 * that, lost keyring entries are restored from the record that the gateways still use, or else from the user's Secret, so that no valid key
 * is refused. The ApiKey must exist, and its status or Secret must name the same key.
 */
import { sleep } from '#platform/clock.ts'
import { messageOf } from '#platform/message-of.ts'
import { decodeKeyRecord, type KeyRecord } from '#contract/records/key-record.ts'
import type { KeyringEntry, KeyringVerifier } from '#contract/records/keyring-entry.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { KubeError, namespaceOf, uidOf } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { inParallel, inTurns } from '../../loop/in-parallel.ts'
import type { ProjectionChange, ProjectionStore } from '../../projection/store.ts'
import { findByUid } from '../kind.ts'
import type { ApiKeyDeps } from './kind.ts'
import { isHashKey, restoredHashes } from './hash-source.ts'
import type { RecordedKey } from './kept-records.ts'
import { entryOf, recordText } from './keyring-entry.ts'
import { liveState, refusedRecord, scopeOf } from './orphans.ts'
import { type ObservedSecret, observeSecret, secretName } from './user-secret.ts'

/** Maximum number of concurrent reads. */
const READS = 32
/** Longest time for reads of Secrets, and for those of ApiKeys, ms. The reconcile of each remaining key goes on. */
const READ_FOR_MS = 10_000
/** Maximum number of entries per turn of the event loop. */
const TURN = 500

/** Longest wait of a start for restored entries to become durable, ms. */
const RESTORED_WITHIN_MS = 5_000

/** Restores lost entries, and reads live which keys without an ApiKey in the cache were deleted. The keyring must be loaded. */
export async function prepareKeys(deps: ApiKeyDeps): Promise<readonly ProjectionChange[]> {
  const { gone } = await recoverKeys(deps, orphansIn(deps))
  return await startRecords(deps, ({ uid, namespace }) => scopeOf(namespace, deps) !== 'Former' && !gone.has(uid))
}

/** Restores lost entries at the first contact with Redis, if it did not answer at the start. @throws if Redis does not answer after all */
export async function searchRedis(deps: ApiKeyDeps): Promise<void> {
  await recoverKeys(deps, [])
  if (!deps.kept.isRedisRead) throw new Error('Redis does not answer, and its records may be the last copies of lost keyring entries')
}

/** @param orphans entries without an ApiKey in the cache, which are read live too */
async function recoverKeys(deps: ApiKeyDeps, orphans: readonly KeyringEntry[]): Promise<LiveKeys> {
  const known = await recover(deps.apiKeys.list(), deps)
  const records = await unknownRecords(deps)
  const byScope = Map.groupBy(records ?? [], ({ namespace }) => scopeOf(namespace, deps))
  const unknown = [...(byScope.get('Watched') ?? []), ...(byScope.get('NotSynced') ?? [])]
  const unwatched = (byScope.get('Kept') ?? []).map(({ uid }) => uid)
  const live = await readLive([...orphans, ...unknown], deps)
  const missed = unknown.flatMap(({ uid }) => live.existing.get(uid) ?? []) // by a cache whose watch was cut off
  const unread = unknown.filter(({ uid }) => !live.existing.has(uid) && !live.gone.has(uid))
  const unseen = await recover(missed, deps)
  const open = [known, unseen].flatMap((recovery) => [...recovery.open, ...recovery.restored])
  deps.kept.set({ open, unwatched, unread, isRedisRead: known.isRedisRead && unseen.isRedisRead && records !== undefined })
  return live
}

/** Reads again the ApiKeys of records that are kept because no read has succeeded. Restores their entries, or removes the records of deleted keys. */
export async function searchAgain(deps: ApiKeyDeps): Promise<void> {
  const { kept, keyring, projection } = deps
  const { unread } = kept
  const live = await readLive(unread, deps)
  await recover([...live.existing.values()], deps)
  for (const { uid } of unread) {
    if (!live.gone.has(uid) || keyring.newest(uid) !== undefined) continue
    kept.forget(uid)
    if (!keyring.isUnreadable(uid)) projection.want('key', uid, undefined, 'urgent')
  }
}

/** Restores the entry of one key whose record in Redis is kept: the first write has failed, or the Secret could not be read. @throws KubeError */
export async function recoverKept(apiKey: ApiKey, deps: ApiKeyDeps): Promise<void> {
  const { restored, open, isRedisRead } = await recoverEntries([apiKey], deps, deps.store)
  if (!isRedisRead) throw new KubeError('Unreachable', 0, 'Redis does not answer')
  if (restored.length + open.size === 0) deps.kept.forget(uidOf(apiKey))
}

/** Restores lost keyring entries. A failed write drops its entry, and the reconcile tries again. */
async function recover(keys: Iterable<ApiKey>, deps: ApiKeyDeps): Promise<Recovery> {
  const recovery = await recoverEntries(keys, deps, deps.store)
  const { restored } = recovery
  if (restored.length === 0) return recovery
  deps.log.warn(`${restored.length} lost keyring entries were restored`)
  await flush(deps)
  return recovery
}

/** Writes restored entries before thousands of reconciles compete for the API server. The ApiKey of a refused entry reports the refusal. */
async function flush({ keyring, clock }: ApiKeyDeps): Promise<void> {
  const ended = new AbortController()
  const end = (): void => ended.abort()
  await Promise.race([keyring.flush().then(end, end), sleep(clock, RESTORED_WITHIN_MS, ended.signal)])
}

/** Entries in watched and synced namespaces whose ApiKey is not in the cache. */
function orphansIn(deps: ApiKeyDeps): readonly KeyringEntry[] {
  return [...deps.keyring.entries()].filter(
    (entry) => entry.deletedMs === null && scopeOf(entry.namespace, deps) === 'Watched' && !findByUid(entry.uid, deps.apiKeys),
  )
}

/** What live reads say, by uid. A key that is in neither could not be read. */
interface LiveKeys {
  readonly existing: Map<string, ApiKey>
  /** Keys whose ApiKey was deleted, or is being deleted. */
  readonly gone: Set<string>
}

/**
 * Reads live whether keys that the cache lacks still exist. A list covers thousands of ApiKeys in few calls. An ApiKey that the list lacks is read by
 * its name, because a list may be wrong and must not end a key. Keys that cannot be read continue to work, and their reconcile tries again.
 */
async function readLive(keys: readonly RecordedKey[], deps: ApiKeyDeps): Promise<LiveKeys> {
  const live: LiveKeys = { existing: new Map(), gone: new Set() }
  const isClusterWide = deps.settings.watchNamespaces.length === 0
  const unlisted: RecordedKey[] = []
  const list = async ([namespace, some]: readonly [string, readonly RecordedKey[]]): Promise<void> => {
    try {
      const listed = new Map((await deps.kube.list(apiKeys, namespace)).map((apiKey) => [uidOf(apiKey), apiKey]))
      for (const key of some) if (!take(key, listed.get(key.uid), live)) unlisted.push(key)
    } catch (error) {
      const where = namespace === '' ? '' : ` of namespace ${namespace}`
      deps.log.warn(`keys${where} without an ApiKey in the cache work on until it can be read (${messageOf(error)})`)
    }
  }
  await Promise.all([...Map.groupBy(keys, ({ namespace }) => (isClusterWide ? '' : namespace))].map(list))
  await readEach(unlisted, live, deps)
  return live
}

async function readEach(keys: readonly RecordedKey[], live: LiveKeys, { kube, clock, log }: ApiKeyDeps): Promise<void> {
  const untilMs = clock.monotonic() + READ_FOR_MS
  const failures: string[] = []
  await inParallel(keys, READS, async (key) => {
    if (clock.monotonic() >= untilMs) return void failures.push('the reads took too long')
    try {
      const apiKey = await kube.get(apiKeys, { namespace: key.namespace, name: key.name })
      if (!take(key, apiKey, live)) live.gone.add(key.uid)
    } catch (error) {
      failures.push(messageOf(error))
    }
  })
  if (failures.length > 0)
    log.warn({ keys: failures.length }, `keys without an ApiKey in the cache work on until it can be read (${failures[0]})`)
}

/** @returns whether the ApiKey that was read is that of the key */
function take({ uid }: RecordedKey, apiKey: ApiKey | undefined, { existing, gone }: LiveKeys): boolean {
  const state = liveState({ uid }, apiKey)
  if (state === 'Deleting') gone.add(uid)
  else if (state === 'Exists' && apiKey) existing.set(uid, apiKey)
  return state !== 'Deleted'
}

interface RecordDeps extends Pick<ApiKeyDeps, 'keyring' | 'apiKeys' | 'version'> {
  readonly accounts: Pick<ApiKeyDeps['accounts'], 'ofKey'>
}

/** @param exists whether an ApiKey that the cache lacks exists, or may exist because it could not be read */
export async function startRecords(deps: RecordDeps, exists: (entry: KeyringEntry) => boolean): Promise<readonly ProjectionChange[]> {
  const records: ProjectionChange[] = []
  await inTurns(newestEntries(deps), TURN, (entry) => {
    const text = textOf(entry, deps, exists)
    if (text !== undefined) records.push({ kind: 'key', op: 'put', id: entry.uid, text })
  })
  return records
}

/** Also yields entries that were just recovered. The uids are listed first, because an entry may become durable between two turns. */
export function* newestEntries({ keyring, apiKeys: cache }: Pick<RecordDeps, 'keyring' | 'apiKeys'>): Iterable<KeyringEntry> {
  const uids = new Set([...Array.from(keyring.entries(), ({ uid }) => uid), ...Array.from(cache.list(), uidOf)])
  for (const uid of uids) {
    const entry = keyring.pending(uid) ?? keyring.get(uid)
    if (entry) yield entry
  }
}

function textOf(
  entry: KeyringEntry,
  { apiKeys: cache, accounts, version }: RecordDeps,
  exists: (one: KeyringEntry) => boolean,
): string | undefined {
  if (entry.deletedMs !== null) return undefined
  const apiKey = findByUid(entry.uid, cache)
  if (apiKey === undefined) return exists(entry) ? recordText(entry, version()) : refusedRecord(entry, version())
  if (apiKey.metadata.deletionTimestamp !== undefined) return refusedRecord(entry, version())
  const isCacheCurrent = (apiKey.metadata.generation ?? 0) >= entry.generation // otherwise the entry is newer than the cache: it may have a suspension
  const { verifiers, revision } = entry
  const account = accounts.ofKey(apiKey)
  return recordText(
    isCacheCurrent ? entryOf(apiKey, { account, verifiers, revision, version: version(), former: entry }) : entry,
    version(),
  )
}

export interface Recovery {
  /** uids of keys whose entries are committed. */
  readonly restored: readonly string[]
  /** uids of keys that are not restored yet. Their records in Redis must stay. */
  readonly open: ReadonlySet<string>
  readonly isRedisRead: boolean
}

interface RecoverDeps extends Pick<ApiKeyDeps, 'keyring' | 'kube' | 'recordEvent' | 'clock' | 'version'> {
  readonly accounts: Pick<ApiKeyDeps['accounts'], 'ofKey'>
  readonly settings: Pick<ApiKeyDeps['settings'], 'publicURL'>
}

/** Restores the missing entries of some ApiKeys. If Redis does not answer, the Secrets are read instead. */
export async function recoverEntries(apiKeys: Iterable<ApiKey>, deps: RecoverDeps, store: ProjectionStore): Promise<Recovery> {
  const lost = [...apiKeys].filter((apiKey) => mayBeLost(apiKey, deps))
  if (lost.length === 0) return { restored: [], open: new Set(), isRedisRead: true }
  const read = await recordsOf(store, () => Promise.resolve(lost.map(uidOf)))
  const records = read ?? new Map<string, KeyRecord>()
  const candidates = lost.filter((apiKey) => apiKey.status?.keyID !== undefined || records.has(uidOf(apiKey)))
  const untilMs = deps.clock.monotonic() + READ_FOR_MS
  const open = new Set(candidates.filter((apiKey) => isAccountUnknown(apiKey, deps)).map(uidOf))
  const restored: string[] = []
  const restorable = candidates.filter((apiKey) => !open.has(uidOf(apiKey)))
  await inParallel(restorable, READS, async (apiKey) => {
    const record = records.get(uidOf(apiKey))
    const byStatus = verifiersByStatus(apiKey, record, deps.clock.now())
    const from = record === undefined ? 'its manifest' : 'Redis'
    if (byStatus.length > 0 || isHashKey(apiKey)) return restore(apiKey, byStatus, from, deps) && restored.push(uidOf(apiKey))
    const secret = deps.clock.monotonic() < untilMs ? await secretOf(apiKey, deps) : undefined
    if (secret === undefined) open.add(uidOf(apiKey))
    const found = secret && verifierBySecret(apiKey, secret, record)
    const isRestored = found !== undefined && restore(apiKey, [issuedVerifier(apiKey, found, deps.clock.now())], 'its Secret', deps)
    return isRestored && restored.push(uidOf(apiKey))
  })
  return { restored, open, isRedisRead: read !== undefined }
}

/**
 * Lists records in Redis whose keys are neither in the keyring nor in the cache: left over from a deletion, or valid keys whose entries were
 * lost while the watch of this process was cut off. Only a live read can decide.
 * @returns undefined if Redis does not answer
 */
async function unknownRecords({ keyring, apiKeys: cache, store }: ApiKeyDeps): Promise<readonly KeyRecord[] | undefined> {
  const known = new Set([...cache.list()].map(uidOf))
  const isUnknown = (uid: string): boolean => !known.has(uid) && keyring.get(uid) === undefined && keyring.pending(uid) === undefined
  const records = await recordsOf(store, async (epoch) => (await store.ids(epoch, 'key')).filter(isUnknown))
  return records && [...records.values()]
}

function mayBeLost({ metadata }: ApiKey, { keyring }: RecoverDeps): boolean {
  const uid = metadata.uid ?? ''
  const isHeld = metadata.finalizers?.includes(FINALIZER) === true && metadata.deletionTimestamp === undefined
  return isHeld && keyring.get(uid) === undefined && keyring.pending(uid) === undefined && !keyring.isUnreadable(uid)
}

/** Readable records of some keys, by uid; undefined if Redis does not answer: the projection reports the outage, and the Secrets have the keys. */
async function recordsOf(
  store: ProjectionStore,
  uidsIn: (epoch: string) => Promise<readonly string[]>,
): Promise<ReadonlyMap<string, KeyRecord> | undefined> {
  const found = new Map<string, KeyRecord>()
  try {
    const meta = await store.meta()
    const texts = meta ? await store.records(meta.epoch, 'key', await uidsIn(meta.epoch)) : new Map<string, string>()
    for (const [uid, text] of texts) {
      const record = readRecord(text)
      if (record) found.set(uid, record)
    }
  } catch {
    return undefined
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
async function secretOf(apiKey: ApiKey, { kube, settings: { publicURL } }: RecoverDeps): Promise<ObservedSecret | undefined> {
  try {
    const secret = await kube.get(secrets, { namespace: namespaceOf(apiKey), name: secretName(apiKey) })
    return observeSecret(apiKey, secret, publicURL)
  } catch {
    return undefined // the reconcile of this key reads the Secret again and reports the error
  }
}

/** Whether an entry would have no account: that of the manifest is not known by its uid yet. */
function isAccountUnknown(apiKey: ApiKey, { accounts }: RecoverDeps): boolean {
  return apiKey.spec.accountRef !== undefined && accounts.ofKey(apiKey)?.uid === undefined
}

function restore(apiKey: ApiKey, verifiers: readonly KeyringVerifier[], from: string, deps: RecoverDeps): boolean {
  const { keyring, accounts, version } = deps
  const account = accounts.ofKey(apiKey)
  if (verifiers.length === 0) return false
  keyring.commit(entryOf(apiKey, { account, verifiers, revision: keyring.revision, version: version() }), 'change', { isRestored: true })
  deps.recordEvent(apiKey, 'KeyringRestored', `The keyring had lost the key; it was restored from ${from}. The key works on.`)
  return true
}
