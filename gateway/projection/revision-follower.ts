import { messageOf } from '#platform/message-of.ts'
import { sleep, type Clock } from '#platform/clock.ts'
import { FORMAT, PROJECTION_SCHEMA } from '#contract/records/format.ts'
import { Misconfigured } from '#platform/lifecycle.ts'
import type { Log } from '#platform/log.ts'
import { BackOff } from '#platform/back-off.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { perKind, type RecordKind } from '#contract/records/record-kinds.ts'
import { type Acknowledgement, type LogEntry, MAX_UNREADABLE_RECORDS, type ProjectionMeta } from '#contract/records/revision-log.ts'
import { Heartbeat } from './heartbeat.ts'
import { type ChangedRecord, changedRecords, loadProjection, type Position, StaleProjection } from './projection-load.ts'
import type { ProjectionSource, RecordTable } from './projection-source.ts'

interface FollowerDeps {
  readonly source: ProjectionSource
  readonly tables: Readonly<Record<RecordKind, RecordTable>>
  /** `<pod>/<process>`. The process part is random per start, so that a restarted pod is another process. */
  readonly process: string
  readonly version: string
  readonly clock: Clock
  readonly log: Log
  readonly backends: () => Acknowledgement['backends']
  /** Returns a number in [0, 1), which spreads the reloads of many pods. */
  readonly random: () => number
  /** Called after each full load, when the tables serve it. */
  readonly onLoaded: () => void
}

const READ_WAIT_MS = 1_000
const CHECK_EVERY_MS = 1_000
/** Time for which meta may be ahead of the entries that were read, ms: entries may still be on their way. */
const AHEAD_LIMIT_MS = 2_000
const JITTER_MS = 500
const FIRST_BACKOFF_MS = 500
const LAST_BACKOFF_MS = 10_000
const SHORT_BACKOFF_MS = 1_000
/**
 * A process with unreadable records, and without an older version of one, stays not ready for this long after its first load, ms. The
 * operator may write those records in a version that the process can read.
 */
const SETTLE_MS = 30_000
const NAMED_IN_LOG = 5

/**
 * Keeps the tables equal to the projection. It loads everything once, then applies the revision log entry by entry, and loads everything
 * again whenever the log has a gap. While the store does not answer or reloads, the tables serve their present data.
 */
export class RevisionFollower {
  readonly #deps: FollowerDeps
  readonly #heartbeat: Heartbeat
  readonly #outage: OutageLog
  readonly #stopped = new AbortController()
  readonly #failed = Promise.withResolvers<never>()
  #position: Position | undefined
  #source: Acknowledgement['source'] = 'None'
  #unreadable: UnreadableRecords
  /** Time from which this process is ready; undefined before the first load. */
  #readyAt: number | undefined
  #keyringLacksKeys = false
  #draining = false
  #mustLoad = true
  readonly #backOff = new BackOff({ firstMs: FIRST_BACKOFF_MS, maxMs: LAST_BACKOFF_MS })
  #currentAt: number
  #checkedAt = 0
  #aheadSince: number | undefined
  #running: Promise<void> = Promise.resolve()

  constructor(deps: FollowerDeps) {
    this.#deps = deps
    this.#unreadable = new UnreadableRecords(deps.tables)
    this.#currentAt = deps.clock.monotonic()
    this.#outage = new OutageLog('projection', deps.log, deps.clock)
    this.#heartbeat = new Heartbeat({ ...deps, acknowledgement: () => this.#acknowledgement() })
    this.#failed.promise.catch(() => undefined) // the program observes it through `failed`
  }

  /** Source of the tables; None until something was loaded. */
  get loadedFrom(): Acknowledgement['source'] {
    return this.#source
  }

  get loaded(): boolean {
    return this.#source !== 'None'
  }

  get ready(): boolean {
    return this.#readyAt !== undefined && this.#deps.clock.monotonic() >= this.#readyAt
  }

  /** Whether a key exists of which this process could read no record. It then cannot say that an unknown Credential is invalid. */
  get lacksKeys(): boolean {
    return this.#source === 'Keyring' ? this.#keyringLacksKeys : this.#unreadable.lacksKeys
  }

  get unreadableRecords(): number {
    return this.#unreadable.size
  }

  /** Time since the tables were last known to miss no change, ms. Before the first load it is the time since the start. */
  get unreadForMs(): number {
    return this.#deps.clock.monotonic() - this.#currentAt
  }

  /** Position of the last applied change; undefined before the first load from the projection. */
  get position(): Position | undefined {
    return this.#position
  }

  /** Rejects with Misconfigured when the store can never be used. A process that already serves continues instead. */
  get failed(): Promise<never> {
    return this.#failed.promise
  }

  start(): void {
    this.#heartbeat.start()
    this.#running = this.#run()
  }

  /** The projection replaces these tables once it can be loaded. @param lacksKeys whether the keyring has unreadable entries */
  startedFromKeyring(lacksKeys: boolean): void {
    if (this.#source === 'None') this.#source = 'Keyring'
    this.#keyringLacksKeys = lacksKeys
    this.#loadedNow()
    this.#heartbeat.request()
  }

  /** Reports in the next heartbeat that this process takes no new requests. */
  drain(): void {
    this.#draining = true
    this.#heartbeat.request()
  }

  /** Stops following, removes this process from the live ones, and closes the source. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#heartbeat.stop()
    await this.#deps.source.close()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      try {
        if (this.#mustLoad) await this.#load()
        await this.#follow()
      } catch (error) {
        if (this.#stopped.signal.aborted || this.#giveUp(error)) return
        this.#outage.failed(messageOf(error))
        await this.#pause(this.#pauseAfter(error))
      }
    }
  }

  /** Computes the pause. It is long only between full loads of serving pods: these cost Redis time, and no request waits for them. */
  #pauseAfter(error: unknown): number {
    if (error instanceof StaleProjection) return FIRST_BACKOFF_MS
    const longest = this.#mustLoad && this.#position ? LAST_BACKOFF_MS : SHORT_BACKOFF_MS
    return Math.min(this.#backOff.next(), longest)
  }

  #giveUp(error: unknown): boolean {
    const hopeless = error instanceof Misconfigured && this.#source === 'None'
    if (hopeless) this.#failed.reject(error)
    return hopeless
  }

  async #load(): Promise<void> {
    const { source, tables, clock, log } = this.#deps
    if (this.#position) await this.#pause(0) // all pods see a new epoch within the same second
    const startedAt = clock.monotonic()
    const loaded = await loadProjection(source, tables, this.#position, this.#stopped.signal)
    this.#position = loaded.position
    this.#unreadable = new UnreadableRecords(tables, loaded.unreadable)
    this.#reportUnreadable(loaded.unreadable)
    this.#source = 'Redis'
    this.#loadedNow()
    this.#mustLoad = false
    this.#isCurrent()
    this.#heartbeat.request()
    log.info({ ...loaded.position, records: loaded.records, ms: Math.round(clock.monotonic() - startedAt) }, 'projection loaded')
    this.#deps.onLoaded()
  }

  /** Returns when a full load is needed; throws when the store does not answer, and is called again afterwards. */
  async #follow(): Promise<void> {
    this.#aheadSince = undefined
    let why = await this.#check(0) // after an outage, entries of another data set may look like a continuation
    while (why === undefined && !this.#stopped.signal.aborted) {
      this.#isCurrent()
      const entries = await this.#deps.source.read(this.#position?.revision ?? 0, READ_WAIT_MS)
      why = await this.#apply(entries)
      if (entries.length > 0) this.#heartbeat.request()
      why ??= await this.#check(CHECK_EVERY_MS)
    }
    if (why === undefined) return
    this.#mustLoad = true
    this.#deps.log.warn(`projection is loaded again: ${why}`)
  }

  /** Applies entries. @returns why they do not continue the applied ones */
  async #apply(entries: readonly LogEntry[]): Promise<string | undefined> {
    const { position } = this
    const last = entries.at(-1)
    if (!last) return undefined
    if (!position) return 'nothing was loaded'
    const gap = gapIn(entries, position.revision)
    if (gap !== undefined) return gap
    try {
      this.#change(await changedRecords(this.#deps.source, position.epoch, entries))
    } catch (error) {
      if (error instanceof StaleProjection) return error.message
      throw error // the store does not answer; the entries are read again
    }
    this.#position = { ...position, revision: last.revision }
    this.#aheadSince = undefined
    return undefined
  }

  #change(records: readonly ChangedRecord[]): void {
    const failed = new Map<string, RecordKind>()
    for (const { kind, id, text } of records) {
      const table = this.#deps.tables[kind]
      if (text === undefined) table.delete(id)
      if (text === undefined || table.put(id, text)) this.#unreadable.remove(kind, id)
      else {
        this.#unreadable.add(kind, id)
        failed.set(id, kind)
      }
    }
    this.#reportUnreadable(failed)
    this.#settle()
  }

  /** Logs one line for all unreadable records. After an upgrade of the operator there may be thousands. */
  #reportUnreadable(failed: ReadonlyMap<string, RecordKind>): void {
    if (failed.size === 0) return
    const uids = [...failed.keys()].slice(0, NAMED_IN_LOG)
    this.#deps.log.error(
      { records: failed.size, uids },
      'records cannot be read by this version; the last good ones stay in use: update the gateway',
    )
  }

  #loadedNow(): void {
    this.#readyAt ??= this.#deps.clock.monotonic() + SETTLE_MS
    this.#settle()
  }

  #settle(): void {
    if (this.lacksKeys || this.#unreadable.lacksAny || this.#readyAt === undefined) return
    this.#readyAt = Math.min(this.#readyAt, this.#deps.clock.monotonic())
  }

  /** Compares the position with meta: entries alone do not reveal another data set. @returns why a full load is needed */
  async #check(everyMs: number): Promise<string | undefined> {
    const now = this.#deps.clock.monotonic()
    if (now - this.#checkedAt < everyMs && this.#aheadSince === undefined) return undefined
    const meta = await this.#deps.source.meta()
    this.#checkedAt = now
    return this.#position && this.#difference(this.#position, meta, now)
  }

  #difference(position: Position, meta: ProjectionMeta | undefined, now: number): string | undefined {
    if (!meta) return 'the store was emptied'
    if (meta.schema !== PROJECTION_SCHEMA || meta.epoch !== position.epoch) return 'the data set changed'
    if (meta.revision < position.revision) return `the store went back to revision ${meta.revision} from ${position.revision}`
    if (meta.revision === position.revision) this.#aheadSince = undefined
    else this.#aheadSince ??= now
    if (this.#aheadSince !== undefined && now - this.#aheadSince >= AHEAD_LIMIT_MS)
      return `the log lacks the entries up to ${meta.revision}`
    return undefined
  }

  #isCurrent(): void {
    this.#backOff.reset()
    if (this.#aheadSince === undefined) this.#currentAt = this.#deps.clock.monotonic()
    this.#outage.works()
  }

  #pause(ms: number): Promise<void> {
    return sleep(this.#deps.clock, ms + this.#deps.random() * JITTER_MS, this.#stopped.signal)
  }

  #acknowledgement(): Acknowledgement {
    return {
      epoch: this.#position?.epoch ?? '',
      revision: this.#position?.revision ?? 0,
      source: this.#source,
      ready: this.ready && !this.#draining,
      version: this.#deps.version,
      schemas: [...FORMAT.reads],
      features: [...FORMAT.features],
      unreadable: this.#unreadable.reported,
      backends: this.#deps.backends(),
    }
  }
}

/** Checks that entries continue a revision. @returns the reason if they do not */
function gapIn(entries: readonly LogEntry[], revision: number): string | undefined {
  const at = entries.findIndex((entry, index) => entry.revision !== revision + 1 + index)
  return at < 0 ? undefined : `revision ${entries[at]?.revision} follows ${revision + at} in the log`
}

/** Records whose newest text this process cannot read, because another version wrote it or it is damaged. */
export class UnreadableRecords {
  readonly #tables: Readonly<Record<RecordKind, Pick<RecordTable, 'has'>>>
  readonly #ids = new Set<string>()
  /** Those without any readable older text. */
  readonly #lacking = perKind(() => new Set<string>())

  /** @param found the unreadable ids of a full load that the tables serve */
  constructor(tables: Readonly<Record<RecordKind, Pick<RecordTable, 'has'>>>, found: ReadonlyMap<string, RecordKind> = new Map()) {
    this.#tables = tables
    for (const [id, kind] of found) this.add(kind, id)
  }

  get reported(): string[] {
    return [...this.#ids].slice(0, MAX_UNREADABLE_RECORDS)
  }

  get size(): number {
    return this.#ids.size
  }

  /** Whether a key exists without any readable text. An unknown Credential may then be its. */
  get lacksKeys(): boolean {
    return this.#lacking.key.size > 0
  }

  get lacksAny(): boolean {
    return Object.values(this.#lacking).some(({ size }) => size > 0)
  }

  add(kind: RecordKind, id: string): void {
    this.#ids.add(id)
    if (!this.#tables[kind].has(id)) this.#lacking[kind].add(id)
  }

  /** Removes an id: its record was read or deleted. */
  remove(kind: RecordKind, id: string): void {
    this.#ids.delete(id)
    this.#lacking[kind].delete(id)
  }
}
