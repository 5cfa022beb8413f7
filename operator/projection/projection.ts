/**
 * Keeps the store equal to what the operator wants: every wanted record in memory, written in batches, rebuilt under a new epoch when the
 * store lost or changed it. The only writer of the projection.
 */
import { randomUUID } from 'node:crypto'
import type { ProjectionMeta, RecordKind } from '../../gateway/shared/revision-log.ts'
import { PROJECTION_SCHEMA, RECORD_KINDS } from '../../gateway/shared/revision-log.ts'
import type { Cancel, Clock } from '../../gateway/shared/clock.ts'
import type { ProjectionChange, ProjectionStore } from './store.ts'

/** Operations per script call: bounds the time that Redis is busy with one. */
const BATCH = 200
/** The store is checked this often for a foreign epoch, a roll-back or missed writes, ms. */
const CHECK_EVERY_MS = 2_000
/** Why a rebuild is needed, for the log. */
const WENT_BACK = 'the store went back to an older state'

/** What the projection needs from its surroundings. */
export interface ProjectionDeps {
  readonly store: ProjectionStore
  readonly clock: Clock
  /** Fencing token of this leader. */
  readonly fence: () => number
  /** Lifts the fencing token above one found in the store (the Lease was deleted): else every write would be refused for ever. */
  readonly raiseFence: (stored: number) => Promise<void>
  /** Throws when this process no longer leads. */
  readonly assertLeading: () => void
  /** A newer leader wrote: this process must end. */
  readonly onFenced: (fence: number) => void
  readonly log: { info(message: string): void }
  /**
   * Asked about a key that stands in the store and nobody wants: the record to keep when the keyring lost the key and now has it back,
   * undefined when it has to go.
   */
  readonly rescue: (id: string, text: string) => Promise<string | undefined>
  /** Told of every failed and every good contact; says so at a bearable pace. */
  readonly outage: { failed(line: string): void; works(): void }
}

interface Wanted {
  readonly change: ProjectionChange
  readonly resolve: (rev: number) => void
  readonly reject: (error: unknown) => void
}

/** The writer side of the projection. */
export class Projection {
  readonly #deps: ProjectionDeps
  readonly #records: Record<RecordKind, Map<string, string>> = { key: new Map(), model: new Map() }
  /** Ids whose last write is not known to have arrived. */
  readonly #unsure = new Map<string, ProjectionChange>()
  /** What is known to stand in the store: record text (undefined = gone) and the revision that carries it. */
  readonly #known = new Map<string, { readonly text: string | undefined; readonly rev: number }>()
  #queue: Wanted[] = []
  #draining = false
  /** Tail of the chain of store conversations: one at a time, or an older record could overtake a newer one. */
  #last: Promise<unknown> = Promise.resolve()
  #epoch = ''
  #rev = 0
  /** Fence that this leader itself has put into the store. */
  #claimed: number | undefined = undefined
  #available = false
  #started = false
  #stopped = false
  #cancelCheck: Cancel = () => undefined

  constructor(deps: ProjectionDeps) {
    this.#deps = deps
  }

  /** Identity of the data set that this leader maintains; '' before the first contact. */
  get epoch(): string {
    return this.#epoch
  }
  /** Newest revision known. */
  get rev(): number {
    return this.#rev
  }
  /** Whether the last contact with the store worked. */
  get available(): boolean {
    return this.#available
  }

  /**
   * Takes over: adopts the data set that is there, or builds one, and keeps watch over it.
   * @param records everything that must be in the projection
   * @param floor newest revision that the keyring knows: a store below it lost data
   */
  async start(records: readonly ProjectionChange[], floor: number): Promise<void> {
    for (const { kind, id, text } of records) if (text !== undefined) this.#records[kind].set(id, text)
    this.#rev = floor
    this.#started = true
    await this.#exclusive(() => this.#takeOver(floor)).catch((error: unknown) => this.#lost(error))
    this.#scheduleCheck()
  }

  stop(): void {
    this.#stopped = true
    this.#cancelCheck()
  }

  /**
   * Wants a record to be there.
   * @returns the revision that carries it; that of the present record when nothing changed
   * @throws when the store did not answer: the wish is kept, and written as soon as the store is back
   */
  put(kind: RecordKind, id: string, text: string): Promise<number> {
    this.#records[kind].set(id, text)
    return this.#want({ kind, op: 'put', id, text })
  }

  /** Wants a record to be gone; otherwise as `put`. */
  delete(kind: RecordKind, id: string): Promise<number> {
    this.#records[kind].delete(id)
    return this.#want({ kind, op: 'del', id })
  }

  /** @returns the revision that carries exactly this record (undefined text: its absence), or undefined when that is not known to be so */
  revisionOf(kind: RecordKind, id: string, text: string | undefined): number | undefined {
    const known = this.#known.get(`${kind} ${id}`)
    return known && known.text === text ? known.rev : undefined
  }

  /** Drops the memory of a record that is gone for good. */
  forget(kind: RecordKind, id: string): void {
    if (!this.#records[kind].has(id)) this.#known.delete(`${kind} ${id}`)
  }

  #want(change: ProjectionChange): Promise<number> {
    if (!this.#started) throw new TypeError('the projection was not started: what it holds would be taken for everything')
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    this.#unsure.set(`${change.kind} ${change.id}`, change)
    this.#queue.push({ change, resolve, reject })
    if (!this.#draining) {
      this.#draining = true
      setImmediate(() => void this.#drain()) // what is asked in one turn of the loop goes in one call
    }
    return promise
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, BATCH)
      try {
        const revs = await this.#exclusive(() => this.#writeAndCatchUp(batch.map(({ change }) => this.#newest(change))))
        batch.forEach((wanted, index) => wanted.resolve(revs[index] ?? this.#rev))
      } catch (error) {
        this.#lost(error)
        for (const wanted of batch) wanted.reject(error)
      }
    }
    this.#draining = false
  }

  /** A wish that was overtaken while it waited in the queue must not undo the newer one. */
  #newest({ kind, id }: ProjectionChange): ProjectionChange {
    const text = this.#records[kind].get(id)
    return this.#unsure.get(`${kind} ${id}`) ?? (text === undefined ? { kind, op: 'del', id } : { kind, op: 'put', id, text })
  }

  #exclusive<T>(talk: () => Promise<T>): Promise<T> {
    const next = this.#last.then(talk, talk)
    this.#last = next.catch(() => undefined) // each caller handles its own failure
    return next
  }

  /** The first write that arrives after an outage takes along what was missed: a revocation must not wait for the next check. */
  async #writeAndCatchUp(changes: readonly ProjectionChange[]): Promise<readonly number[]> {
    const wasAway = !this.#available
    const revs = await this.#write(changes)
    if (wasAway) await this.#catchUp()
    return revs
  }

  async #write(changes: readonly ProjectionChange[]): Promise<readonly number[]> {
    this.#deps.assertLeading()
    if (this.#epoch === '') await this.#takeOver(this.#rev)
    const outcome = await this.#deps.store.write(this.#deps.fence(), this.#epoch, changes, this.#rev)
    if (outcome.outcome === 'fenced') return this.#fenced(outcome.fence)
    if (outcome.outcome === 'foreign-epoch') {
      await this.#rebuild('the store holds another data set, or went back to an older state')
      return changes.map(() => this.#rev)
    }
    this.#written(changes, outcome.revs)
    return outcome.revs
  }

  #written(changes: readonly ProjectionChange[], revs: readonly number[]): void {
    changes.forEach((change, index) => {
      const key = `${change.kind} ${change.id}`
      const rev = revs[index] ?? this.#rev
      this.#rev = Math.max(this.#rev, rev)
      this.#known.set(key, { text: change.op === 'put' ? change.text : undefined, rev })
      if (this.#unsure.get(key) === change) this.#unsure.delete(key)
    })
    this.#reached()
  }

  /** First contact: what is there is adopted when it can be ours, and made equal to what is wanted. */
  async #takeOver(floor: number): Promise<void> {
    this.#deps.assertLeading()
    const meta = await this.#deps.store.meta()
    if (!meta || meta.schema !== PROJECTION_SCHEMA || meta.rev < floor) {
      await this.#rebuild(meta ? 'the store is older than the keyring' : 'the store is empty')
      return
    }
    await this.#claim(meta)
    if (await this.#isBehindGateways(meta)) return await this.#rebuild(WENT_BACK)
    const extras = await this.#extras(meta.epoch)
    this.#epoch = meta.epoch
    this.#rev = meta.rev
    // from here on a failure is made good by the next check, which writes what is not known to have arrived
    for (const change of [...extras, ...this.#all()]) this.#unsure.set(`${change.kind} ${change.id}`, change)
    await this.#catchUp()
    this.#reached()
  }

  /** Puts this leader's fence into the store: from then on a call of a former leader that is still under way is refused. */
  async #claim({ epoch, rev, fence }: ProjectionMeta): Promise<void> {
    await this.#outbid(fence)
    const own = this.#deps.fence()
    const outcome = await this.#deps.store.write(own, epoch, [], rev)
    if (outcome.outcome === 'fenced') this.#fenced(outcome.fence)
    if (outcome.outcome === 'foreign-epoch') throw new Error('the store changed while it was taken over; it is tried again')
    this.#claimed = own
  }

  /** The Lease was deleted and counts from the start again: else every write would be refused. */
  async #outbid(stored: number): Promise<void> {
    if (stored >= this.#deps.fence() && stored !== this.#claimed) await this.#deps.raiseFence(stored)
  }

  /**
   * A failover to a replica that lagged may go unnoticed here, after a restart for one. Gateways then keep what they have, and their
   * acknowledgements would seem to prove what they have never seen. What they say shows only that: no number of theirs is taken over.
   */
  async #isBehindGateways({ epoch, rev }: ProjectionMeta): Promise<boolean> {
    const live = await this.#deps.store.liveProcesses()
    return live.some(({ acknowledgement: ack }) => ack?.epoch === epoch && ack.rev > rev)
  }

  /** Deletions of what stands in the store and nobody wants. */
  async #extras(epoch: string): Promise<ProjectionChange[]> {
    const extras: ProjectionChange[] = []
    for (const kind of RECORD_KINDS) {
      for (const id of await this.#deps.store.ids(epoch, kind)) {
        if (this.#records[kind].has(id)) continue
        const text = kind === 'key' ? await this.#rescued(epoch, id) : undefined
        if (text === undefined) extras.push({ kind, op: 'del', id })
        else if (!this.#records[kind].has(id)) this.#records[kind].set(id, text)
      }
    }
    return extras.filter(({ kind, id }) => !this.#records[kind].has(id)) // wanted meanwhile
  }

  async #rescued(epoch: string, id: string): Promise<string | undefined> {
    const text = await this.#deps.store.record(epoch, 'key', id)
    const kept = text === undefined ? undefined : await this.#deps.rescue(id, text)
    return this.#unsure.get(`key ${id}`)?.op === 'del' ? undefined : kept // deleted meanwhile
  }

  async #catchUp(): Promise<void> {
    const epoch = this.#epoch
    const missed = [...this.#unsure.values()]
    for (let at = 0; at < missed.length && this.#epoch === epoch; at += BATCH) await this.#write(missed.slice(at, at + BATCH))
  }

  async #rebuild(why: string): Promise<void> {
    this.#deps.assertLeading()
    const meta = await this.#deps.store.meta()
    const rev = Math.max(this.#rev, meta?.rev ?? 0) + 1
    if (meta && this.#epoch === '') await this.#outbid(meta.fence)
    const epoch = randomUUID()
    const records = this.#all()
    const sure = [...this.#unsure.values()]
    const outcome = await this.#deps.store.rebuild(this.#deps.fence(), epoch, rev, records)
    if (outcome.outcome === 'fenced') return void this.#fenced(outcome.fence)
    if (outcome.outcome === 'foreign-epoch') throw new Error('the store changed during a rebuild; it is tried again')
    this.#epoch = epoch
    this.#rev = rev
    this.#known.clear()
    this.#written(records, [])
    this.#written(sure, [])
    this.#deps.log.info(`projection rebuilt because ${why}: ${records.length} records, revision ${rev}`)
  }

  #scheduleCheck(): void {
    if (this.#stopped) return
    this.#cancelCheck = this.#deps.clock.after(CHECK_EVERY_MS, () => {
      void this.#exclusive(() => this.#verify())
        .catch((error: unknown) => this.#lost(error))
        .then(() => this.#scheduleCheck())
    })
  }

  /** Every 2 s: the same data set, nothing rolled back, nothing left unwritten. */
  async #verify(): Promise<void> {
    if (this.#epoch === '') return await this.#takeOver(this.#rev)
    const meta = await this.#deps.store.meta()
    if (meta?.epoch !== this.#epoch) return await this.#rebuild(meta ? 'its epoch changed' : 'the store was emptied')
    if (meta.rev < this.#rev || (await this.#isBehindGateways(meta))) return await this.#rebuild(WENT_BACK)
    this.#reached()
    await this.#catchUp()
  }

  #all(): ProjectionChange[] {
    return RECORD_KINDS.flatMap((kind) => [...this.#records[kind]].map(([id, text]): ProjectionChange => ({ kind, op: 'put', id, text })))
  }

  #reached(): void {
    this.#available = true
    this.#deps.outage.works()
  }

  #lost(error: unknown): void {
    this.#available = false
    if (!this.#stopped)
      this.#deps.outage.failed(`the projection cannot be written: ${error instanceof Error ? error.message : String(error)}`)
  }

  #fenced(fence: number): never {
    this.#deps.onFenced(fence)
    throw new Error(`another leader with fence ${fence} writes the projection`)
  }
}
