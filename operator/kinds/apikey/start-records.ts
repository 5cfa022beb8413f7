/** Derives the records that gateways must have when a leader takes over: every keyring entry with the policy of the present manifest. */
import { breathe } from '#platform/breathe.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { ProjectionChange } from '../../projection/store.ts'
import type { ApiKeyDeps } from './deps.ts'
import { entryOf, recordText } from './keyring-entry.ts'
import { findByUid, refusedRecord } from './orphans.ts'

/** Most entries per turn of the event loop. */
const TURN = 500

type RecordDeps = Pick<ApiKeyDeps, 'keyring' | 'apiKeys' | 'version'>

/**
 * @param exists for an entry whose ApiKey is not in the cache: whether the ApiKey exists, or may exist because its namespace is unreadable
 * @returns one record for each entry that is not a tombstone
 */
export async function startRecords(deps: RecordDeps, exists: (entry: KeyringEntry) => boolean): Promise<readonly ProjectionChange[]> {
  const records: ProjectionChange[] = []
  let count = 0
  for (const entry of newestEntries(deps)) {
    count += 1
    if (count % TURN === 0) await breathe()
    const text = textOf(entry, findByUid(entry.uid, deps.apiKeys), deps.version(), exists)
    if (text !== undefined) records.push({ kind: 'key', op: 'put', id: entry.uid, text })
  }
  return records
}

/**
 * Yields the newest entries, including entries that were just recovered. Such an entry may become durable between two turns of the event
 * loop, so the generator remembers the yielded uids instead of reading the state of the entry.
 */
export function* newestEntries({ keyring, apiKeys }: Omit<RecordDeps, 'version'>): Iterable<KeyringEntry> {
  const yielded = new Set<string>()
  for (const entry of keyring.entries()) {
    yielded.add(entry.uid)
    yield keyring.pending(entry.uid) ?? entry
  }
  for (const { metadata } of apiKeys.list()) {
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
