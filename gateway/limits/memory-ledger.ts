/** The ledger in the memory of one process: limits of a gateway without Redis. `lib/contract/ledger/ledger-acquire.lua` does the same in Redis. */
import {
  RATE_KINDS,
  type BudgetRequest,
  type LedgerAnswer,
  type LedgerBatch,
  type LedgerCall,
  type LedgerReply,
  type PermitReply,
  type PermitRequest,
  type RateKind,
  type RateReply,
  type RateRequest,
} from '#contract/ledger/ledger-call.ts'
import {
  bookingSlot,
  GRANTS,
  LEDGER_TIMING,
  type LedgerTiming,
  MAX_AMOUNT,
  MAX_SKEW_MS,
  MIN_SKEW_MS,
  PERMIT_LIFE_MS,
} from '#contract/ledger/ledger-layout.ts'
import type { LedgerStore } from './ledger.ts'
import type { AccountSpend, LedgerBalance } from '#contract/ledger/account-spend.ts'
import { MemoryBalances } from './memory-balances.ts'
import { MemoryBudgets } from './memory-budgets.ts'
import { RollingWindow } from './rolling-window.ts'

interface Subject {
  nowMs: number
  /** The clock minus the time of the subject. */
  skewMs: number
  readonly rates: Record<RateKind, RollingWindow>
  readonly permits: MemoryPermits
  readonly budgets: MemoryBudgets
  readonly calls: Map<string, number>
  readonly batches: Map<string, number>
}

/** What the reports of a call have found. */
interface Counted {
  /** Of the windows of the budgets. */
  readonly starts: readonly number[]
  readonly balance: ReturnType<MemoryBalances['report']>
}

/** A store for processes that share this object. */
export class MemoryLedgerStore implements LedgerStore {
  readonly #balances = new MemoryBalances()
  readonly #now: () => number
  readonly #timing: LedgerTiming
  readonly #subjects = new Map<string, Subject>()

  /** @param now whole ms since 1970 */
  constructor(now: () => number, timing: LedgerTiming = LEDGER_TIMING) {
    this.#now = now
    this.#timing = timing
  }

  async call(call: LedgerCall): Promise<LedgerReply> {
    return this.answer(call)
  }

  async ping(): Promise<void> {
    return
  }

  /**
   * `call`, at once. The store's time never goes back; one that went back far was corrected, and the windows follow it.
   * @throws LedgerCallRefused for too much spend of a balance
   */
  answer(call: LedgerCall): LedgerReply {
    const subject = this.#subject(call.subject)
    const clockMs = this.#now()
    const { nowMs, isStepped } = timeOf(subject, call, clockMs)
    const last = subject.calls.get(call.process) ?? 0
    if (call.number <= last) return { status: 'stale', nowMs, number: last }
    if (last < call.acknowledged) return lost(subject, call, nowMs)
    this.#balances.check(call)
    if (subject.budgets.wentBack(call)) return lost(subject, call, nowMs)
    subject.calls.set(call.process, call.number)
    subject.nowMs = nowMs
    subject.skewMs = Math.abs(clockMs - nowMs) < MIN_SKEW_MS ? 0 : clockMs - nowMs
    for (const kind of RATE_KINDS) {
      if (isStepped) subject.rates[kind].collapse(nowMs)
      subject.rates[kind].sweep(nowMs)
    }
    if (call.batch) this.#apply(subject, call.process, call.batch)
    if (call.permits) subject.permits.report(call.process, call.permits.held, nowMs)
    return this.#settle(subject, call)
  }

  /** Starts the budgets of a subject from checkpoints, unless they have a seed and all of that spend. @returns the seed in force */
  seed(subject: string, seed: string, checkpoints: ReadonlyArray<readonly [field: string, spent: number]> = []): string {
    return this.#subject(subject).budgets.plant(seed, checkpoints)
  }

  /** Counts the budget holds of a dead process as spent. */
  reap(subject: string, process: string): void {
    this.#subject(subject).budgets.reap(process)
  }

  /** Drops budget windows that are over. */
  forget(subject: string, fields: readonly string[]): void {
    this.#subject(subject).budgets.forget(fields)
  }

  /** Spend by budget window. */
  checkpoint(subject: string): Array<readonly [field: string, spent: number]> {
    return this.#subjects.get(subject)?.budgets.checkpoint() ?? [] // asking about a subject creates none
  }

  /** The same of every subject. */
  checkpoints(): ReadonlyArray<readonly [subject: string, spent: ReadonlyArray<readonly [field: string, spent: number]>]> {
    return Array.from(this.#subjects, ([uid, { budgets }]) => [uid, budgets.checkpoint()] as const)
  }

  /** The bookings of one subject, for tests of the books. */
  booked(subject: string): { readonly rates: Readonly<Record<RateKind, RollingWindow>>; readonly permits: MemoryPermits } {
    return this.#subject(subject)
  }

  /** Drops everything about a subject. */
  drop(subject: string): void {
    this.#subjects.delete(subject)
    this.#balances.drop(subject)
  }

  /** The balances of accounts, in the order of the names. */
  readBalances(names: readonly string[]): ReadonlyArray<LedgerBalance | 'absent'> {
    return names.map((name) => this.#balances.read(name) ?? 'absent')
  }

  /** Takes the maximum of books and balances. `isReady`: the balance may grant from now on. */
  mergeBalances(rows: ReadonlyArray<{ readonly name: string; readonly books: AccountSpend; readonly isReady: boolean }>): void {
    for (const { name, books, isReady } of rows) this.#balances.merge(name, books, isReady)
  }

  /** The present period of each account is at least the given one from now on. */
  raisePeriods(rows: ReadonlyArray<{ readonly name: string; readonly period: number }>): void {
    for (const { name, period } of rows) this.#balances.raise(name, period)
  }

  /** Drops what dead processes hold of balances, unless the amount has changed since the last read. */
  freeHolds(rows: ReadonlyArray<{ readonly name: string; readonly process: string; readonly held: number }>): void {
    for (const { name, process, held } of rows) this.#balances.free(name, process, held)
  }

  /** Drops balances, as if the ledger had never known the accounts. */
  dropBalances(names: readonly string[]): void {
    for (const name of names) this.#balances.drop(name)
  }

  #subject(uid: string): Subject {
    const found = this.#subjects.get(uid)
    if (found) return found
    const subject: Subject = {
      nowMs: 0,
      skewMs: 0,
      rates: { r: new RollingWindow(this.#timing), t: new RollingWindow(this.#timing) },
      permits: new MemoryPermits(),
      budgets: new MemoryBudgets(),
      calls: new Map(),
      batches: new Map(),
    }
    this.#subjects.set(uid, subject)
    return subject
  }

  #apply(subject: Subject, process: string, batch: LedgerBatch): void {
    if (batch.number <= (subject.batches.get(process) ?? 0)) return
    subject.batches.set(process, batch.number)
    const { nowMs } = subject
    for (const { kind, slot, amount } of batch.refunds) subject.rates[kind].refund(slot, amount)
    for (const { kind, slot, amount } of batch.bookings) subject.rates[kind].book(slot, amount, nowMs)
    for (const kind of RATE_KINDS) subject.rates[kind].book(bookingSlot(nowMs, 0, this.#timing), batch.debts[kind], nowMs)
  }

  /** Reports, check, grant. */
  #settle(subject: Subject, call: LedgerCall): LedgerReply {
    const { nowMs, budgets } = subject
    const hasBudgets = call.reports.length + call.budgets.length > 0
    const balance = this.#balances.report(call)
    if (hasBudgets && budgets.seed === '') return { status: 'unseeded', nowMs }
    const spent = call.reports.map((row) => budgets.report(call, row))
    if (call.balance && balance?.isUnready(call.balance)) return { status: 'unseeded', nowMs }
    const starts = call.budgets.map((row) => MemoryBudgets.pick(row, nowMs)?.startMs)
    const known = starts.filter((start) => start !== undefined)
    if (known.length < starts.length) return { status: 'window', nowMs }
    return { ...this.#grant(subject, call, { starts: known, balance }), spent }
  }

  #grant(subject: Subject, call: LedgerCall, { starts, balance }: Counted): Omit<LedgerAnswer, 'spent'> {
    const { nowMs, permits, budgets } = subject
    const isShort = this.#isShort(subject, call, starts) || (call.balance !== undefined && balance?.shortage(call.balance) !== 'No')
    const terms = { isShort, live: call.live, nowMs }
    return {
      status: isShort ? 'short' : 'granted',
      nowMs,
      seed: budgets.seed,
      permits: call.permits && permits.grant(call.process, call.permits, isShort, terms),
      rates: call.rates.map((row) => this.#grantRate(subject, row, terms)),
      budgets: call.budgets.map((row, index) => budgets.grant(call.process, row, starts[index] ?? 0, terms)),
      balance: call.balance && balance?.grant(call.process, call.balance, terms),
    }
  }

  #isShort({ rates, permits, budgets }: Subject, call: LedgerCall, starts: readonly number[]): boolean {
    const isBudgetShort = (row: BudgetRequest, index: number): boolean => budgets.shortage(row, starts[index] ?? 0) !== 'No'
    return (
      call.rates.some((row) => isRateShort(row, rates[row.kind])) ||
      (call.permits !== undefined && isPermitShort(call.permits, permits.free(call.permits.limit))) ||
      call.budgets.some(isBudgetShort)
    )
  }

  #grantRate(
    { rates, nowMs }: Subject,
    row: RateRequest,
    { isShort, live }: { readonly isShort: boolean; readonly live: number },
  ): RateReply {
    const window = rates[row.kind]
    const free = row.limit - window.total
    const waitMs = isRateShort(row, window) ? window.waitMs(row.need, row.limit, nowMs) : 0
    const grant = isShort ? 0 : rateGrant(row, free, live)
    const slot = bookingSlot(nowMs, row.leaseMs, this.#timing)
    window.book(slot, grant, nowMs)
    return { grant, slot, rest: free - grant, resetMs: window.resetMs(nowMs), waitMs }
  }
}

function lost({ calls, batches }: Subject, { process }: LedgerCall, nowMs: number): LedgerReply {
  return { status: 'lost', nowMs, number: calls.get(process) ?? 0, batch: batches.get(process) ?? 0 }
}

/** The time of a subject: the clock within the bounds that the process knows, else as far from the clock as at the last call. */
function timeOf(subject: Subject, { earliestMs, latestMs }: LedgerCall, clockMs: number): { nowMs: number; isStepped: boolean } {
  const bounded = latestMs < MAX_AMOUNT ? Math.max(earliestMs, Math.min(clockMs, latestMs)) : clockMs - subject.skewMs
  const timeMs = Math.abs(clockMs - bounded) > MAX_SKEW_MS ? clockMs : bounded
  const isStepped = subject.nowMs - timeMs > MAX_SKEW_MS
  return { nowMs: isStepped ? clockMs : Math.max(timeMs, subject.nowMs), isStepped }
}

function isRateShort({ need, limit }: RateRequest, window: RollingWindow): boolean {
  return need > 0 && limit - window.total < need
}

/** Grants waiting units as far as they fit; for expected units, half of the free units, divided by all processes. */
function rateGrant({ need, ask, want }: RateRequest, free: number, live: number): number {
  return Math.max(0, Math.min(free, Math.max(need, ask, Math.min(want, Math.floor(free / (2 * live))))))
}

/** Permits of one subject, by process. A process that reports nothing for 15 s has none. */
class MemoryPermits {
  readonly #processes = new Map<string, { held: number; expiresMs: number }>()

  /** Counts the permits of a process, and drops silent processes. */
  report(process: string, held: number, nowMs: number): void {
    for (const [other, { expiresMs }] of this.#processes) {
      const isOver = expiresMs < nowMs || expiresMs > nowMs + PERMIT_LIFE_MS // the second: the clock went back
      if (isOver) this.#processes.delete(other)
    }
    this.#set(process, held, nowMs)
  }

  free(limit: number): number {
    let sum = 0
    for (const { held } of this.#processes.values()) sum += held
    return limit - sum
  }

  /**
   * Grants permits, or nothing if anything in the call is short.
   * @param live processes that share the limit
   */
  grant(process: string, request: PermitRequest, isShort: boolean, when: { readonly live: number; readonly nowMs: number }): PermitReply {
    const free = this.free(request.limit)
    const grant = isShort ? 0 : permitGrant(request, free, when.live)
    if (grant > 0) this.#set(process, request.held + grant, when.nowMs)
    return { grant, rest: free - grant, waitMs: isPermitShort(request, free) ? PERMIT_WAIT_MS : 0 }
  }

  #set(process: string, held: number, nowMs: number): void {
    if (held > 0) this.#processes.set(process, { held, expiresMs: nowMs + PERMIT_LIFE_MS })
    else this.#processes.delete(process)
  }
}

/** Retry time, because the end of a running request cannot be predicted. */
const PERMIT_WAIT_MS = 1_000

/** Whether `need` does not fit. */
function isPermitShort({ need }: PermitRequest, free: number): boolean {
  return need > 0 && free < need
}

function permitGrant({ limit, need, ask, want }: PermitRequest, free: number, live: number): number {
  const granted = Math.min(free, Math.max(need, ask))
  if (granted < 0) return 0
  const isIdleAllowed = limit >= GRANTS.idlePermitsFrom * live && 2 * (free - granted) >= limit
  return granted + (isIdleAllowed ? Math.min(want, Math.floor((free - granted) / (2 * live))) : 0)
}
