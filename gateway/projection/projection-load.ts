/** Loads the whole projection beside the tables in use, and the records behind entries of its log. */
import { breathe } from '#platform/clock.ts'
import { PROJECTION_SCHEMA } from '#contract/records/format.ts'
import { perKind, type RecordKind, recordKinds } from '#contract/records/record-kinds.ts'
import { type LogEntry, type ProjectionMeta, revisionOf } from '#contract/records/revision-log.ts'
import type { ProjectionSource, RecordBatch, RecordLoad, RecordTable } from './projection-source.ts'

/** The data set of the tables, and the last change that they contain. */
export interface Position {
  readonly epoch: string
  readonly revision: number
}

const LONGEST_TURN_MS = 2

/**
 * Loads meta, all records, and then the log from that meta on. The tables switch at once, and only if the store still has the same data
 * set.
 * @param serving position of the tables. Data of the same epoch that are older are refused, because they would revive revoked keys
 * @throws StaleProjection when there is nothing to load at present, and the errors of the source
 */
export async function loadProjection(
  source: ProjectionSource,
  tables: Readonly<Record<RecordKind, RecordTable>>,
  serving: Position | undefined,
  stopped: AbortSignal,
) {
  const meta = usable(await source.meta(), serving)
  const load = new Loading(
    perKind((kind) => tables[kind].load()),
    stopped,
  )
  for (const kind of recordKinds()) await source.scan(meta.epoch, kind, (batch) => load.feed(kind, batch))
  const revision = await load.catchUp(source, { epoch: meta.epoch, revision: meta.revision })
  const after = await source.meta()
  if (after?.epoch !== meta.epoch) throw new StaleProjection('the projection was rebuilt while it was being loaded; it is loaded again')
  load.commit()
  return { position: { epoch: meta.epoch, revision }, unreadable: load.unreadable, records: load.records }
}

function usable(meta: ProjectionMeta | undefined, serving: Position | undefined): ProjectionMeta {
  if (!meta)
    throw new StaleProjection(
      'the projection is empty: no operator has written it yet; check that the operator runs and uses the same Redis',
    )
  if (meta.schema !== PROJECTION_SCHEMA)
    throw new StaleProjection(
      `the projection has layout ${meta.schema} and this gateway reads ${PROJECTION_SCHEMA}; run the same version of operator and gateway`,
    )
  if (serving?.epoch === meta.epoch && meta.revision < serving.revision)
    throw new StaleProjection(
      `the store went back to revision ${meta.revision}, ${serving.revision} was applied; waiting for the operator to rebuild it`,
    )
  return meta
}

class Loading {
  readonly unreadable = new Map<string, RecordKind>()
  records = 0
  readonly #loads: Readonly<Record<RecordKind, RecordLoad>>
  readonly #stopped: AbortSignal

  constructor(loads: Readonly<Record<RecordKind, RecordLoad>>, stopped: AbortSignal) {
    this.#loads = loads
    this.#stopped = stopped
  }

  /** Applies the log. @returns the revision of the last applied entry */
  async catchUp(source: ProjectionSource, { epoch, revision: from }: Position): Promise<number> {
    let revision = from
    for (let entries = await source.read(revision, 0); entries.length > 0; entries = await source.read(revision, 0)) {
      for (const entry of entries) {
        if (entry.revision !== revision + 1)
          throw new StaleProjection(`the log went on from ${revision} to ${entry.revision} during the load; it is loaded again`)
        revision = entry.revision
      }
      for (const record of await changedRecords(source, epoch, entries)) this.#apply(record)
    }
    return revision
  }

  commit(): void {
    for (const kind of recordKinds()) this.#loads[kind].commit()
  }

  async feed(kind: RecordKind, batch: RecordBatch): Promise<void> {
    let turnStart = performance.now()
    for (const [id, text] of batch) {
      if (performance.now() - turnStart >= LONGEST_TURN_MS) {
        await breathe()
        this.#stopped.throwIfAborted()
        turnStart = performance.now()
      }
      this.#put(kind, id, text)
      this.records += 1
    }
  }

  #apply({ kind, id, text }: ChangedRecord): void {
    if (text !== undefined) return this.#put(kind, id, text)
    this.#loads[kind].delete(id)
    this.unreadable.delete(id)
  }

  #put(kind: RecordKind, id: string, text: string): void {
    if (this.#loads[kind].put(id, text)) this.unreadable.delete(id)
    else this.unreadable.set(id, kind)
  }
}

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
  override readonly name = 'StaleProjection'
}
