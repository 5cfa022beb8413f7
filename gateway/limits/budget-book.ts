import type { BudgetReply, BudgetReport, BudgetRequest, LedgerAnswer } from '#contract/ledger/ledger-call.ts'
import { budgetField, budgetID, GRANTS, type LedgerTiming, longestLeaseMs, MAX_AMOUNT, MAX_SUM } from '#contract/ledger/ledger-layout.ts'
import { type BudgetWindow, type BudgetWindows, isIn, type windowsAt } from '#contract/values/budget-window.ts'
import { appended } from './short-list.ts'
import { DemandAverage } from './demand-average.ts'
import type { BudgetSnapshot, BudgetSpec } from './ledger.ts'
import { MIN_AHEAD, type Waiting } from './rate-lease.ts'

/** One window of a budget in one process. */
interface BudgetAccount {
  readonly window: BudgetWindow
  running: number
  /** Held for later requests (float). */
  float: number
  spent: number
  /** Held, as the store has acknowledged; undefined if unknown. */
  acknowledgedHeld: number | undefined
  acknowledgedSpent: number
  /** See `BudgetReport`. */
  seed: string
  base: number
  seen: number
}

export interface BudgetPiece {
  readonly book: BudgetBook
  readonly account: BudgetAccount
  readonly amount: number
}

export interface SentReport {
  readonly account: BudgetAccount
  readonly row: BudgetReport
}

export type Calendar = typeof windowsAt

export interface Times {
  /** Monotonic ms. */
  readonly now: number
  /** Time of the store as far as this process knows, ms since 1970. It is never behind the store. */
  readonly storeNow: number
}

/** Largest float, in micro-units: 0.05 of the currency. */
export const MAX_FLOAT_MICROS = 50_000
/** A float is returned after this time without a request; while half of the budget is free, only when the demand is over too. */
export const FLOAT_IDLE_MS = 2_000
/** A refill is due when one part in `REFILL_PART` of the last grant is left. */
export const REFILL_PART = 4

/** One budget of one subject in one process. Monotonic times are called `now`, times of the store `storeNow`. */
export class BudgetBook {
  spec: BudgetSpec
  readonly id: string
  readonly #calendar: Calendar
  /** Rarely more than one. */
  #accounts: BudgetAccount[] = []
  /** Undefined without demand. */
  #demand: DemandAverage | undefined
  #windows: BudgetWindows | undefined
  #current: BudgetAccount | undefined
  /** Monotonic ms before which the window of `#current` has not ended. */
  #currentUntil = -Infinity
  #reply: BudgetReply | undefined
  #usedAt = -Infinity
  #lastGrant = 0
  #lastHold = 0
  #isClosed = false
  #localUsed = 0
  /** Whether a request has cost more than it held since the last reply. */
  #isPassed = false

  constructor(spec: BudgetSpec, calendar: Calendar) {
    this.spec = spec
    this.id = shared(budgetID(spec))
    this.#calendar = calendar
  }

  canTake(amount: number, now: number): boolean {
    return this.#isAudit || (this.#current !== undefined && now < this.#currentUntil && amount <= this.#current.float)
  }

  take(amount: number, now: number, storeNow: number): BudgetPiece {
    if (this.#isAudit) return { book: this, account: this.#account(this.#windowsAt(storeNow)[0]), amount: 0 }
    const account = this.#current ?? this.#account(this.#windowsAt(storeNow)[0])
    this.#demand ??= new DemandAverage(now)
    this.#demand.add(amount)
    this.#lastHold = amount
    this.#usedAt = now
    account.float -= amount
    account.running += amount
    return { book: this, account, amount }
  }

  /** Ends a hold. @param spent the cost of the request, even above the hold */
  settle({ account, amount }: BudgetPiece, spent: number): void {
    account.running -= amount
    account.spent = Math.min(MAX_SUM, account.spent + spent)
    if (spent > amount) this.#isPassed = true
  }

  /** @returns the request to the store; a float that is too small is returned first, so that the store sees the whole need */
  request(waiting: Waiting, timing: LedgerTiming, { now, storeNow }: Times): BudgetRequest {
    const [present, next] = this.#windowsAt(storeNow)
    const float = this.#spendableFloat(now)
    const isShort = waiting.first > float
    if (isShort && this.#current) this.#current.float = 0
    return {
      budget: this.id,
      amount: this.spec.amount,
      need: isShort ? waiting.first : 0,
      ask: Math.max(0, waiting.all - (isShort ? 0 : float)),
      want: Math.max(0, this.#expected(timing) - (isShort ? 0 : float)),
      windows: [sendable(present), sendable(next)],
    }
  }

  isRefillDue(now: number, timing: LedgerTiming): boolean {
    if (this.#rest === undefined || this.#rest * GRANTS.lastBudgetPart <= this.spec.amount) return false
    if (this.#demand === undefined || this.#demand.within(timing.leaseMs) === 0) return false
    return this.#spendableFloat(now) * REFILL_PART <= this.#lastGrant && this.#expected(timing) > 0
  }

  /** Absolute state of every window that the store does not know yet; with `all`, of the open window too. */
  reports(all: boolean): SentReport[] {
    const due = this.#accounts.filter((account) => isDue(account) || (all && account === this.#current))
    return due.map((account) => ({ account, row: this.#report(account) }))
  }

  /** @param sentAt monotonic ms: the window ends here before it ends in the store */
  granted(reply: BudgetReply, { seed, nowMs: storeNow }: LedgerAnswer, sentAt: number): void {
    const window = this.#windows?.find(({ startMs }) => startMs === reply.startMs)
    if (!window) return
    const account = this.#account(window)
    if (this.#current && account !== this.#current) this.#current.float = 0
    this.#current = account
    this.#currentUntil = sentAt + window.endMs - storeNow
    account.float += reply.grant
    if (reply.grant > 0) this.#lastGrant = reply.grant
    if (account.acknowledgedHeld !== undefined) account.acknowledgedHeld += reply.grant
    if (account.seed === '') account.seed = seed
    if (account.seed === seed) account.seen = Math.max(account.seen, reply.spent)
    this.#reply = reply
    this.#localUsed = 0
    this.#isPassed = false
  }

  /** Neither known window contains the time of the store. */
  forgetWindows(): void {
    this.#windows = undefined
  }

  /** Marks the state of the store as unknown. The store may also have granted in a window that no reply has named yet. */
  forgetReports(): void {
    for (const window of this.#windows ?? []) this.#account(window)
    for (const account of this.#accounts) account.acknowledgedHeld = undefined
  }

  /** Returns an idle float and drops windows that have ended and are settled. @returns true if a float is returned */
  tick(now: number, storeNow: number): boolean {
    if (this.#demand?.tick(now)) this.#demand = undefined
    const isGivenBack = this.#endIdleFloat(now)
    if (this.#accounts.some((account) => isOver(account, storeNow))) this.#forgetOver(storeNow)
    return isGivenBack
  }

  end(): void {
    this.#demand = undefined
    if (this.#current) this.#current.float = 0
  }

  close(): void {
    this.end()
    this.#isClosed = true
  }

  get isReportDue(): boolean {
    return this.#accounts.some(isDue)
  }

  get isBrisk(): boolean {
    return this.#demand?.isBrisk ?? false
  }

  /** Whether there is no float that could end. */
  get isQuiet(): boolean {
    return this.#current === undefined || this.#current.float === 0
  }

  /** A twentieth of the amount was free at the last reply, and no request has cost more than it held: no request waits for holds. */
  get isRoomy(): boolean {
    return this.#isAudit || (this.#rest !== undefined && this.#rest * GRANTS.lastBudgetPart > this.spec.amount && !this.#isPassed)
  }

  /** Whether there is no hold and the store knows everything. The spend of this process in open windows stays known. */
  get isIdle(): boolean {
    return this.#accounts.every((account) => !isDue(account) && account.running + account.float === 0)
  }

  get isUnused(): boolean {
    return this.isIdle && this.#accounts.every(({ spent }) => spent === 0)
  }

  /** Over all processes, as of the last reply; undefined without a reply about the present window. */
  get snapshot(): BudgetSnapshot | undefined {
    if (!this.#current || !this.#reply) return undefined
    const { name, unit, window, amount } = this.spec
    const { spent, held, unsettled, startMs } = this.#reply
    const endMs = window === 'Lifetime' ? Infinity : this.#current.window.endMs
    return { name, unit, window, amount, spent, held, unsettled, startMs, endMs }
  }

  canTakeLocal(amount: number, live: number, storeNow: number): boolean {
    if (this.#isAudit) return true
    if (this.#current === undefined || this.#rest === undefined) return false
    if (storeNow >= this.#current.window.endMs) return false
    return this.#localUsed + amount <= Math.floor(Math.max(0, this.#rest) / live)
  }

  takeLocal(amount: number, now: number, storeNow: number): BudgetPiece {
    if (!this.#isAudit && this.#current) {
      this.#localUsed += amount
      this.#current.float += amount
    }
    return this.take(amount, now, storeNow)
  }

  #forgetOver(storeNow: number): void {
    this.#accounts = this.#accounts.filter((account) => !isOver(account, storeNow))
    if (this.#current && !this.#accounts.includes(this.#current)) this.#current = undefined
  }

  #endIdleFloat(now: number): boolean {
    if (!this.#current || this.#current.float === 0) return false
    const isUsed = now - this.#usedAt < FLOAT_IDLE_MS || (this.#isHalfFree && this.#demand !== undefined)
    if (isUsed && now < this.#currentUntil) return false
    this.#current.float = 0
    return true
  }

  /** Free units at the last reply, of the present amount. */
  get #rest(): number | undefined {
    return this.#reply && this.spec.amount - this.#reply.spent - this.#reply.unsettled - this.#reply.held
  }

  /** Half of the budget was free at the last reply, so a float takes nothing that other processes need. */
  get #isHalfFree(): boolean {
    return this.#rest !== undefined && 2 * this.#rest >= this.spec.amount
  }

  get #isAudit(): boolean {
    return this.spec.onExceeded === 'Audit'
  }

  /** Drops the float of a window that has ended. */
  #spendableFloat(now: number): number {
    if (!this.#current) return 0
    if (now >= this.#currentUntil) this.#current.float = 0
    return this.#current.float
  }

  #expected(timing: LedgerTiming): number {
    if (this.#isClosed || this.#demand === undefined) return 0
    const expected = this.#isHalfFree ? this.#demand.within(longestLeaseMs(timing), MIN_AHEAD) : this.#demand.within(timing.leaseMs)
    const float = Math.min(expected, this.spec.unit === 'Currency' ? MAX_FLOAT_MICROS : MAX_AMOUNT)
    return float >= this.#lastHold ? float : 0 // a float that is too small for a request would only be fetched and returned
  }

  #report(account: BudgetAccount): BudgetReport {
    const { window, running, float, spent, acknowledgedSpent: acknowledged, seed, base, seen } = account
    return { field: budgetField(this.id, window.startMs), seed, held: running + float, spent, acknowledged, base, seen }
  }

  #account(window: BudgetWindow): BudgetAccount {
    const found = this.#accounts.find((account) => account.window.startMs === window.startMs)
    if (found) return found
    const account = { window, running: 0, float: 0, spent: 0, acknowledgedHeld: 0, acknowledgedSpent: 0, seed: '', base: 0, seen: 0 }
    this.#accounts = appended(this.#accounts, account)
    return account
  }

  #windowsAt(storeNow: number): BudgetWindows {
    const known = this.#windows
    if (known && isIn(known[0], storeNow)) return known
    const { window, timeZone } = this.spec
    this.#windows = this.#calendar(window, timeZone, storeNow)
    return this.#windows
  }
}

/** Names of budgets, each stored once: thousands of subjects share a few names, and a name takes as much memory as several fields. */
const names = new Map<string, string>()
const MAX_NAMES = 1_000

function shared(id: string): string {
  const found = names.get(id)
  if (found !== undefined) return found
  if (names.size < MAX_NAMES) names.set(id, id)
  return id
}

export function acknowledgeReport({ account, row }: SentReport, spentByAll: number, seed: string): void {
  account.acknowledgedHeld = row.held
  account.acknowledgedSpent = row.spent
  if (row.seed !== seed) Object.assign(account, { seed, base: row.acknowledged })
  account.seen = Math.max(account.seen, spentByAll)
}

function isDue(account: BudgetAccount): boolean {
  return account.running + account.float !== account.acknowledgedHeld || account.spent !== account.acknowledgedSpent
}

/** Whether the window of an account has ended and the store knows all of its state. */
function isOver(account: BudgetAccount, storeNow: number): boolean {
  return account.window.endMs <= storeNow && !isDue(account) && account.running === 0
}

function sendable({ startMs, endMs }: BudgetWindow): BudgetWindow {
  return { startMs, endMs: Math.min(endMs, MAX_AMOUNT) }
}
