import { type RecordKind, recordKinds } from '#contract/records/record-kinds.ts'
import { revisionOf, type LogEntry } from '#contract/records/revision-log.ts'
import type { ProjectionSource } from './projection-source.ts'

export interface ChangedRecord {
  readonly kind: RecordKind
  readonly id: string
  readonly text: string | undefined
}

/**
 * Fetches the newest record of every id in the entries, except kinds that only a newer build knows. A record may be newer than its entries,
 * but never older.
 * @param entries in order
 * @throws StaleProjection when records are older than the entries, or belong to a data set that no longer exists. The caller must use none
 * of them: an emptied store would look as if every key had been deleted
 */
export async function changedRecords(source: ProjectionSource, epoch: string, entries: readonly LogEntry[]): Promise<ChangedRecord[]> {
  const changed: ChangedRecord[] = []
  for (const kind of recordKinds()) {
    const newest = new Map(entries.filter((entry) => entry.kind === kind).map((entry) => [entry.id, entry]))
    const texts = newest.size > 0 ? await source.records(epoch, kind, [...newest.keys()]) : new Map<string, string>()
    for (const [id, entry] of newest) {
      const text = texts.get(id)
      if (text !== undefined && (revisionOf(text) ?? entry.revision) < entry.revision)
        throw new StaleProjection(`a record of the store is older than entry ${entry.revision} of the log; everything is loaded again`)
      changed.push({ kind, id, text })
    }
  }
  const putIDs = new Set(entries.filter(({ op }) => op === 'put').map(({ id }) => id))
  const isDoubtful = changed.some(({ id, text }) => text === undefined && putIDs.has(id))
  if (isDoubtful) await assertPresent(source, epoch, entries.at(-1)?.revision ?? 0)
  return changed
}

/** Checks why a record is missing though its entry says `put`: it was deleted since, or the entries belong to another data set. */
async function assertPresent(source: ProjectionSource, epoch: string, revision: number): Promise<void> {
  const meta = await source.meta()
  if (meta?.epoch !== epoch || meta.revision < revision)
    throw new StaleProjection('the data set changed while records of it were fetched; everything is loaded again')
}

/** The store answers, but has nothing that may be loaded now. The caller tries again shortly. */
export class StaleProjection extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StaleProjection'
  }
}
