/** The balances of all accounts in the memory of one process. `lib/contract/ledger/ledger-balance.lua` does the same in Redis. */
import type { BalanceReply, BalanceRequest, LedgerCall } from '#contract/ledger/ledger-call.ts'
import { type AccountSpend, type LedgerBalance, periodOf, spentField } from '#contract/ledger/account-spend.ts'
import { BALANCE, GRANTS, MAX_SUM } from '#contract/ledger/ledger-layout.ts'
import { halvesOf, type SumHalves, sumOfHalves } from '#contract/values/signed-micros.ts'
import { LedgerCallRefused } from './ledger.ts'

const NOTHING: SumHalves = { high: 0, low: 0 }

export class MemoryBalances {
  readonly #balances = new Map<string, MemoryBalance>()

  /** @throws LedgerCallRefused for a report with which the spend of the open periods would be too large; nothing has changed then */
  check({ subject, process, balance }: LedgerCall): void {
    if (balance) (this.#balances.get(subject) ?? new MemoryBalance()).check(process, balance)
  }

  /** Counts the report of a call. @returns undefined for a call without a balance */
  report({ subject, process, balance: request }: LedgerCall): MemoryBalance | undefined {
    if (!request) return undefined
    const balance = this.#open(subject)
    balance.report(process, request)
    return balance
  }

  /** The whole balance of one account; undefined while nothing is known. */
  read(subject: string): LedgerBalance | undefined {
    return this.#balances.get(subject)?.state
  }

  /** Takes the maximum of books and balance. @param isReady whether the balance may grant from now on */
  merge(subject: string, books: AccountSpend, isReady: boolean): void {
    this.#open(subject).merge(books, isReady)
  }

  /** The present period is at least this one from now on. */
  raise(subject: string, period: number): void {
    this.#open(subject).raise(period)
  }

  /** Drops what a dead process holds. */
  free(subject: string, process: string, held: number): void {
    this.#balances.get(subject)?.free(process, held)
  }

  drop(subject: string): void {
    this.#balances.delete(subject)
  }

  #open(subject: string): MemoryBalance {
    const found = this.#balances.get(subject)
    if (found) return found
    const balance = new MemoryBalance()
    this.#balances.set(subject, balance)
    return balance
  }
}

interface Raised {
  readonly field: string
  readonly spent: number
  /** Spend that the balance did not know. */
  readonly more: number
}

/** The balance of one account. */
class MemoryBalance {
  #openFrom: number | undefined
  #base = NOTHING
  #period = 0
  /** Spend by period and process, and its sum. */
  readonly #spent = new Map<string, number>()
  #sum = 0
  /** Holds by process, and their sum. */
  readonly #holders = new Map<string, number>()
  #held = 0

  /** @throws LedgerCallRefused */
  check(process: string, request: BalanceRequest): void {
    const period = this.#periodWith(request)
    if (this.#openFrom !== undefined && period > Math.max(this.#openFrom + BALANCE.mostAhead, this.#period))
      throw new LedgerCallRefused('the period of the balance is too far ahead')
    const sum = this.#sumWith(this.#raised(process, request))
    if (sum > this.#sum && sum > BALANCE.mostOpenSpend) throw new LedgerCallRefused('the open periods of the balance have too much spend')
  }

  /** Counts the absolute state of a process. */
  report(process: string, request: BalanceRequest): void {
    const raised = this.#raised(process, request)
    this.#period = this.#periodWith(request)
    this.#sum = this.#sumWith(raised)
    for (const { field, spent } of raised) this.#spent.set(field, spent)
    this.#held = Math.max(0, sumOf(this.#held - (this.#holders.get(process) ?? 0), request.held))
    this.#hold(process, request.held)
  }

  /** Whether a call asks for units before every process has reported what it holds. */
  isUnready({ credits, need, ask }: BalanceRequest): boolean {
    return credits !== undefined && need + ask > 0 && this.#openFrom === undefined
  }

  /** The reason why `need` does not fit; see `BalanceReply`. */
  shortage(request: BalanceRequest): BalanceReply['short'] {
    if (request.credits === undefined || request.need <= 0) return 'No'
    const unspent = this.#unspent(request.credits)
    if (unspent - this.#held >= request.need) return 'No'
    if (unspent <= 0) return 'Exhausted'
    return unspent < request.need ? 'TooSmall' : 'Held'
  }

  /** Grants `need` and more, or nothing if anything in the call is short. */
  grant(process: string, request: BalanceRequest, terms: { readonly isShort: boolean; readonly live: number }): BalanceReply {
    const short = this.shortage(request)
    const { credits } = request
    const isReady = credits !== undefined && this.#openFrom !== undefined
    const unspent = isReady ? this.#unspent(credits) : 0
    const grant = isReady && !terms.isShort ? balanceGrant(request, unspent - this.#held, terms.live) : 0
    this.#held += grant
    this.#hold(process, (this.#holders.get(process) ?? 0) + grant)
    return { period: this.#period, openFrom: this.#openFrom, grant, unspent, held: this.#held, short }
  }

  /** undefined while nothing is known. */
  get state(): LedgerBalance | undefined {
    const isEmpty = this.#openFrom === undefined && this.#period === 0 && this.#spent.size + this.#holders.size === 0
    if (isEmpty) return undefined
    return {
      openFrom: this.#openFrom,
      period: this.#period,
      closedSpend: sumOfHalves(this.#base),
      spent: new Map(this.#spent),
      holders: new Map(this.#holders),
    }
  }

  /** The later first open period wins with its base; of one period, the larger base. */
  merge({ openFrom, closedSpend, spent }: AccountSpend, isReady: boolean): void {
    this.#mergeBase(openFrom, halvesOf(closedSpend), isReady)
    const from = this.#openFrom ?? openFrom
    this.#period = Math.max(this.#period, from + 1)
    for (const field of this.#spent.keys()) if (periodOf(field) < from) this.#spent.delete(field)
    for (const [field, amount] of spent) {
      if (periodOf(field) >= from && amount > (this.#spent.get(field) ?? 0)) this.#spent.set(field, amount)
    }
    this.#sum = [...this.#spent.values()].reduce(sumOf, 0)
    this.#held = [...this.#holders.values()].reduce(sumOf, 0)
  }

  #mergeBase(openFrom: number, base: SumHalves, isReady: boolean): void {
    const known = this.#openFrom
    const isLater = known === undefined ? isReady : openFrom > known
    if (!isLater && (known !== openFrom || !isLarger(base, this.#base))) return
    this.#openFrom = openFrom
    this.#base = base
  }

  raise(period: number): void {
    this.#period = Math.max(this.#period, period)
  }

  free(process: string, held: number): void {
    if (this.#holders.get(process) !== held) return
    this.#held = Math.max(0, this.#held - held)
    this.#holders.delete(process)
  }

  #hold(process: string, held: number): void {
    if (held > 0) this.#holders.set(process, held)
    else this.#holders.delete(process)
  }

  #periodWith({ period, spent }: BalanceRequest): number {
    const least = this.#openFrom === undefined ? 0 : this.#openFrom + 1
    return Math.max(this.#period, period, least, ...spent.map((row) => row.period))
  }

  /**
   * The reported spend that counts and was not known. A period before the first open one is in the base already. One that ended before the
   * last period waits for the operator, which may have read it for the last time.
   */
  #raised(process: string, request: BalanceRequest): Raised[] {
    const from = Math.max(this.#openFrom ?? 0, this.#periodWith(request) - 1)
    return request.spent.flatMap(({ period, spent }) => {
      const field = spentField(period, process)
      const more = spent - (this.#spent.get(field) ?? 0)
      return period >= from && more > 0 ? [{ field, spent, more }] : []
    })
  }

  #sumWith(raised: readonly Raised[]): number {
    return raised.reduce((sum, { more }) => sum + more, this.#sum)
  }

  /** Credits minus the spend of all processes. Both sums may exceed 2^53; the result is exact wherever it decides. */
  #unspent(credits: SumHalves): number {
    const high = Math.max(-BALANCE.mostHalves, Math.min(BALANCE.mostHalves, credits.high - this.#base.high))
    return Math.max(-MAX_SUM, high * BALANCE.half + (credits.low - this.#base.low) - this.#sum)
  }
}

function balanceGrant({ need, ask, want }: BalanceRequest, rest: number, live: number): number {
  const granted = Math.max(0, Math.min(rest, Math.max(need, ask)))
  const free = rest - granted
  return granted + Math.max(0, Math.min(want, Math.floor(free / GRANTS.floatPart), Math.floor(free / (GRANTS.floatShare * live))))
}

function sumOf(a: number, b: number): number {
  return Math.min(MAX_SUM, a + b)
}

function isLarger(a: SumHalves, b: SumHalves): boolean {
  return a.high > b.high || (a.high === b.high && a.low > b.low)
}
