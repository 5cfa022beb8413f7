/**
 * The operator's side of limits and budgets in Redis: keeps the function library, seeds budgets before their keys are projected, makes
 * their spend durable, restores what was lost, and tells statuses what was spent. One turn each second; gateways wait for none of it but
 * a seed.
 */
import type { Cancel, Clock } from '../../gateway/process/clock.ts'
import type { BudgetRecord } from '../../gateway/shared/limits-record.ts'
import type { KeyUsage } from '../apikey/usage.ts'
import type { LiveProcess } from '../projection/store.ts'
import { LedgerCensus } from './ledger-census.ts'
import { isMissingFunction } from './library-keeper.ts'
import type { BudgetRead, OperatorLedgerStore, SubjectCheckpoints } from './ledger-store.ts'
import { LedgerSweep } from './ledger-sweep.ts'
import { ProcessWatch } from './process-watch.ts'
import type { SpendCheckpoint } from './spend-checkpoint.ts'
import type { Interval, SpendEntry } from './spend-entry.ts'
import { type AskedWindow, knownAfter, lostSpend, presentWindows, readingsOf, shownLoss, withLoss } from './spend-plan.ts'
import { type DueSubject, SubjectSchedule } from './subject-schedule.ts'

const TURN_MS = 1_000
/** Pause between two turns on a machine on which each takes longer. */
const LEAST_PAUSE_MS = 100
/** The library is checked at every other turn. */
const LIBRARY_EVERY_MS = 2_000
/** Names of settled subjects taken per turn. */
const SETTLED_PER_TURN = 10_000
/** Spend that is known for so long is written late, s. */
const LATE_SECONDS = 30
/** Subjects read, judged and reported in one piece; other work gets its turn in between. */
const READ_AT_ONCE = 1_000
/**
 * After a failover to an older state processes report what they know by themselves; only what is missing then is restored. The projection finds
 * out within 2 s, if the state is old enough to show there, and processes report within a second or two after its rebuild. ms.
 */
const HEAL_MS = 2_000
const HEAL_AFTER_REBUILD_MS = 3_000

/** What the ledger needs from its surroundings. */
export interface BudgetLedgerDeps {
  readonly store: OperatorLedgerStore
  readonly checkpoint: SpendCheckpoint
  readonly clock: Clock
  /** Budgets in force of a key that exists; undefined: none, or no such key. */
  readonly budgetsOf: (uid: string) => readonly BudgetRecord[] | undefined
  /** Whether there is an ApiKey of this uid, or may be. */
  readonly isKnown: (uid: string) => boolean
  /** Heartbeats of the last seconds; undefined: the store has not been asked. */
  readonly live: () => readonly LiveProcess[]
  /** Names of the gateway pods that clients can reach. */
  readonly serving: () => ReadonlySet<string>
  /** Throws when this process no longer leads. */
  readonly assertLeading: () => void
  readonly outage: { failed(line: string): void; works(): void }
  /** The same of the Secrets that make spend durable. */
  readonly durability: { failed(line: string): void; works(): void }
  /** Something is newly known about the use of a key. */
  readonly onRead: (uid: string, usage: KeyUsage) => void
  /** The ledger had lost spend of a key, and has it again as far as it is known. */
  readonly onLoss: (uid: string) => void
  readonly metrics?: LedgerMetrics | undefined
}

/** What the ledger measures. */
export interface LedgerMetrics {
  /** Subjects were read. */
  read(subjects: number): void
  /** Subjects of which the ledger had lost spend. */
  restored(subjects: number): void
  /** Holds of dead processes were counted as spent. */
  reaped(holds: number): void
  /** Keys without an owner were dropped. */
  swept(keys: number): void
  /** @param seconds asked at each scrape: how long the oldest known spend waits to become durable */
  checkpointAge(seconds: () => number): void
}

/** What is remembered of one subject besides its checkpoint. */
interface Seen {
  /** When a read last showed everything that was known, ms since 1970. */
  goodMs: number
  /** When a read first showed less, monotonic ms. */
  lowSinceMs: number | undefined
  /** ms since 1970. */
  usedMs: number | undefined
  /** What was reported last. */
  reported: string
}

/** One per leading operator. */
export class BudgetLedger {
  readonly #deps: BudgetLedgerDeps
  readonly #schedule = new SubjectSchedule()
  readonly #seen = new Map<string, Seen>()
  readonly #processes = new ProcessWatch()
  readonly #census: LedgerCensus
  readonly #sweep: LedgerSweep
  #libraryAtMs = Number.NEGATIVE_INFINITY
  /** The projection was last rebuilt, monotonic ms. */
  #wentBackAtMs = Number.NEGATIVE_INFINITY
  #cancel: Cancel = () => undefined
  #turn: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(deps: BudgetLedgerDeps) {
    this.#deps = deps
    const { store, budgetsOf, isKnown, assertLeading, metrics } = deps
    const subjects = (): Iterable<string> => this.#schedule.uids()
    this.#census = new LedgerCensus({ store, processes: this.#processes, subjects, budgetsOf, onReaped: (holds) => metrics?.reaped(holds) })
    this.#sweep = new LedgerSweep({ store, isKnown, assertLeading, onSwept: (keys) => metrics?.swept(keys) })
    metrics?.checkpointAge(() => deps.checkpoint.ageSeconds)
  }

  /** Reads the checkpoints, before anything is seeded. @throws KubeError when they cannot be listed */
  load(): Promise<void> {
    return this.#deps.checkpoint.load()
  }

  /** @param uids keys that may have budgets */
  start(uids: Iterable<string>): void {
    for (const uid of uids) this.changed(uid)
    for (const { uid } of this.#deps.checkpoint.entries()) if (!this.#deps.isKnown(uid)) this.deleted(uid)
    this.#scheduleTurn()
  }

  /** Writes what is not durable. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancel()
    await this.#turn
    const { checkpoint, outage } = this.#deps
    await checkpoint.flush().catch((error: unknown) => outage.failed(`the spend of budgets is not durable: ${messageOf(error)}`))
    checkpoint.stop()
  }

  /** The budgets of a key may have changed. */
  changed(uid: string): void {
    const { budgetsOf, clock } = this.#deps
    if (budgetsOf(uid) === undefined) return this.#drop(uid)
    this.#schedule.add(uid, clock.monotonic())
  }

  /** A key is deleted for good. */
  deleted(uid: string): void {
    this.#drop(uid)
    this.#deps.checkpoint.remove(uid)
    this.#sweep.deleted(uid, this.#deps.clock.monotonic())
  }

  /** The projection is being rebuilt: Redis has lost data, or went back to an older state, and every process will report. */
  wentBack(): void {
    this.#wentBackAtMs = this.#deps.clock.monotonic()
  }

  /** Has the Secrets of the checkpoints read again. */
  check(): void {
    this.#deps.checkpoint.check()
  }

  /** Durable spend of another version, which stays as it is. */
  get unreadable(): number {
    return this.#deps.checkpoint.unreadable
  }

  /** The time in which spend of a key may have been lost, as long as a status shows it. */
  loss(uid: string): Interval | undefined {
    const entry = this.#deps.checkpoint.get(uid)
    return entry && shownLoss(entry, this.#deps.clock.now())
  }

  /**
   * Starts budgets that have no seed from their checkpoints: gateways refuse a budgeted key until then. Called before the key is projected,
   * and after the store was emptied.
   * @throws what the store throws: the next turn finds and seeds what has none
   */
  async seed(uids: readonly string[]): Promise<void> {
    const { store, assertLeading } = this.#deps
    if (uids.length === 0) return
    assertLeading()
    const first = await store.seed(uids.map((uid) => this.#checkpointsOf(uid)))
    const damaged = uids.filter((_, at) => first[at] === 'damaged')
    if (damaged.length > 0) {
      await store.dropBudgets(damaged)
      await store.seed(damaged.map((uid) => this.#checkpointsOf(uid)))
    }
    this.#lost(uids.filter((_, at) => first[at] !== 'present'))
  }

  /** The same, of records on their way to the projection. Never throws: a seed must not hold up a revocation. */
  async seedBefore(uids: readonly string[]): Promise<void> {
    try {
      await this.seed(uids).catch(async (error: unknown) => {
        if (!isMissingFunction(error)) throw error
        await this.prepare() // Redis was replaced by an empty one
        await this.seed(uids)
      })
    } catch (error) {
      this.#deps.outage.failed(`budgets cannot be started, and gateways refuse their keys until then: ${messageOf(error)}`)
    }
  }

  /** Loads the function library where it is missing. @throws what the store throws */
  async prepare(): Promise<void> {
    await this.#deps.store.prepare()
    this.#libraryAtMs = this.#deps.clock.monotonic()
  }

  /** The same, before anything is projected. Never throws: the projection does without, and the next turn tries again. */
  async prepareBefore(): Promise<void> {
    await this.prepare().catch((error: unknown) =>
      this.#deps.outage.failed(`the functions of limits cannot be loaded: ${messageOf(error)}`),
    )
  }

  #scheduleTurn(delayMs = TURN_MS): void {
    if (this.#isStopped) return
    const { clock } = this.#deps
    this.#cancel = clock.after(delayMs, () => {
      const startedMs = clock.monotonic()
      this.#turn = this.#runTurn().then(() => this.#scheduleTurn(Math.max(LEAST_PAUSE_MS, startedMs + TURN_MS - clock.monotonic())))
    })
  }

  async #runTurn(): Promise<void> {
    const { clock, outage, assertLeading, live, serving } = this.#deps
    try {
      assertLeading()
      if (clock.monotonic() - this.#libraryAtMs >= LIBRARY_EVERY_MS) await this.prepare()
      await this.#readDue()
      if (this.#processes.observe(live(), serving(), clock.monotonic())) this.#census.request()
      await this.#census.turn({ monotonicMs: clock.monotonic(), wallMs: clock.now() })
      await this.#sweep.turn(clock.monotonic(), clock.now())
      this.#walk()
      outage.works()
      this.#checkDurability()
    } catch (error) {
      outage.failed(`the ledger of limits cannot be read: ${messageOf(error)}`)
    }
  }

  #checkDurability(): void {
    const { checkpoint, durability } = this.#deps
    if (checkpoint.ageSeconds < LATE_SECONDS) return durability.works()
    durability.failed(
      `spend of budgets has not become durable for more than ${LATE_SECONDS} s; the Secrets hg-spend-* cannot be written: check the API server and the rights of the operator there`,
    )
  }

  /** Takes seconds where there are many keys: nothing waits for it. */
  #walk(): void {
    const { clock, outage } = this.#deps
    this.#sweep
      .walk(clock.monotonic())
      .catch((error: unknown) => outage.failed(`the ledger of limits cannot be swept: ${messageOf(error)}`))
  }

  async #readDue(): Promise<void> {
    const { store, clock } = this.#deps
    const used = new Set<string>()
    for (const uid of await store.settled(SETTLED_PER_TURN)) {
      if (!this.#schedule.has(uid)) continue
      used.add(uid)
      this.#seenOf(uid).usedMs = clock.now()
      this.#schedule.name(uid, clock.monotonic())
    }
    const due = this.#schedule.take(clock.monotonic())
    for (let at = 0; at < due.length && !this.#isStopped; at += READ_AT_ONCE) {
      const some = due.slice(at, at + READ_AT_ONCE)
      try {
        await this.#read(some)
      } catch (error) {
        this.#schedule.giveBack(due.slice(at), clock.monotonic())
        throw error
      }
    }
  }

  async #read(due: readonly DueSubject[]): Promise<void> {
    const { store, clock, metrics, budgetsOf } = this.#deps
    const nowMs = clock.now()
    const asked = due.map(({ uid }) => presentWindows(budgetsOf(uid) ?? [], nowMs))
    const reads = await store.read(due.map(({ uid }, at) => ({ subject: uid, fields: (asked[at] ?? []).map(({ field }) => field) })))
    metrics?.read(due.length)
    const broken: string[] = []
    const low: SubjectCheckpoints[] = []
    for (const [at, subject] of due.entries()) {
      const read = reads[at] ?? { state: 'unseeded' }
      if (!this.#schedule.has(subject.uid)) continue
      if (read.state !== 'seeded') broken.push(subject.uid)
      else low.push(...this.#take(subject, asked[at] ?? [], read))
    }
    await this.#repair(broken, reads, due)
    await this.#restore(low)
  }

  /** @returns what has to be restored now */
  #take(
    { uid, sinceMs }: DueSubject,
    asked: readonly AskedWindow[],
    read: BudgetRead & { state: 'seeded' },
  ): readonly SubjectCheckpoints[] {
    const { clock, checkpoint } = this.#deps
    const known = checkpoint.get(uid)
    const after = knownAfter(known, { uid, asked, windows: read.windows, nowMs: clock.now() })
    if (after !== undefined && after !== known) checkpoint.put(after, sinceMs)
    const seen = this.#seenOf(uid)
    const lost = lostSpend(known, asked, read.windows)
    if (lost.length > 0) return this.#isLow(uid, seen) ? [{ subject: uid, checkpoints: lost }] : []
    seen.lowSinceMs = undefined
    seen.goodMs = clock.now()
    if (isMore(known, after)) seen.usedMs = clock.now()
    if (after !== undefined) this.#report(uid, { budgets: readingsOf(asked, read.windows), lastUsedMs: seen.usedMs })
    return []
  }

  /** Processes heal a store that went back: raising it at once would count their spend twice. */
  #isLow(uid: string, seen: Seen): boolean {
    const nowMs = this.#deps.clock.monotonic()
    seen.lowSinceMs ??= nowMs
    const dueMs = Math.max(seen.lowSinceMs + HEAL_MS, this.#wentBackAtMs + HEAL_AFTER_REBUILD_MS)
    if (nowMs >= dueMs) return true
    this.#schedule.name(uid, nowMs, dueMs - nowMs)
    return false
  }

  async #restore(low: readonly SubjectCheckpoints[]): Promise<void> {
    if (low.length === 0) return
    this.#deps.assertLeading()
    const raised = await this.#deps.store.restore(low)
    this.#lost(low.filter((_, at) => (raised[at] ?? 0) > 0).map(({ subject }) => subject))
  }

  async #repair(broken: readonly string[], reads: readonly BudgetRead[], due: readonly DueSubject[]): Promise<void> {
    const { store, assertLeading } = this.#deps
    if (broken.length === 0) return
    assertLeading()
    await store.dropBudgets(due.filter((_, at) => reads[at]?.state === 'damaged').map(({ uid }) => uid))
    await this.seed(broken)
  }

  /** Spend of these subjects was lost, except for those that had none. They are read again at once. */
  #lost(uids: readonly string[]): void {
    const { checkpoint, clock, onLoss, metrics } = this.#deps
    const known = uids.flatMap((uid) => checkpoint.get(uid) ?? []).filter(({ spent }) => spent.size > 0)
    for (const entry of known) {
      const seen = this.#seenOf(entry.uid)
      const interval = { fromMs: seen.goodMs === 0 ? entry.atMs : seen.goodMs, toMs: clock.now() }
      const marked = withLoss(entry, interval)
      checkpoint.put(marked, clock.monotonic())
      seen.lowSinceMs = undefined
      this.#schedule.name(entry.uid, clock.monotonic(), TURN_MS)
      onLoss(entry.uid)
    }
    if (known.length > 0) metrics?.restored(known.length)
  }

  #report(uid: string, usage: KeyUsage): void {
    const seen = this.#seenOf(uid)
    const text = JSON.stringify([usage.budgets.map(({ spent, windowStartMs }) => [spent, windowStartMs]), hourOf(usage.lastUsedMs)])
    if (text === seen.reported) return
    seen.reported = text
    this.#deps.onRead(uid, usage)
  }

  #checkpointsOf(subject: string): SubjectCheckpoints {
    return { subject, checkpoints: [...(this.#deps.checkpoint.get(subject)?.spent ?? [])] }
  }

  #seenOf(uid: string): Seen {
    const known = this.#seen.get(uid)
    if (known) return known
    const seen: Seen = { goodMs: 0, lowSinceMs: undefined, usedMs: undefined, reported: '' }
    this.#seen.set(uid, seen)
    return seen
  }

  #drop(uid: string): void {
    this.#schedule.delete(uid)
    this.#seen.delete(uid)
  }
}

/** The first read after a start shows what was spent while nobody looked: its time is unknown. */
function isMore(known: SpendEntry | undefined, after: SpendEntry | undefined): boolean {
  return after !== undefined && after !== known && [...after.spent].some(([field, spent]) => spent > (known?.spent.get(field) ?? 0))
}

function hourOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.floor(ms / 3_600_000)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
