/** From entries of the revision log to the records that stand behind them now. */
import { RECORD_KINDS, revisionOf, type LogEntry, type RecordKind } from '../shared/revision-log.ts'
import type { ProjectionSource } from './projection-source.ts'
import { StaleProjection } from './stale-projection.ts'

/** One record that some entries name. */
export interface ChangedRecord {
  readonly kind: RecordKind
  readonly id: string
  /** Its newest text; undefined when it was deleted. */
  readonly text: string | undefined
}

/**
 * Fetches the newest record of every id that the entries name: it may be newer than they are, never older.
 * @param entries in order
 * @throws StaleProjection when the records are older than the entries, or of a data set that is no longer there: nothing of them may be
 *   used, or an emptied store would read as the deletion of every key
 */
export async function changedRecords(source: ProjectionSource, epoch: string, entries: readonly LogEntry[]): Promise<ChangedRecord[]> {
  const changed: ChangedRecord[] = []
  for (const kind of RECORD_KINDS) {
    const newest = new Map(entries.filter((entry) => entry.kind === kind).map((entry) => [entry.id, entry]))
    const texts = newest.size > 0 ? await source.records(epoch, kind, [...newest.keys()]) : new Map<string, string>()
    for (const [id, entry] of newest) {
      const text = texts.get(id)
      assertNotOlder(text, entry)
      changed.push({ kind, id, text })
    }
  }
  const putIDs = new Set(entries.filter(({ op }) => op === 'put').map(({ id }) => id))
  const isDoubtful = changed.some(({ id, text }) => text === undefined && putIDs.has(id))
  if (isDoubtful) await assertPresent(source, epoch, entries.at(-1)?.revision ?? 0)
  return changed
}

function assertNotOlder(text: string | undefined, { revision }: LogEntry): void {
  if (text !== undefined && (revisionOf(text) ?? revision) < revision)
    throw new StaleProjection(`a record of the store is older than entry ${revision} of the log; everything is loaded again`)
}

/** A record whose entry says `put` is absent: it was deleted since, or the data set is not the one of the entries. */
async function assertPresent(source: ProjectionSource, epoch: string, revision: number): Promise<void> {
  const meta = await source.meta()
  if (meta?.epoch !== epoch || meta.revision < revision)
    throw new StaleProjection('the data set changed while records of it were fetched; everything is loaded again')
}
