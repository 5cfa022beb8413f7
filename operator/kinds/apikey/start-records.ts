/** Derives the records that gateways must have when a leader takes over: every keyring entry with the policy of the present manifest. */
import { sleep } from '#platform/clock.ts'
import { messageOf } from '#platform/message-of.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { ApiKey } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { uidOf } from '#kube/port.ts'
import { inTurns } from '../../loop/in-parallel.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import type { ApiKeyDeps } from './deps.ts'
import { entryOf, recordText } from './keyring-entry.ts'
import { findByUid, hasApiKey, refusedRecord, scopeOf } from './orphans.ts'
import { recoverEntries, unknownRecords } from './recover.ts'

/** Most entries per turn of the event loop. */
const TURN = 500

/** Longest wait of a start for restored entries to become durable, ms. */
const RESTORED_WITHIN_MS = 5_000

export interface PreparedKeys {
  readonly records: readonly ProjectionChange[]
  /** uids of keys that are not restored yet. Their records in Redis must stay. */
  readonly open: ReadonlySet<string>
}

/** Restores lost entries, and reads live which keys without an ApiKey in the cache exist. The keyring must be loaded. */
export async function prepareKeys(deps: ApiKeyDeps): Promise<PreparedKeys> {
  const { keyring, apiKeys: cache, clock, store } = deps
  const open = await recover(cache.list(), deps)
  const unknown = (await unknownRecords(deps, store)).filter(({ namespace }) => scopeOf(namespace, deps) !== 'NotWatched')
  const existing = await readExisting([...orphansIn(deps), ...unknown], deps)
  const missed = unknown.flatMap(({ uid }) => existing.get(uid) ?? []) // by a cache whose watch was cut off
  const missedOpen = await recover(missed, deps)
  const pending = missed.map(uidOf).filter((uid) => keyring.pending(uid) !== undefined) // `startRecords` finds only durable entries of these
  void keyring.expireTombstones(clock.now())
  const records = await startRecords(deps, ({ uid, namespace }) => scopeOf(namespace, deps) === 'NotSynced' || existing.has(uid))
  return { records, open: new Set([...open, ...missedOpen, ...pending]) }
}

/** Restores lost keyring entries. @returns uids of keys that are not restored yet */
async function recover(keys: Iterable<ApiKey>, deps: ApiKeyDeps): Promise<ReadonlySet<string>> {
  const { restored, open } = await recoverEntries(keys, deps, deps.store)
  if (restored > 0) {
    deps.log.warn(`${restored} lost keyring entries were restored`)
    await flush(deps)
  }
  return open
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
    (entry) => entry.deletedMs === null && scopeOf(entry.namespace, deps) === 'Watched' && !hasApiKey(entry, deps.apiKeys),
  )
}

/**
 * Lists ApiKeys live, for keys whose ApiKey is not in the cache.
 * @returns by uid, the ApiKeys that exist and are not being deleted. The keys of a namespace that does not answer are refused until it does
 */
async function readExisting(
  keys: readonly Pick<KeyringEntry, 'uid' | 'namespace'>[],
  { kube, settings, log }: ApiKeyDeps,
): Promise<ReadonlyMap<string, ApiKey>> {
  const isClusterWide = settings.watchNamespaces.length === 0
  const namespaces = new Set(keys.map(({ namespace }) => (isClusterWide ? '' : namespace)))
  const found = new Map<string, ApiKey>()
  const list = async (namespace: string): Promise<void> => {
    try {
      for (const apiKey of await kube.list(apiKeys, namespace))
        if (apiKey.metadata.deletionTimestamp === undefined) found.set(uidOf(apiKey), apiKey)
    } catch (error) {
      const where = namespace === '' ? '' : ` of namespace ${namespace}`
      log.warn(`keys${where} without an ApiKey in the cache are refused until it can be read (${messageOf(error)})`)
    }
  }
  await Promise.all([...namespaces].map(list))
  return found
}

type RecordDeps = Pick<ApiKeyDeps, 'keyring' | 'apiKeys' | 'version'>

/**
 * @param exists for an entry whose ApiKey is not in the cache: whether the ApiKey exists, or may exist because its namespace is unreadable
 * @returns one record for each entry that is not a tombstone
 */
export async function startRecords(deps: RecordDeps, exists: (entry: KeyringEntry) => boolean): Promise<readonly ProjectionChange[]> {
  const records: ProjectionChange[] = []
  await inTurns(newestEntries(deps), TURN, (entry) => {
    const text = textOf(entry, findByUid(entry.uid, deps.apiKeys), deps.version(), exists)
    if (text !== undefined) records.push({ kind: 'key', op: 'put', id: entry.uid, text })
  })
  return records
}

/**
 * Yields the newest entries, including entries that were just recovered. Such an entry may become durable between two turns of the event
 * loop, so the generator remembers the yielded uids instead of reading the state of the entry.
 */
export function* newestEntries({ keyring, apiKeys: cache }: Omit<RecordDeps, 'version'>): Iterable<KeyringEntry> {
  const yielded = new Set<string>()
  for (const entry of keyring.entries()) {
    yielded.add(entry.uid)
    yield keyring.pending(entry.uid) ?? entry
  }
  for (const { metadata } of cache.list()) {
    const uid = metadata.uid ?? ''
    const recovered = yielded.has(uid) ? undefined : (keyring.pending(uid) ?? keyring.get(uid))
    if (recovered) yield recovered
  }
}

function textOf(
  entry: KeyringEntry,
  apiKey: ApiKey | undefined,
  version: number,
  exists: (entry: KeyringEntry) => boolean,
): string | undefined {
  if (entry.deletedMs !== null) return undefined
  if (apiKey === undefined) return exists(entry) ? recordText(entry, version) : refusedRecord(entry, version)
  if (apiKey.metadata.deletionTimestamp !== undefined) return refusedRecord(entry, version)
  const isCacheCurrent = (apiKey.metadata.generation ?? 0) >= entry.generation // otherwise the entry is newer than the cache: it may have a suspension
  return recordText(
    isCacheCurrent ? entryOf(apiKey, { verifiers: entry.verifiers, revision: entry.revision, version, former: entry }) : entry,
    version,
  )
}
