/**
 * The operator's side of limits and budgets in Redis. Keeps the function library, seeds budgets before their keys are projected, makes spend
 * durable, restores lost spend, and reports spend to statuses. One turn per second. Gateways wait only for seeds.
 */
import { messageOf } from '#platform/message-of.ts'
import type { Cancel } from '#platform/clock.ts'
import type { LiveProcess } from '../projection/store.ts'
import { LedgerCensus } from './ledger-census.ts'
import { isMissingFunction } from '../redis-library.ts'
import type { LedgerMetrics } from '../operator-deps.ts'
import type { LedgerKey, OperatorLedgerStore } from './ledger-store.ts'
import { ProcessWatch } from './process-watch.ts'
import type { Interval } from '../shards/spend-entry.ts'
import { shownLoss } from './spend-plan.ts'
import { SpendReader, type SpendReaderDeps } from './spend-reader.ts'
import { StoreTime } from './store-time.ts'
import type { Subjects } from './subject-ledger.ts'

const TURN_MS = 1_000
/** Shortest pause between two turns, ms, for a machine on which a turn takes longer than `TURN_MS`. */
const MIN_PAUSE_MS = 100
/** Time between two checks of the library, ms. */
const LIBRARY_EVERY_MS = 2_000
/** Age at which spend that is not durable counts as late, s. */
const LATE_SECONDS = 30
/** Time after which a deleted subject is dropped again, ms, until nothing was left: running requests may still settle. */
const DROP_AGAIN_MS = 90_000
/** Maximum number of deleted subjects dropped per turn. */
const DROPS_PER_TURN = 200
/** Time from the start to the first walk over all keys, and between two walks, ms. */
const FIRST_WALK_MS = 60_000
const WALK_EVERY_MS = 3_600_000
/** Shortest time between two walks while Redis is nearly full, ms. */
const WALK_AGAIN_MS = 10_000
/** Maximum bytes of a key. A hash of counters or numbers stays far below this bound. */
const MAX_KEY_BYTES = 4_194_304
/** The same while Redis is nearly full: what a walk removes heals, as after a loss of Redis, and a full Redis refuses every key with limits. */
const MAX_KEY_BYTES_IF_FULL = 262_144

export interface BudgetLedgerDeps extends Omit<SpendReaderDeps, 'time'> {
  readonly store: OperatorLedgerStore
  readonly subjects: Pick<Subjects, 'uids' | 'budgetsOf' | 'mayExist' | 'read' | 'doubtful'>
  readonly live: () => readonly LiveProcess[]
  /** Names of the gateway pods that clients can reach. */
  readonly serving: () => ReadonlySet<string>
  /** Log of failures and recoveries of the store, at a limited rate. */
  readonly outage: { failed(line: string): void; works(): void }
  /** The same for the Secrets of durable spend. */
  readonly durability: { failed(line: string): void; works(): void }
  readonly metrics?: LedgerMetrics | undefined
}

export class BudgetLedger {
  readonly #deps: BudgetLedgerDeps
  readonly #time: StoreTime
  readonly #reader: SpendReader
  readonly #processes = new ProcessWatch()
  readonly #census: LedgerCensus
  readonly #sweep: LedgerSweep
  #libraryAtMs = Number.NEGATIVE_INFINITY
  #cancel: Cancel = () => undefined
  #turn: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(deps: BudgetLedgerDeps) {
    this.#deps = deps
    this.#time = new StoreTime(deps.store, deps.clock)
    this.#reader = new SpendReader({ ...deps, time: this.#time })
    this.#census = new LedgerCensus({ ...deps, time: this.#time, processes: this.#processes, uids: () => this.#reader.subjects() })
    this.#sweep = new LedgerSweep(deps)
    deps.metrics?.checkpointAge(() => deps.checkpoint.ageSeconds)
  }

  /** Reads durable spend, before any seed. @throws KubeError if the Secrets cannot be listed */
  async load(): Promise<void> {
    await this.#deps.checkpoint.load()
  }

  start(): void {
    for (const uid of this.#deps.subjects.uids()) this.changed(uid)
    this.#scheduleTurn()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel()
    await this.#turn
    const { checkpoint, outage } = this.#deps
    await checkpoint.flush().catch((error: unknown) => outage.failed(`the spend of budgets is not durable: ${messageOf(error)}`))
    checkpoint.stop()
  }

  changed(uid: string): void {
    this.#reader.changed(uid)
  }

  /** Called when a subject was deleted for certain: its spend is dropped. */
  deleted(uid: string): void {
    this.#reader.drop(uid)
    if (this.#deps.checkpoint.get(uid) !== undefined) this.#deps.checkpoint.remove(uid, 'background')
    this.#sweep.deleted(uid, this.#deps.clock.monotonic())
  }

  /**
   * Drops the spend of subjects that were deleted while no operator ran, and reads the Secrets again. Not at the start: a lost key may be restored
   * later, and the cache of a new leader may be old.
   */
  check(): void {
    const { checkpoint, subjects } = this.#deps
    for (const { uid } of [...checkpoint.entries()]) if (!subjects.mayExist(uid)) this.deleted(uid)
    checkpoint.check()
  }

  get unreadable(): number {
    return [...this.#deps.checkpoint.unreadable()].length
  }

  /** The period in which spend of a key may have been lost; undefined as soon as the status no longer shows the period. */
  loss(uid: string): Interval | undefined {
    const entry = this.#deps.checkpoint.get(uid)
    return entry && shownLoss(entry, this.#time.now())
  }

  /** The time of the store, ms since 1970; undefined before its first answer. */
  storeTime(): number | undefined {
    return this.#time.known()
  }

  /** Names of the budgets of a subject whose spend in Redis is more than anybody can have spent: it is not made durable. */
  heldBack(uid: string): readonly string[] {
    return this.#reader.heldBack(uid)
  }

  /** Seeds the budgets of records on their way to the projection. Never throws: a seed must not delay a revocation. */
  async seedBefore(uids: readonly string[]): Promise<void> {
    try {
      await this.#reader.seed(uids).catch(async (error: unknown) => {
        if (!isMissingFunction(error)) throw error
        await this.#prepare() // an empty Redis has replaced the former one
        await this.#reader.seed(uids)
      })
    } catch (error) {
      this.#deps.outage.failed(`budgets cannot be started, and gateways refuse their keys until then: ${messageOf(error)}`)
    }
  }

  /** Loads the function library and reads the time of the store before the first projection. Never throws: the next turn tries again. */
  async prepareBefore(): Promise<void> {
    try {
      await this.#prepare()
      await this.#time.read()
    } catch (error) {
      this.#deps.outage.failed(`the functions of limits cannot be loaded: ${messageOf(error)}`)
    }
  }

  async #prepare(): Promise<void> {
    await this.#deps.store.prepare()
    this.#libraryAtMs = this.#deps.clock.monotonic()
  }

  #scheduleTurn(delayMs = TURN_MS): void {
    if (this.#isStopped) return
    const { clock } = this.#deps
    this.#cancel = clock.after(delayMs, () => {
      const startedMs = clock.monotonic()
      this.#turn = this.#runTurn().then(() => this.#scheduleTurn(Math.max(MIN_PAUSE_MS, startedMs + TURN_MS - clock.monotonic())))
    })
  }

  async #runTurn(): Promise<void> {
    const { store, clock, outage, assertLeading, live, serving } = this.#deps
    try {
      assertLeading()
      this.#walk(await store.isNearlyFull()) // before a write that a full Redis refuses
      if (clock.monotonic() - this.#libraryAtMs >= LIBRARY_EVERY_MS) await this.#prepare()
      await this.#reader.readDue(() => this.#isStopped)
      if (this.#processes.observe(live(), serving(), clock.monotonic())) this.#census.request()
      await this.#census.turn()
      await this.#sweep.turn(clock.monotonic())
      outage.works()
      this.#checkDurability()
    } catch (error) {
      outage.failed(`the ledger of limits cannot be read: ${messageOf(error)}`)
    }
  }

  #checkDurability(): void {
    const { checkpoint, durability } = this.#deps
    if (checkpoint.ageSeconds < LATE_SECONDS) return durability.works()
    const what = `spend of budgets has not become durable for more than ${LATE_SECONDS} s`
    durability.failed(`${what}; the Secrets hg-spend-* cannot be written: check the API server and the rights of the operator there`)
  }

  /** Starts a walk of the sweep. A walk over many keys takes seconds, so no turn waits for it. */
  #walk(isFull: boolean): void {
    const { clock, outage } = this.#deps
    this.#sweep
      .walk(clock.monotonic(), isFull)
      .catch((error: unknown) => outage.failed(`the ledger of limits cannot be swept: ${messageOf(error)}`))
  }
}

/** Drops orphaned keys of the ledger: all keys of deleted ApiKeys, and keys that no Headgate program writes. Times are monotonic ms. */
class LedgerSweep {
  readonly #deps: BudgetLedgerDeps
  /** Time at which a deleted subject is dropped, and whether that is the first time. */
  readonly #deleted = new Map<string, { readonly dueMs: number; readonly isFirst: boolean }>()
  #walkAtMs: number | undefined
  #againAtMs = Number.NEGATIVE_INFINITY
  #isWalking = false

  constructor(deps: BudgetLedgerDeps) {
    this.#deps = deps
  }

  deleted(uid: string, nowMs: number): void {
    this.#deleted.set(uid, { dueMs: nowMs, isFirst: true })
  }

  /** Drops due subjects. @throws errors of the store; the next turn tries again */
  async turn(nowMs: number): Promise<void> {
    const due = [...this.#deleted].filter(([, { dueMs }]) => dueMs <= nowMs).slice(0, DROPS_PER_TURN)
    if (due.length === 0) return
    const removed = await this.#deps.store.remove(due.map(([uid]) => uid))
    for (const [at, [uid, { isFirst }]] of due.entries()) {
      if (isFirst || removed[at] !== 0) this.#deleted.set(uid, { dueMs: nowMs + DROP_AGAIN_MS, isFirst: false })
      else this.#deleted.delete(uid)
    }
  }

  /** Walks over all keys if a walk is due or Redis is nearly full, and resolves at its end. @throws errors of the store; the next walk starts an hour later */
  async walk(nowMs: number, isFull: boolean): Promise<void> {
    this.#walkAtMs ??= nowMs + FIRST_WALK_MS
    const isDue = nowMs >= (isFull ? this.#againAtMs : this.#walkAtMs)
    if (this.#isWalking || !isDue) return
    this.#againAtMs = nowMs + WALK_AGAIN_MS
    this.#walkAtMs = nowMs + WALK_EVERY_MS
    this.#isWalking = true
    try {
      for await (const keys of this.#deps.store.walk(isFull ? MAX_KEY_BYTES_IF_FULL : MAX_KEY_BYTES)) await this.#sweep(keys)
    } finally {
      this.#isWalking = false
    }
  }

  async #sweep(keys: readonly LedgerKey[]): Promise<void> {
    const { store, subjects, metrics, assertLeading } = this.#deps
    const names = keys
      .filter(({ subject, isDamaged }) => isDamaged || (subject !== undefined && !subjects.mayExist(subject)))
      .map(({ name }) => name)
    if (names.length === 0) return
    assertLeading()
    await store.unlink(names)
    metrics?.swept(names.length)
  }
}
