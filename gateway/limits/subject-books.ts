/** The state of one subject in one process: leases, permits, budgets, shortages. This file makes no calls to the store. */
import type { LedgerAnswer, LedgerCall } from '#contract/ledger/ledger-call.ts'
import { budgetID } from '#contract/ledger/ledger-layout.ts'
import { hasSameLimits } from '#contract/records/limits-record.ts'
import { BalanceBook } from './balance-book.ts'
import { BatchQueue } from './batch-queue.ts'
import { acknowledgeReport, BudgetBook, type BudgetPiece, type Times } from './budget-book.ts'
import type { BudgetSpec, LedgerSnapshot, LimitSubject, Need, SettledUsage } from './ledger.ts'
import { PermitPool } from './permit-pool.ts'
import { NO_WAITING, type Piece, RateLease, type Waiting } from './rate-lease.ts'
import { type KnownShortage, ownerOf, RETRY_MS, shortageOf, shortagesIn, type TimedShortage } from './refusals.ts'
import type { Demand, SentParts, SubjectHold, Urgency } from './subject-demand.ts'
import type { LedgerDeps } from './subject-registry.ts'

const NO_PIECES: readonly Piece[] = []
const NO_BUDGET_PIECES: readonly BudgetPiece[] = []

const NO_PERMITS = new PermitPool()
const NO_BUDGETS: readonly BudgetBook[] = []
const NO_AMOUNTS: readonly number[] = []
const NO_SHORTAGES: readonly TimedShortage[] = []

export class SubjectBooks {
  readonly requests: RateLease
  readonly tokens: RateLease
  /** All subjects without a limit share one pool. */
  permits: PermitPool = NO_PERMITS
  /**
   * Recent shortages by limit, so that a storm of requests costs no calls. Made when needed: most subjects are never refused, and rest most of
   * the time.
   */
  #shortages: Map<string, KnownShortage> | undefined
  #batch: BatchQueue | undefined
  readonly #deps: Pick<LedgerDeps, 'timing' | 'calendar' | 'live'>
  /** Budgets of the subject, and former ones whose state the store does not fully know. */
  #budgets: readonly BudgetBook[] = NO_BUDGETS
  /** Undefined for a subject that is not an account. */
  #balance: BalanceBook | undefined
  #subject: LimitSubject
  #areLeasesReturned = false
  #open: readonly BudgetBook[] = NO_BUDGETS
  #running = 0
  /** Counts the ends of all leases: units from a call of an earlier term are returned. */
  #term = 0

  constructor(subject: LimitSubject, deps: Pick<LedgerDeps, 'timing' | 'calendar' | 'live'>) {
    this.#deps = deps
    this.requests = new RateLease('r', deps.timing)
    this.tokens = new RateLease('t', deps.timing)
    this.#subject = subject
    this.#adopt(subject)
    this.#adoptBalance(subject)
  }

  get batch(): BatchQueue {
    return (this.#batch ??= new BatchQueue(this.requests, this.tokens, this.#deps.timing))
  }

  get hasShortages(): boolean {
    return this.#shortages !== undefined && this.#shortages.size > 0
  }

  get #hasBatch(): boolean {
    return this.requests.hasChanges || this.tokens.hasChanges || (this.#batch !== undefined && !this.#batch.isEmpty)
  }

  get subject(): LimitSubject {
    return this.#subject
  }

  get budgets(): readonly BudgetBook[] {
    return this.#open
  }

  /** Of an account, also when it is not prepaid. */
  get balance(): BalanceBook | undefined {
    return this.#balance
  }

  /** Takes over changed limits and credits. A lowered limit ends the leases at once, and refusals under the old limits are dropped. */
  update(subject: LimitSubject): void {
    if (subject === this.#subject) return
    const isChanged = !hasSameLimits(subject, this.#subject)
    this.#subject = subject
    if (isChanged) this.#adopt(subject)
    this.#adoptBalance(subject)
  }

  /** The hold of a request before it is taken. */
  holdOf(need: Need): SubjectHold {
    const { requestsPerMinute, tokensPerMinute, maxConcurrentRequests } = this.#subject.limits
    return {
      requests: requestsPerMinute === undefined ? 0 : 1,
      tokens: tokensPerMinute === undefined ? 0 : Math.min(need.tokens, tokensPerMinute),
      permits: maxConcurrentRequests === undefined ? 0 : 1,
      budgets: this.#open.length === 0 ? NO_AMOUNTS : this.#subject.budgets.map(({ unit }) => need.holdByUnit[unit] ?? 0),
      balance: this.#balance?.holdOf(need.holdByUnit.Currency) ?? 0,
      requestPieces: NO_PIECES,
      tokenPieces: NO_PIECES,
      takenPermits: 0,
      budgetPieces: NO_BUDGET_PIECES,
      takenBalance: 0,
    }
  }

  canTake({ requests, tokens, budgets, balance }: Demand, now: number): boolean {
    if (requests > 0 && requests > this.requests.available(now)) return false
    if (tokens > 0 && tokens > this.tokens.available(now)) return false
    if (!this.permits.canTake(now) || this.#balance?.canTake(balance) === false) return false
    return this.#open.length === 0 || this.#open.every((book, at) => book.canTake(budgets[at] ?? 0, now))
  }

  /** Takes the units that `canTake` has found. */
  take(hold: SubjectHold, { now, storeNow }: Times): void {
    this.#running += 1
    if (hold.requests > 0) hold.requestPieces = this.requests.take(hold.requests, now)
    if (hold.tokens > 0) hold.tokenPieces = this.tokens.take(hold.tokens, now)
    hold.takenPermits = this.permits.take(now)
    if (this.#open.length > 0) hold.budgetPieces = this.#open.map((book, at) => book.take(hold.budgets[at] ?? 0, now, storeNow))
    if (this.#balance !== undefined) hold.takenBalance = this.#balance.take(hold.balance, now)
  }

  /** As `take`, without the store: this process's part of every limit. */
  takeLocal(hold: SubjectHold, { now, storeNow }: Times): void {
    this.#running += 1
    hold.requestPieces = this.requests.takeLocal(hold.requests, now, storeNow)
    hold.tokenPieces = this.tokens.takeLocal(hold.tokens, now, storeNow)
    hold.takenPermits = this.permits.takeLocal()
    hold.budgetPieces = this.#open.map((book, at) => book.takeLocal(hold.budgets[at] ?? 0, now, storeNow))
  }

  settle(hold: SubjectHold, usage: SettledUsage, now: number): Urgency {
    this.#running -= 1
    const used = usage.inputTokens + usage.outputTokens
    if (this.tokens.limit !== undefined || hold.tokens > 0) this.#settleTokens(hold, used, now)
    for (const piece of hold.budgetPieces) piece.book.settle(piece, piece.book.spec.unit === 'Tokens' ? used : (usage.costMicros ?? 0))
    this.#balance?.settle(hold.takenBalance, usage.costMicros ?? 0, now)
    return this.#freePermits(hold, now) ? 'now' : this.urgency
  }

  release(hold: SubjectHold, now: number): Urgency {
    this.#running -= 1
    this.requests.giveBack(hold.requestPieces, Infinity, now)
    this.tokens.giveBack(hold.tokenPieces, Infinity, now)
    for (const piece of hold.budgetPieces) piece.book.settle(piece, 0)
    this.#balance?.settle(hold.takenBalance, 0, now)
    this.#shortages = undefined
    return this.#freePermits(hold, now) ? 'now' : 'soon'
  }

  /** `soon` if a limit was exceeded or is nearly used up, so that other processes may wait for returned units. */
  get urgency(): 'soon' | 'later' {
    if (this.#batch?.hasDebt || !this.tokens.isRoomy || !this.requests.isRoomy) return 'soon'
    if (this.#balance !== undefined && !this.#balance.isRoomy) return 'soon'
    return this.#open.every((book) => book.isRoomy) ? 'later' : 'soon'
  }

  shortages({ requests, tokens, permits, budgets, balance }: Demand, now: number): readonly TimedShortage[] {
    const known = this.#shortages
    if (known === undefined || known.size === 0) return NO_SHORTAGES
    /** The shortage of a limit if the request needs more than its rest and `own`, so that the store need not be asked. */
    const find = (limit: string, needed: number, own: number, lease?: RateLease): TimedShortage | undefined => {
      const shortage = known.get(limit)
      if (shortage === undefined || now >= shortage.cachedUntil || needed - own <= shortage.rest) return undefined
      const rate = lease?.state(now)
      return shortageOf(shortage, needed, own, rate && now + rate.resetMs)
    }
    const found = [
      find('r', requests, this.requests.available(now), this.requests),
      find('t', tokens, this.tokens.available(now), this.tokens),
      this.permits.canTake(now) ? undefined : find('permits', permits, 0),
      ...this.#open.map((book, index) => {
        const amount = budgets[index] ?? 0
        return book.canTake(amount, now) ? undefined : find(book.id, amount, 0)
      }),
      this.#balance === undefined || this.#balance.canTake(balance) ? undefined : find('balance', balance, 0),
    ]
    return found.filter((shortage) => shortage !== undefined)
  }

  /** Limits whose part is used up without the store; undefined if this process does not know the rest of a budget. */
  localShortages(demand: Demand, times: Times): readonly TimedShortage[] | undefined {
    const { now, storeNow } = times
    if (this.canTake(demand, now)) return NO_SHORTAGES
    const live = this.#deps.live()
    if (!this.#open.every((book, at) => book.canTakeLocal(demand.budgets[at] ?? 0, live, storeNow))) return undefined
    const { requests, tokens, permits } = demand
    const hasPermit = permits === 0 || this.permits.canTakeLocal(live, this.#deps.timing.windowMs)
    const waits = [
      ['requests', 'requestsPerMinute', requests, requests && this.requests.localWaitMs(requests, now, { live, storeNow })],
      ['tokens', 'tokensPerMinute', tokens, tokens && this.tokens.localWaitMs(tokens, now, { live, storeNow })],
      ['concurrency', 'maxConcurrentRequests', permits, hasPermit ? 0 : RETRY_MS],
    ] as const
    return waits.flatMap(([limit, field, needed, waitMs]) =>
      waitMs > 0 ? [{ limit, whose: ownerOf(this.#subject, field), needed, left: 0, passesAt: now + waitMs, resetsAt: undefined }] : [],
    )
  }

  /** Contents of the next call. @param all also rows that no request waits for: for a snapshot or a refill */
  parts(waiting: readonly Demand[], all: boolean, times: Times): SentParts {
    const { now } = times
    // the batch of this call returns them: a lease that ended before its reply arrived must not refuse the request that asked for it
    for (const lease of [this.requests, this.tokens]) lease.endExpired(now)
    const rates = [
      this.requests.request(sumOf(waiting.map(({ requests }) => requests)), now),
      this.tokens.request(sumOf(waiting.map(({ tokens }) => tokens)), now),
    ].filter((row) => row !== undefined && (all || row.ask + row.want > 0)) as LedgerCall['rates'] // undefined is filtered out
    const books = this.#open.filter((book) => all || (waiting.length > 0 && book.spec.onExceeded === 'Block'))
    const budgets = books.map((book) => {
      const at = this.#open.indexOf(book)
      const wait = book.spec.onExceeded === 'Block' ? sumOf(waiting.map((demand) => demand.budgets[at] ?? 0)) : NO_WAITING
      return book.request(wait, this.#deps.timing, times)
    })
    const reports = this.#budgets.flatMap((book) => book.reports(books.includes(book)))
    const permits = this.permits.request(sumOf(waiting.map((demand) => demand.permits)), now)
    const balance = this.#balance?.request(sumOf(waiting.map((demand) => demand.balance)), this.#deps.timing)
    return {
      parts: { reports: reports.map(({ row }) => row), permits, rates, budgets, balance },
      ...{ reports, books, term: this.#term, sentAt: now },
    }
  }

  answered({ parts, reports, books, term, sentAt }: SentParts, answer: LedgerAnswer, number: number, now: number): void {
    reports.forEach((report, index) => acknowledgeReport(report, answer.spent[index] ?? 0, answer.seed))
    if (parts.permits) this.permits.reported(parts.permits, answer.permits, sentAt)
    parts.rates.forEach(({ kind, leaseMs }, index) => {
      const reply = answer.rates[index]
      const lease = kind === 'r' ? this.requests : this.tokens
      if (reply) lease.granted(reply, { number, sentAt, leaseMs }, now)
    })
    books.forEach((book, index) => {
      const reply = answer.budgets[index]
      if (reply) book.granted(reply, answer, sentAt)
    })
    if (parts.balance && answer.balance) this.#balance?.answered(parts.balance, answer.balance, sentAt)
    if (term !== this.#term) this.endLeases() // units of an old limit may exceed the new one
    const answered = { sentAt, now, subject: this.#subject, parts, books, answer, timing: this.#deps.timing }
    for (const [limit, shortage] of shortagesIn(answered)) (this.#shortages ??= new Map()).set(limit, shortage)
  }

  /** The state after an answer that contains every limit. @param now monotonic ms */
  snapshot(now: number): Omit<LedgerSnapshot, 'atMs'> {
    const budgets = this.#open.map((book) => book.snapshot).filter((budget) => budget !== undefined)
    return { requests: this.requests.state(now), tokens: this.tokens.state(now), concurrency: this.permits.state, budgets }
  }

  /** Reports that it is unknown whether the last call has counted. */
  forgetReports(): void {
    if (this.permits !== NO_PERMITS) this.permits.forgetReport()
    for (const book of this.#budgets) book.forgetReports()
    this.#balance?.forgetReports()
  }

  /** Returns leases soon, because another subject has refused their request: no other request should have to wait for them. */
  returnLeasesSoon(): void {
    this.#areLeasesReturned = true
  }

  /** Ends expired leases and floats; called every flush interval. @returns the urgency of returned units; undefined without any */
  tick({ now, storeNow }: Times): 'soon' | 'later' | undefined {
    let isAwaited = this.#areLeasesReturned
    let isGivenBack = false
    if (this.#areLeasesReturned) this.endLeases()
    this.#areLeasesReturned = false
    for (const part of [this.requests, this.tokens, ...this.#budgets, this.#balance]) {
      if (!part?.tick(now, storeNow)) continue
      isGivenBack = true
      isAwaited ||= !part.isRoomy
    }
    this.permits.tick(now)
    if (this.#budgets.length > this.#open.length) {
      this.#budgets = this.#budgets.filter((book) => this.#open.includes(book) || !book.isUnused)
    }
    if (!this.#hasBatch) this.#batch = undefined
    if (isAwaited) return 'soon'
    return isGivenBack ? 'later' : undefined
  }

  /** Whether nothing changes by itself: no lease or float can end, no permit needs another report, and the store has every report. */
  get isQuiet(): boolean {
    if (this.requests.hasLeases || this.tokens.hasLeases || this.#areLeasesReturned) return false
    return this.permits.isIdle && this.#budgets.every(({ isQuiet }) => isQuiet) && (this.#balance?.isQuiet ?? true)
  }

  /** Whether ticks may skip the subject: its demand is slow, and no request waits for the units that its leases return. */
  get maySkipTicks(): boolean {
    if (this.requests.isBrisk || this.tokens.isBrisk || this.permits !== NO_PERMITS || this.#areLeasesReturned) return false
    if (this.#balance?.isHolding) return false
    return this.urgency === 'later' && !this.#budgets.some(({ isBrisk }) => isBrisk)
  }

  get isReportDue(): boolean {
    if (this.#balance?.isReportDue) return true
    return this.#hasBatch || this.permits.isChanged || this.#budgets.some(({ isReportDue }) => isReportDue)
  }

  /** Whether a call is due before a request waits: for a refill, or to report that permits and holds of the balance are still used. */
  isAskDue(now: number, tickMs: number): boolean {
    return this.permits.isReportDue(now) || this.isRefillDue(now, tickMs) || (this.#balance?.isRenewalDue(now) ?? false)
  }

  isRefillDue(now: number, tickMs: number): boolean {
    const areRatesDue = this.requests.isRefillDue(now, tickMs) || this.tokens.isRefillDue(now, tickMs)
    if (areRatesDue || this.#balance?.isRefillDue(this.#deps.timing)) return true
    return this.#open.some((book) => book.isRefillDue(now, this.#deps.timing))
  }

  endLeases(): void {
    this.#term += 1
    this.requests.end()
    this.tokens.end()
    this.permits.end()
    for (const book of this.#budgets) book.end()
    this.#balance?.end()
  }

  /** Returns units that no request uses, and takes no more. */
  close(): void {
    this.endLeases()
    this.requests.limit = undefined
    this.tokens.limit = undefined
    if (this.permits !== NO_PERMITS) this.permits.limit = undefined
    for (const book of this.#budgets) book.close()
    this.#balance?.close()
  }

  /** Whether nothing is open and the store knows everything. */
  get isIdle(): boolean {
    if (this.#running > 0 || this.#hasBatch || !this.permits.isIdle || this.#balance?.isIdle === false) return false
    return this.requests.isIdle && this.tokens.isIdle && this.#budgets.every(({ isIdle }) => isIdle)
  }

  get isUnused(): boolean {
    return this.#budgets.every(({ isUnused }) => isUnused) && (this.#balance?.isUnused ?? true)
  }

  #settleTokens(hold: SubjectHold, used: number, now: number): void {
    if (used > hold.tokens) return this.batch.owe(used - hold.tokens)
    if (used === hold.tokens) return
    this.tokens.giveBack(hold.tokenPieces, hold.tokens - used, now)
    this.#shortages?.delete('t')
  }

  #freePermits({ takenPermits }: SubjectHold, now: number): boolean {
    if (takenPermits === 0) return false
    this.#shortages?.delete('permits')
    return this.permits.free(takenPermits, now, this.#deps.live())
  }

  #adopt(subject: LimitSubject): void {
    this.#term += 1
    const { requestsPerMinute, tokensPerMinute, maxConcurrentRequests } = subject.limits
    this.requests.adopt(requestsPerMinute)
    this.tokens.adopt(tokensPerMinute)
    if (maxConcurrentRequests !== undefined && this.permits === NO_PERMITS) this.permits = new PermitPool()
    if (this.permits !== NO_PERMITS) this.permits.limit = maxConcurrentRequests
    this.#open = subject.budgets.length === 0 ? NO_BUDGETS : subject.budgets.map((spec) => this.#book(spec))
    for (const book of this.#budgets) if (!this.#open.includes(book)) book.end()
    if (this.#budgets.length === this.#open.length) this.#budgets = this.#open
    this.#shortages = undefined
  }

  #adoptBalance({ balance }: LimitSubject): void {
    if (balance === undefined && this.#balance === undefined) return
    this.#balance ??= new BalanceBook()
    const change = this.#balance.adopt(balance)
    if (change === 'less') this.#term += 1
    if (change !== 'same') this.#shortages?.delete('balance')
  }

  #book(spec: BudgetSpec): BudgetBook {
    const id = budgetID(spec)
    const known = this.#budgets.find((book) => book.id === id)
    if (known) {
      if (spec.amount < known.spec.amount) known.end()
      if (spec.timeZone !== known.spec.timeZone) known.forgetWindows()
      known.spec = spec
      return known
    }
    const book = new BudgetBook(spec, this.#deps.calendar)
    this.#budgets = this.#budgets.concat(book)
    return book
  }
}

function sumOf(amounts: readonly number[]): Waiting {
  const [first] = amounts
  return first === undefined ? NO_WAITING : { first, all: amounts.reduce((sum, amount) => sum + amount, 0) }
}
