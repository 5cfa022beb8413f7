/** Reads the spend of budgets, makes it durable, restores lost spend, and reports readings. The owner decides the time of each read. */
import type { Clock } from '#platform/clock.ts'
import { budgetID } from '#contract/ledger/ledger-layout.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import type { LedgerMetrics } from '../operator-deps.ts'
import type { BudgetRead, OperatorLedgerStore, SubjectCheckpoints, WindowSpend } from './ledger-store.ts'
import type { SpendEntry } from '../shards/spend-entry.ts'
import {
  type AskedWindow,
  believed,
  type Belief,
  hasLostSpend,
  isOf,
  knownAfter,
  presentWindows,
  readingsOf,
  withLoss,
} from './spend-plan.ts'
import type { StoreTime } from './store-time.ts'
import type { Subjects, SubjectUsage } from './subject-ledger.ts'
import type { SecretShards } from '../shards/secret-shards.ts'

/** Maximum number of names of settled subjects per read. */
const SETTLED_AT_ONCE = 10_000
/** Maximum number of subjects that are read, compared and reported without a pause for other work. */
const READ_AT_ONCE = 1_000
/** Time after which a restored budget is read again, ms. */
const READ_AGAIN_MS = 1_000
/** Time between two reads of a spending subject, ms. */
const SPENDING_EVERY_MS = 3_000
/** Time between two reads of a subject that no gateway has named, ms. Such a read finds writes of other clients. */
const IDLE_EVERY_MS = 5_000
/** Maximum number of named subjects, and of other subjects, per turn. */
const NAMED_PER_TURN = 10_000
const OTHERS_PER_TURN = 2_000

export interface SpendReaderDeps {
  readonly store: Pick<OperatorLedgerStore, 'settled' | 'read' | 'seed' | 'dropBudgets'>
  /** The durable spend. Spend is put with `commitLater`. */
  readonly checkpoint: SecretShards<SpendEntry>
  readonly clock: Clock
  readonly time: Pick<StoreTime, 'read' | 'now'>
  readonly subjects: Pick<Subjects, 'budgetsOf' | 'read' | 'doubtful'>
  readonly assertLeading: () => void
  readonly metrics?: Pick<LedgerMetrics, 'read' | 'restored'> | undefined
}

interface Seen {
  /** Time of the last read with all known spend, ms since 1970. */
  goodMs: number
  /** ms since 1970. */
  usedMs: number | undefined
  reported: string
  /** Names of budgets whose count in Redis is not believed. */
  heldBack: readonly string[]
  /** The highest amount of each budget, by its id: running calls may have begun under it. */
  readonly amounts: Map<string, number>
  /** Ids of the budgets of the last read with all known spend, or of the first seed; undefined before both. */
  ids: ReadonlySet<string> | undefined
}

export class SpendReader {
  readonly #deps: SpendReaderDeps
  readonly #schedule = new SubjectSchedule()
  readonly #seen = new Map<string, Seen>()

  constructor(deps: SpendReaderDeps) {
    this.#deps = deps
  }

  /** Names of the budgets of a subject whose count in Redis is not believed. */
  heldBack(uid: string): readonly string[] {
    return this.#seen.get(uid)?.heldBack ?? []
  }

  subjects(): Iterable<string> {
    return this.#schedule.uids()
  }

  changed(uid: string): void {
    if (this.#deps.subjects.budgetsOf(uid) === undefined) return this.drop(uid)
    this.#schedule.add(uid, this.#deps.clock.monotonic())
  }

  drop(uid: string): void {
    this.#schedule.delete(uid)
    this.#seen.delete(uid)
  }

  /**
   * Starts budgets from their checkpoints if they have no seed, or less spend, because Redis lost data or went back to an older state.
   * Gateways refuse the keys of budgets without a seed. @throws errors of the store
   */
  async seed(uids: readonly string[]): Promise<void> {
    const { store, assertLeading } = this.#deps
    if (uids.length === 0) return
    assertLeading()
    const returned = uids.filter((uid) => this.#returned(uid).length > 0)
    const ids = uids.map((uid) => this.#deps.subjects.budgetsOf(uid)?.map(budgetID))
    const first = await store.seed(uids.map((uid) => without(this.#checkpointsOf(uid), this.#returned(uid))))
    const damaged = uids.filter((_, at) => first[at] === 'damaged')
    if (damaged.length > 0) {
      await store.dropBudgets(damaged)
      await store.seed(damaged.map((uid) => this.#checkpointsOf(uid)))
    }
    if (returned.length > 0) await store.seed(returned.map((uid) => this.#checkpointsOf(uid)))
    // a budget may be added again before the first read
    for (const [at, uid] of uids.entries()) if (ids[at] !== undefined) this.#seenOf(uid).ids ??= new Set(ids[at])
    await this.#lost(uids.filter((_, at) => first[at] !== 'present'))
  }

  /** Reads due subjects. @param isStopped called between two round trips @throws errors of the store; the rest is then due again */
  async readDue(isStopped: () => boolean): Promise<void> {
    const { store, clock, time } = this.#deps
    await time.read()
    for (const uid of await store.settled(SETTLED_AT_ONCE)) {
      if (!this.#schedule.has(uid)) continue
      this.#seenOf(uid).usedMs = time.now()
      this.#schedule.name(uid, clock.monotonic())
    }
    const due = this.#schedule.due(clock.monotonic())
    for (let at = 0; at < due.length && !isStopped(); at += READ_AT_ONCE) await this.#read(due.slice(at, at + READ_AT_ONCE))
  }

  async #read(due: readonly string[]): Promise<void> {
    const { store, clock, time, metrics, subjects } = this.#deps
    const nowMs = time.now()
    const asked = due.map((uid) => presentWindows(subjects.budgetsOf(uid) ?? [], nowMs))
    const reads = await store.read(due.map((subject, at) => ({ subject, fields: (asked[at] ?? []).map(({ field }) => field) })))
    this.#schedule.wasRead(due, clock.monotonic())
    metrics?.read(due.length)
    const broken: string[] = []
    for (const [at, uid] of due.entries()) {
      const read = reads[at] ?? { state: 'unseeded' }
      if (!this.#schedule.has(uid)) continue
      if (read.state !== 'seeded' || !this.#take(uid, asked[at] ?? [], read)) broken.push(uid)
    }
    const damaged = due.filter((_, at) => reads[at]?.state === 'damaged')
    await this.#repair(broken, damaged)
  }

  /** @returns false if the ledger has less than the known spend */
  #take(uid: string, asked: readonly AskedWindow[], read: BudgetRead & { state: 'seeded' }): boolean {
    const { time, checkpoint } = this.#deps
    const nowMs = time.now()
    const known = checkpoint.get(uid)
    const { windows } = this.#believed(uid, asked, read.windows)
    const after = knownAfter(known, { uid, asked, windows, nowMs })
    if (after !== undefined && after !== known) checkpoint.commitLater(after)
    const seen = this.#seenOf(uid)
    if (hasLostSpend(known, asked, read.windows)) return false
    seen.goodMs = nowMs
    seen.ids = new Set(asked.map(({ budget }) => budgetID(budget)))
    if (isMore(known, after)) seen.usedMs = nowMs
    if (after !== undefined) this.#report(uid, { budgets: readingsOf(asked, read.windows), lastUsedMs: seen.usedMs })
    return true
  }

  #believed(uid: string, asked: readonly AskedWindow[], windows: readonly WindowSpend[]): Belief {
    const { checkpoint, subjects } = this.#deps
    const seen = this.#seenOf(uid)
    const mostAmount = (budget: BudgetRecord): number => {
      const most = Math.max(budget.amount, seen.amounts.get(budgetID(budget)) ?? 0)
      seen.amounts.set(budgetID(budget), most)
      return most
    }
    const belief = believed(checkpoint.get(uid), asked, { windows, mostAmount })
    const isChanged = belief.heldBack.join() !== seen.heldBack.join()
    seen.heldBack = belief.heldBack
    if (isChanged) subjects.doubtful(uid)
    return belief
  }

  /** @param damaged those of the broken subjects whose budgets must be dropped first */
  async #repair(broken: readonly string[], damaged: readonly string[]): Promise<void> {
    const { store, assertLeading } = this.#deps
    if (broken.length === 0) return
    assertLeading()
    await store.dropBudgets(damaged)
    await this.seed(broken)
  }

  /** Marks the loss of spend, except for subjects without spend, and schedules another read. */
  async #lost(uids: readonly string[]): Promise<void> {
    const { checkpoint, clock, time, subjects, metrics } = this.#deps
    const present = uids.filter((uid) => subjects.budgetsOf(uid) !== undefined) // the others were deleted meanwhile
    const known = present.flatMap((uid) => checkpoint.get(uid) ?? []).filter(({ spent }) => spent.size > 0)
    const toMs = known.length > 0 ? await time.read() : 0
    for (const entry of known) {
      const seen = this.#seenOf(entry.uid)
      const interval = { fromMs: seen.goodMs === 0 ? entry.atMs : seen.goodMs, toMs }
      const marked = withLoss(entry, interval)
      checkpoint.commitLater(marked)
      this.#schedule.name(entry.uid, clock.monotonic(), READ_AGAIN_MS)
      subjects.doubtful(entry.uid)
    }
    if (known.length > 0) metrics?.restored(known.length)
  }

  #report(uid: string, usage: SubjectUsage): void {
    const seen = this.#seenOf(uid)
    const text = JSON.stringify([usage.budgets.map(({ spent, windowStartMs }) => [spent, windowStartMs]), hourOf(usage.lastUsedMs)])
    if (text === seen.reported) return
    seen.reported = text
    this.#deps.subjects.read(uid, usage)
  }

  /** Without windows of removed budgets: the ledger may have forgotten them. */
  #checkpointsOf(subject: string): SubjectCheckpoints {
    const budgets = this.#deps.subjects.budgetsOf(subject)
    const spent = [...(this.#deps.checkpoint.get(subject)?.spent ?? [])]
    return { subject, checkpoints: budgets ? spent.filter(([field]) => isOf(field, budgets)) : spent }
  }

  /** Budgets that were removed and added again: the ledger may have forgotten their spend, which is no loss. */
  #returned(uid: string): readonly BudgetRecord[] {
    const ids = this.#seen.get(uid)?.ids
    return ids === undefined ? [] : (this.#deps.subjects.budgetsOf(uid) ?? []).filter((budget) => !ids.has(budgetID(budget)))
  }

  #seenOf(uid: string): Seen {
    const known = this.#seen.get(uid)
    if (known) return known
    const seen: Seen = { goodMs: 0, usedMs: undefined, reported: '', heldBack: [], amounts: new Map(), ids: undefined }
    this.#seen.set(uid, seen)
    return seen
  }
}

function without({ subject, checkpoints }: SubjectCheckpoints, budgets: readonly BudgetRecord[]): SubjectCheckpoints {
  return { subject, checkpoints: checkpoints.filter(([field]) => !isOf(field, budgets)) }
}

function isMore(known: SpendEntry | undefined, after: SpendEntry | undefined): boolean {
  return after !== undefined && after !== known && [...after.spent].some(([field, spent]) => spent > (known?.spent.get(field) ?? 0))
}

function hourOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.floor(ms / 3_600_000)
}

/** Schedules the reads of all subjects with budgets, in the order of their last reads. Pure except for its memory. Times are monotonic ms. */
export class SubjectSchedule {
  readonly #readAt = new Map<string, number>()
  /** Named subjects, and the time before which each is not read. */
  readonly #named = new Map<string, number>()

  has(uid: string): boolean {
    return this.#readAt.has(uid)
  }

  uids(): Iterable<string> {
    return this.#readAt.keys()
  }

  add(uid: string, nowMs: number): void {
    if (this.has(uid)) return
    this.#readAt.set(uid, Number.NEGATIVE_INFINITY)
    this.name(uid, nowMs)
  }

  delete(uid: string): void {
    this.#readAt.delete(uid)
    this.#named.delete(uid)
  }

  /** Schedules a read of a subject with a change. Unknown names are ignored. @param waitMs shortest wait before the read */
  name(uid: string, nowMs: number, waitMs = 0): void {
    const readAt = this.#readAt.get(uid)
    if (readAt === undefined) return
    const notBeforeMs = waitMs > 0 ? nowMs + waitMs : Math.max(nowMs, readAt + SPENDING_EVERY_MS)
    this.#named.set(uid, Math.min(this.#named.get(uid) ?? Infinity, notBeforeMs))
  }

  /** Subjects to read now, named ones first. They stay due until `wasRead`. */
  due(nowMs: number): readonly string[] {
    const named: string[] = []
    for (const [uid, notBeforeMs] of this.#named) {
      if (named.length >= NAMED_PER_TURN) break
      if (notBeforeMs <= nowMs) named.push(uid)
    }
    const due = new Set(named)
    for (const [uid, readAt] of this.#readAt) {
      if (due.size >= named.length + OTHERS_PER_TURN || readAt > nowMs - IDLE_EVERY_MS) break
      due.add(uid)
    }
    return [...due]
  }

  wasRead(uids: readonly string[], nowMs: number): void {
    for (const uid of uids) {
      this.#named.delete(uid)
      if (this.#readAt.delete(uid)) this.#readAt.set(uid, nowMs)
    }
  }
}
