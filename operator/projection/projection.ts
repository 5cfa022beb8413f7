/**
 * Keeps the store equal to the wanted records, which are all in memory: writes changes in batches, urgent changes first, and rebuilds the data
 * set when the store lost or changed it. The only writer of the projection. No caller waits for a write: a callback reports its completion.
 */
import { BackOff } from '#platform/back-off.ts'
import { messageOf } from '#platform/message-of.ts'
import type { Cancel, Clock } from '#platform/clock.ts'
import { perKind, type RecordKind, recordKinds } from '#contract/records/record-kinds.ts'
import type { Level } from '../loop/level.ts'
import { DataSet, type DataSetDeps } from './data-set.ts'
import { ForeignStore } from './foreign-store.ts'
import type { ProjectionChange } from './store.ts'

/** Changes per call: bounds the time for which one call keeps Redis busy. */
const BATCH = 200
/** The store is checked this often for another epoch, an older state and missing writes, ms. */
const CHECK_EVERY_MS = 2_000
/** Longest pause after a rebuild that failed, ms. */
const LONGEST_REBUILD_PAUSE_MS = 60_000

export interface ProjectionDeps extends DataSetDeps {
  readonly clock: Clock
  readonly log: { info(message: string): void }
  /** Receives every failed and every successful call to the store, and logs at a bounded rate. */
  readonly outage: { failed(line: string): void; works(): void }
  /** Whether an unwanted record must stay in the store because its source cannot be read now. */
  readonly keeps: (kind: RecordKind, id: string) => boolean
  /** The record of a kind that stands for records which must exist and cannot be written. @param has whether the store has a record of an id */
  readonly standIn: (kind: RecordKind, has: (id: string) => boolean) => ProjectionChange | undefined
  /** Called at the first contact, before unwanted records are deleted: they may be the last copies of something. @throws if the store fails */
  readonly onReached: () => Promise<void>
  /** Called when the store has a wanted change. */
  readonly onWritten: (kind: RecordKind, id: string) => void
  /** Called when the store stops or resumes answering. */
  readonly onAvailability: (isAvailable: boolean) => void
  /** Called with the reason when the store belongs to another installation or a newer version, and with undefined when it does not. */
  readonly onForeign: (why: string | undefined) => void
}

interface Known {
  readonly text: string | undefined
  readonly revision: number
  readonly sinceMs: number
}

export class Projection {
  readonly #deps: ProjectionDeps
  readonly #dataSet: DataSet
  readonly #wanted = perKind(() => new Map<string, string>())
  readonly #pending = new PendingWrites()
  /** Known content of the store: record text (undefined = absent) and the revision that carries it. */
  readonly #known = new Map<string, Known>()
  /** The last call to the store. Calls run one at a time, since otherwise an older record could overwrite a newer one. */
  #last: Promise<unknown> = Promise.resolve()
  #isFlushing = false
  #isAvailable = false
  #isStarted = false
  /** Whether the initial content of the store has been compared with the wanted records. */
  #isTakenOver = false
  #isStopped = false
  #cancelCheck: Cancel = () => undefined
  readonly #rebuildBackOff = new BackOff({ firstMs: CHECK_EVERY_MS, maxMs: LONGEST_REBUILD_PAUSE_MS })
  #rebuildError: unknown

  constructor(deps: ProjectionDeps) {
    this.#deps = deps
    this.#dataSet = new DataSet(deps)
  }

  /** Identity of the data set that this leader maintains; '' before the first contact. */
  get epoch(): string {
    return this.#dataSet.epoch
  }

  get revision(): number {
    return this.#dataSet.revision
  }

  get available(): boolean {
    return this.#isAvailable
  }

  /** Takes over. @param records everything that must be in the projection @param floor newest revision that the keyring knows */
  async start(records: readonly ProjectionChange[], floor: number): Promise<void> {
    for (const { kind, id, text } of records) if (text !== undefined) this.#wanted[kind].set(id, text)
    this.#dataSet.startAt(floor)
    this.#isStarted = true
    await this.#exclusive(() => this.#takeOver()).catch((error: unknown) => this.#lost(error))
    await this.#flush()
    this.#scheduleCheck()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelCheck()
  }

  /** Sets the wanted text of a record; undefined = absent. The change stays pending across any outage; then `onWritten` is called. */
  want(kind: RecordKind, id: string, text: string | undefined, level: Level): void {
    if (!this.#isStarted) throw new TypeError('the projection was not started: what it holds would be taken for everything')
    if (text === undefined) this.#wanted[kind].delete(id)
    else this.#wanted[kind].set(id, text)
    this.#pending.add(changeOf(kind, id, text), level)
    setImmediate(() => void this.#flush()) // all changes of one turn of the event loop go in one call
  }

  /** @returns whether a change of this record has not reached the store yet */
  isPending(kind: RecordKind, id: string): boolean {
    return this.#pending.has({ kind, id })
  }

  /** @returns the revision that carries exactly this text, and since when; undefined when the store may hold anything else */
  present(kind: RecordKind, id: string, text: string | undefined): { readonly revision: number; readonly forMs: number } | undefined {
    const known = this.#known.get(keyOf({ kind, id }))
    if (known === undefined || known.text !== text || this.#pending.has({ kind, id })) return undefined
    return { revision: known.revision, forMs: this.#deps.clock.monotonic() - known.sinceMs }
  }

  /** Forgets a record that was deleted for good. */
  forget(kind: RecordKind, id: string): void {
    if (!this.#wanted[kind].has(id)) this.#known.delete(keyOf({ kind, id }))
  }

  async #flush(): Promise<void> {
    if (this.#isFlushing || this.#isStopped) return
    this.#isFlushing = true
    try {
      while (this.#pending.size > 0 && !this.#isStopped) await this.#exclusive(() => this.#writeNext())
    } catch (error) {
      this.#lost(error) // all changes stay pending: the next wanted change or the next check writes them again
    } finally {
      this.#isFlushing = false
    }
  }

  async #writeNext(): Promise<void> {
    if (!this.#isTakenOver) return await this.#takeOver()
    const batch = this.#pending.next(BATCH)
    const revisions = await this.#dataSet.write(batch)
    if (revisions === undefined) return await this.#rebuild('the store holds another data set, or went back to an older state')
    this.#written(batch, (index) => revisions[index] ?? this.revision)
    this.#reached()
  }

  async #takeOver(): Promise<void> {
    const why = await this.#dataSet.takeOver()
    await this.#deps.onReached()
    if (why !== undefined) return await this.#rebuild(why)
    await this.#compare()
    for (const change of this.#all()) if (!this.#pending.has(change)) this.#pending.add(change, 'background')
    this.#isTakenOver = true
    this.#reached()
  }

  async #compare(): Promise<void> {
    for (const kind of recordKinds()) {
      const ids = new Set(await this.#deps.store.ids(this.#dataSet.epoch, kind))
      this.#wantStandIn(kind, ids)
      for (const id of ids) {
        if (!this.#wanted[kind].has(id) && !this.#deps.keeps(kind, id)) this.#pending.add(changeOf(kind, id, undefined), 'change')
      }
    }
  }

  async #rebuild(why: string): Promise<void> {
    if (this.#rebuildBackOff.waitMs(this.#deps.clock.monotonic()) > 0) throw this.#rebuildError
    const found = await this.#kept()
    // from here to the call there is no await: changes that come later stay pending
    const kept = found.filter((change) => !this.#wanted[change.kind].has(change.id) && !this.#pending.has(change))
    for (const kind of recordKinds()) this.#wantStandIn(kind, new Set(kept.flatMap((change) => (change.kind === kind ? [change.id] : []))))
    const records = this.#all()
    const pending = this.#pending.all()
    const revision = await this.#copied([...records, ...kept])
    this.#isTakenOver = true
    this.#known.clear()
    this.#written(records, () => revision)
    this.#written(pending, () => revision)
    const count = records.length + kept.length
    this.#deps.log.info(`projection rebuilt because ${why}: ${count} ${count === 1 ? 'record' : 'records'}, revision ${revision}`)
    this.#reached()
  }

  /** @param ids that the store has beside the wanted ones */
  #wantStandIn(kind: RecordKind, ids: ReadonlySet<string>): void {
    const { id, text } = this.#deps.standIn(kind, (one) => ids.has(one) || this.#wanted[kind].has(one)) ?? {}
    if (id !== undefined && text !== undefined) this.#wanted[kind].set(id, text)
  }

  /** Writes a whole data set. A copy may fail because Redis is full, and each try costs as much as the first: tries become rarer. */
  async #copied(records: readonly ProjectionChange[]): Promise<number> {
    try {
      const revision = await this.#dataSet.rebuild(records)
      this.#rebuildBackOff.reset()
      return revision
    } catch (error) {
      this.#rebuildError = error
      this.#rebuildBackOff.next({ nowMs: this.#deps.clock.monotonic() })
      throw error
    }
  }

  /** Records that no kind wants but that must stay, byte for byte except for the revision. */
  async #kept(): Promise<ProjectionChange[]> {
    const { store, keeps } = this.#deps
    const kept: ProjectionChange[] = []
    const former = (await store.meta())?.epoch
    if (former === undefined) return kept
    for (const kind of recordKinds()) {
      const ids = (await store.ids(former, kind)).filter((id) => !this.#wanted[kind].has(id) && keeps(kind, id))
      if (ids.length === 0) continue
      for (const [id, text] of await store.records(former, kind, ids)) kept.push(changeOf(kind, id, text))
    }
    return kept
  }

  #written(changes: readonly ProjectionChange[], revisionAt: (index: number) => number): void {
    const sinceMs = this.#deps.clock.monotonic()
    changes.forEach((change, index) => {
      const key = keyOf(change)
      const former = this.#known.get(key)
      const revision = revisionAt(index)
      const wasPending = this.#pending.has(change)
      const isSame = former !== undefined && former.text === change.text && former.revision === revision
      this.#known.set(key, { text: change.text, revision, sinceMs: isSame ? former.sinceMs : sinceMs })
      this.#pending.written(change)
      if (wasPending && !this.#pending.has(change)) this.#deps.onWritten(change.kind, change.id)
    })
  }

  #scheduleCheck(): void {
    if (this.#isStopped) return
    this.#cancelCheck = this.#deps.clock.after(CHECK_EVERY_MS, () => {
      void this.#check().then(() => this.#scheduleCheck())
    })
  }

  /** Checks that the data set is the same and not in an older state, and writes all pending changes. */
  async #check(): Promise<void> {
    try {
      await this.#exclusive(() => this.#verify())
    } catch (error) {
      return this.#lost(error)
    }
    await this.#flush()
  }

  async #verify(): Promise<void> {
    if (!this.#isTakenOver) return await this.#takeOver()
    const why = await this.#dataSet.verify()
    if (why !== undefined) return await this.#rebuild(why)
    this.#reached()
  }

  #all(): ProjectionChange[] {
    return recordKinds().flatMap((kind) => [...this.#wanted[kind]].map(([id, text]) => changeOf(kind, id, text)))
  }

  #exclusive<T>(talk: () => Promise<T>): Promise<T> {
    const next = this.#last.then(talk, talk)
    this.#last = next.catch(() => undefined) // each caller handles its own failure
    return next
  }

  #reached(): void {
    this.#deps.outage.works()
    this.#deps.onForeign(undefined)
    if (this.#isAvailable) return
    this.#isAvailable = true
    this.#deps.onAvailability(true)
  }

  #lost(error: unknown): void {
    if (this.#isStopped) return
    const message = messageOf(error)
    this.#deps.outage.failed(`the projection cannot be written: ${message}`)
    if (error instanceof ForeignStore) this.#deps.onForeign(message)
    if (!this.#isAvailable) return
    this.#isAvailable = false
    this.#deps.onAvailability(false)
  }
}

function changeOf(kind: RecordKind, id: string, text: string | undefined): ProjectionChange {
  return text === undefined ? { kind, op: 'del', id } : { kind, op: 'put', id, text }
}

/** A change that may not have reached the store. */
export class PendingWrites {
  readonly #urgent = new Map<string, ProjectionChange>()
  readonly #others = new Map<string, ProjectionChange>()

  get size(): number {
    return this.#urgent.size + this.#others.size
  }

  /** Adds a change; it replaces an older change of the same record. An urgent record stays urgent: the older change may not have arrived. */
  add(change: ProjectionChange, level: Level): void {
    const key = keyOf(change)
    const isUrgent = level === 'urgent' || this.#urgent.has(key)
    this.#others.delete(key)
    if (isUrgent) this.#urgent.set(key, change)
    else this.#others.set(key, change)
  }

  has(change: Pick<ProjectionChange, 'kind' | 'id'>): boolean {
    return this.#urgent.has(keyOf(change)) || this.#others.has(keyOf(change))
  }

  /** @returns the next changes to write; they stay pending until `written` */
  next(limit: number): readonly ProjectionChange[] {
    const batch: ProjectionChange[] = []
    for (const changes of [this.#urgent, this.#others]) {
      for (const change of changes.values()) {
        if (batch.length >= limit) return batch
        batch.push(change)
      }
    }
    return batch
  }

  /** Removes a change that has reached the store. A newer change of the same record stays pending. */
  written(change: ProjectionChange): void {
    for (const changes of [this.#urgent, this.#others]) if (changes.get(keyOf(change)) === change) changes.delete(keyOf(change))
  }

  all(): readonly ProjectionChange[] {
    return [...this.#urgent.values(), ...this.#others.values()]
  }
}

/** Identifies one record: ids are unique within a kind only. */
export function keyOf({ kind, id }: Pick<ProjectionChange, 'kind' | 'id'>): string {
  return `${kind} ${id}`
}
