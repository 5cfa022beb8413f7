/** The balance of one account in one process: the holds of its requests, its float, and its spend by period. Times are monotonic ms. */
import type { BalanceReply, BalanceRequest } from '#contract/ledger/ledger-call.ts'
import { LEDGER_CAPS, type LedgerTiming, longestLeaseMs, MAX_SUM } from '#contract/ledger/ledger-layout.ts'
import type { SumHalves } from '#contract/values/signed-micros.ts'
import type { SubjectBalance } from '#policy/effective.ts'
import { FLOAT_IDLE_MS, MAX_FLOAT_MICROS, REFILL_PART } from './budget-book.ts'
import { DemandAverage } from './demand-average.ts'
import { MIN_AHEAD, type Waiting } from './rate-lease.ts'

/** What this process has spent in one period since its start. */
interface PeriodAccount {
  readonly period: number
  spent: number
  /** `spent` as the store has counted it; undefined if unknown. */
  acknowledged: number | undefined
}

/** How the credits of a record differ from those of the former record; an account that is not prepaid has unlimited ones. */
type CreditsChange = 'less' | 'same' | 'more'

/** A process that holds anything reports within 4 s, whatever delays it: a ledger that has lost its data grants nothing for 6 s. */
const RENEW_MS = 3_500
/** Time for which a reply names the period of spend, ms. Periods last hours; spend without a fresh period waits for the next reply. */
const PERIOD_FRESH_MS = 600_000
/** Time after which an unused balance asks which of its periods the store has closed, ms. */
const ASK_AGAIN_MS = 3 * 3_600_000
/** A balance is roomy if this many holds of the last size are free: no request waits for what others return. */
const ROOMY_HOLDS = 20
/** Least hold, micro-units: a used-up balance also refuses requests that cost nothing. */
const MIN_HOLD = 1

export class BalanceBook {
  #credits: SumHalves | undefined
  /** undefined before a reply has named it. */
  #period: number | undefined
  /** When the last report left whose reply has named the period. */
  #namedAt = -Infinity
  /** In ascending order of the periods. The store has not closed them. */
  #accounts: PeriodAccount[] = []
  /** Spend whose period the next reply names. */
  #unplaced = 0
  /** Whether the last reply, a short time ago, did not name the period. */
  #isUnnamed = false
  #running = 0
  /** Held for later requests. */
  #float = 0
  /** Held, as the store has acknowledged; undefined if unknown. */
  #acknowledgedHeld: number | undefined = 0
  /** When the last answered report left. */
  #reportedAt = -Infinity
  #reply: BalanceReply | undefined
  /** Undefined without demand. */
  #demand: DemandAverage | undefined
  #usedAt = -Infinity
  #lastGrant = 0
  #lastHold = 0
  #isClosed = false
  /** Whether a request has cost more than it held since the last reply. */
  #isPassed = false

  /** Takes over the credits of a record. Fewer ones end the float at once. */
  adopt(balance: SubjectBalance | undefined): CreditsChange {
    const former = this.#credits
    this.#credits = balance?.credits
    const change = changeOf(former, this.#credits)
    if (change === 'less') this.end()
    return change
  }

  /** What a request holds. @param costMicros its worst case */
  holdOf(costMicros: number | undefined): number {
    return this.#credits === undefined ? 0 : Math.max(MIN_HOLD, costMicros ?? 0)
  }

  canTake(amount: number): boolean {
    return this.#credits === undefined || amount <= this.#float
  }

  /** Takes the units that `canTake` has found. @returns the argument for `settle` */
  take(amount: number, now: number): number {
    if (this.#credits === undefined) return 0
    this.#demand ??= new DemandAverage(now)
    this.#demand.add(amount)
    this.#lastHold = amount
    this.#usedAt = now
    this.#float -= amount
    this.#running += amount
    return amount
  }

  /** Ends a hold. @param costMicros the cost of the request, even above the hold */
  settle(taken: number, costMicros: number, now: number): void {
    this.#running -= taken
    if (costMicros > taken) this.#isPassed = true
    if (costMicros === 0) return
    if (this.#period !== undefined && this.#isFresh(now)) this.#spend(this.#period, costMicros)
    else this.#unplaced = sum(this.#unplaced, costMicros)
  }

  /** @returns this process's state and needs; a float that is too small is returned first, so that the store sees the whole need */
  request(waiting: Waiting, timing: LedgerTiming): BalanceRequest {
    const isShort = this.#credits !== undefined && waiting.first > this.#float
    if (isShort) this.#float = 0
    const state = {
      period: this.#period ?? 0,
      held: this.#held,
      spent: this.#accounts.slice(-LEDGER_CAPS.periods).map(({ period, spent }) => ({ period, spent })),
    }
    if (this.#credits === undefined) return { ...state, need: 0, ask: 0, want: 0 }
    return {
      ...{ credits: this.#credits, ...state },
      need: isShort ? waiting.first : 0,
      ask: Math.max(0, waiting.all - this.#float),
      want: Math.max(0, this.#expected(timing) - this.#float),
    }
  }

  /** @param sent what `request` returned for the call */
  answered(sent: BalanceRequest, reply: BalanceReply, sentAt: number): void {
    this.#acknowledgedHeld = sent.held + reply.grant
    this.#float += reply.grant
    if (reply.grant > 0) this.#lastGrant = reply.grant
    const from = Math.max(reply.openFrom ?? 0, reply.period - 1)
    for (const account of this.#accounts) {
      const row = sent.spent.find(({ period }) => period === account.period)
      if (row && account.period >= from) account.acknowledged = row.spent
    }
    this.#learnPeriods(reply, sentAt)
    this.#reportedAt = sentAt
    this.#reply = reply
    this.#isPassed = false
  }

  /** Marks the state of the store as unknown. */
  forgetReports(): void {
    this.#acknowledgedHeld = undefined
    for (const account of this.#accounts) account.acknowledged = undefined
  }

  /** Returns an idle float. @returns true if a float is returned */
  tick(now: number): boolean {
    if (this.#demand?.tick(now)) this.#demand = undefined
    if (now - this.#reportedAt >= RENEW_MS) this.#isUnnamed = false
    if (this.#float === 0) return false
    if (now - this.#usedAt < FLOAT_IDLE_MS || (this.isRoomy && this.#demand !== undefined)) return false
    this.#float = 0
    return true
  }

  end(): void {
    this.#demand = undefined
    this.#float = 0
  }

  close(): void {
    this.end()
    this.#isClosed = true
  }

  /** Whether this process holds something that it has not reported for a while. */
  isRenewalDue(now: number): boolean {
    return this.#held > 0 && now - this.#reportedAt >= RENEW_MS
  }

  isRefillDue(timing: LedgerTiming): boolean {
    if (this.#credits === undefined || this.#demand === undefined || !this.isRoomy) return false
    if (this.#demand.within(timing.leaseMs) === 0) return false
    return this.#float * REFILL_PART <= this.#lastGrant && this.#expected(timing) > 0
  }

  get isReportDue(): boolean {
    if (this.#held !== this.#acknowledgedHeld || (this.#unplaced > 0 && !this.#isUnnamed)) return true
    const from = (this.#period ?? 0) - 1 // the store counts no earlier period
    return this.#accounts.some(({ period, spent, acknowledged }) => period >= from && spent !== acknowledged)
  }

  /** Whether to ask which periods the store has closed, so that the balance can be forgotten. */
  isAskDue(now: number): boolean {
    return this.#accounts.length > 0 && now - this.#reportedAt >= ASK_AGAIN_MS
  }

  get isHolding(): boolean {
    return this.#held > 0
  }

  /** Whether nothing changes by itself, and no report repeats. */
  get isQuiet(): boolean {
    return this.#held === 0 && this.#unplaced === 0
  }

  /** Many holds were free at the last reply, and no request has cost more than it held: no request waits for holds. */
  get isRoomy(): boolean {
    if (this.#credits === undefined) return true
    if (this.#reply === undefined || this.#isPassed) return false
    return this.#reply.unspent - this.#reply.held > ROOMY_HOLDS * this.#lastHold
  }

  /** Whether nothing is held and the store knows everything. The spend of open periods stays known. */
  get isIdle(): boolean {
    return this.isQuiet && !this.isReportDue
  }

  /** Whether the store has closed every period in which this process has spent: a count that restarts would lose spend. */
  get isUnused(): boolean {
    return this.isIdle && this.#accounts.length === 0
  }

  /** Spend of credits stays held until it has a period: else the store would lend it to others in between. */
  get #held(): number {
    return this.#running + this.#float + (this.#credits === undefined ? 0 : this.#unplaced)
  }

  #learnPeriods({ period, openFrom }: BalanceReply, sentAt: number): void {
    const isNamed = openFrom !== undefined || this.#keepsPeriod(sentAt)
    this.#isUnnamed = !isNamed
    if (!isNamed) return
    this.#namedAt = sentAt
    this.#period = Math.max(this.#period ?? 0, period)
    if (openFrom !== undefined) this.#accounts = this.#accounts.filter((account) => account.period >= openFrom)
    if (this.#unplaced === 0) return
    this.#spend(this.#period, this.#unplaced)
    this.#unplaced = 0
  }

  /**
   * Whether a balance that is not ready leaves this process its period. Such a balance may have forgotten later periods, and repeats what it is
   * told. It closes none, so a fresh period stays open. A process that ends gets no better answer.
   */
  #keepsPeriod(now: number): boolean {
    return this.#isFresh(now) || (this.#isClosed && this.#period !== undefined)
  }

  #isFresh(now: number): boolean {
    return now - this.#namedAt <= PERIOD_FRESH_MS
  }

  /** The period is never before that of the last account. */
  #spend(period: number, micros: number): void {
    const last = this.#accounts.at(-1)
    if (last?.period === period) last.spent = sum(last.spent, micros)
    else this.#accounts.push({ period, spent: micros, acknowledged: 0 })
  }

  #expected(timing: LedgerTiming): number {
    if (this.#isClosed || this.#demand === undefined) return 0
    const expected = this.isRoomy ? this.#demand.within(longestLeaseMs(timing), MIN_AHEAD) : this.#demand.within(timing.leaseMs)
    const float = Math.min(expected, MAX_FLOAT_MICROS)
    return float >= this.#lastHold ? float : 0 // a float that is too small for a request would only be fetched and returned
  }
}

function changeOf(former: SumHalves | undefined, present: SumHalves | undefined): CreditsChange {
  if (former === undefined || present === undefined) {
    if (former === present) return 'same'
    return present === undefined ? 'more' : 'less'
  }
  const difference = present.high - former.high || present.low - former.low
  if (difference === 0) return 'same'
  return difference < 0 ? 'less' : 'more'
}

function sum(a: number, b: number): number {
  return Math.min(MAX_SUM, a + b)
}
