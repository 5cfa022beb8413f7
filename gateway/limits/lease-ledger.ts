/** The ledger of one process: spends leases in memory, and asks the store if the leases do not suffice. */
import type { Clock } from '#platform/clock.ts'
import type { LedgerAnswer } from '#contract/ledger/ledger-call.ts'
import { LEDGER_TIMING, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import { windowsAt } from '#contract/values/budget-window.ts'
import type { BreakerState } from './breaker.ts'
import type {
  BudgetSnapshot,
  Hold,
  Ledger,
  LedgerSnapshot,
  LimitSubject,
  Need,
  RateStates,
  Refused,
  SettledUsage,
  Verdict,
} from './ledger.ts'
import type { LedgerStore } from './ledger-store.ts'
import type { Calendar } from './budget-book.ts'
import type { Shortage } from './refusals.ts'
import type { Demand, Portion, SentParts, SubjectBooks } from './subject-books.ts'
import type { Obstacle } from './subject-calls.ts'
import { type Entry, SubjectRegistry } from './subject-registry.ts'
import { foreverRefused, ratesOf, refusal, unavailable } from './verdicts.ts'

/** What the ledger needs. */
export interface LeaseLedgerDeps {
  readonly store: LedgerStore
  readonly clock: Clock
  /** Random per start of the process. */
  readonly process: string
  /** Number of live processes that share the limits, as last known; below 1 counts as 1. */
  readonly live: () => number
  /** UTC in tests. */
  readonly calendar?: Calendar
  readonly timing?: LedgerTiming
  /** Called for each error reply of the store, with a message that holds no value of a key. */
  readonly onRefused?: (error: Error) => void
}

/** Counters of the decisions since the start. */
export interface LedgerStats {
  readonly local: number
  readonly waited: number
  readonly calls: number
  readonly subjects: number
}

/** Maximum number of calls that one request waits for; each call serves or refuses a request. */
const MAX_ROUNDS = 64
/** Retry time of a client while this process's share of permits is in use, ms. */
const LOCAL_RETRY_MS = 1_000

interface Request {
  readonly need: Need
  readonly entry: Entry
  readonly demand: Demand
}

/** A hold of this process. */
class LeaseHold implements Hold {
  readonly outcome = 'held'
  readonly rates: RateStates
  readonly request: Request
  readonly portion: Portion
  isOpen = true

  constructor(request: Request, portion: Portion, rates: RateStates) {
    this.request = request
    this.portion = portion
    this.rates = rates
  }
}

/** Limits of all subjects in one process. */
export class LeaseLedger implements Ledger {
  readonly #deps: LeaseLedgerDeps
  readonly #timing: LedgerTiming
  readonly #subjects: SubjectRegistry
  #local = 0
  #waited = 0
  #isClosed = false

  constructor(deps: LeaseLedgerDeps) {
    const { store, clock, process, calendar = windowsAt, timing = LEDGER_TIMING, onRefused = () => undefined } = deps
    this.#deps = deps
    this.#timing = timing
    this.#subjects = new SubjectRegistry({ store, clock, process, calendar, timing, onRefused, live: () => this.#live() })
  }

  get stats(): LedgerStats {
    return { local: this.#local, waited: this.#waited, calls: this.#subjects.calls, subjects: this.#subjects.size }
  }

  /** State of the circuit breaker of the store. */
  get breaker(): BreakerState {
    return this.#subjects.breaker
  }

  knownRefusal(subject: LimitSubject): Refused | undefined {
    const books = this.#subjects.find(subject.uid)?.books
    if (books?.subject !== subject) return undefined // changed limits, for which no request has arrived yet
    const now = this.#now()
    const found = books.shortages({ requests: 1, tokens: 0, permits: 0, budgets: subject.budgets.map(() => 1) }, now)
    const isCertain = found.length > 0 && found.every(({ limit }) => limit === 'requests') // otherwise its cost decides
    return isCertain ? refusal(books, found, now) : undefined
  }

  reserve(subject: LimitSubject, need: Need): Verdict | Promise<Verdict> {
    if (this.#isClosed) return unavailable('closed')
    if (!isSafeNeed(need)) return unavailable('need')
    try {
      const verdict = this.#reserve(subject, need)
      return verdict instanceof Promise ? verdict.catch((error: unknown) => this.#broken(error)) : verdict
    } catch (error) {
      return this.#broken(error)
    }
  }

  settle(hold: Hold, usage: SettledUsage): void {
    if (!isOpen(hold)) return
    const { need, entry } = hold.request
    const now = this.#now()
    hold.isOpen = false
    this.#subjects.ended(entry, entry.books.settle(hold.portion, isSafeUsage(usage) ? usage : usageOfHold(need), now), now)
  }

  release(hold: Hold): void {
    if (!isOpen(hold)) return
    const { entry } = hold.request
    const now = this.#now()
    hold.isOpen = false
    this.#subjects.ended(entry, entry.books.release(hold.portion, now), now)
  }

  /** A subject in use notices by itself that the store has lost data; an unused one would not report its spend. */
  reportAgain(): void {
    this.#subjects.reportAgain()
  }

  removed(uid: string): void {
    this.#subjects.removed(uid, this.#now())
  }

  async snapshot(subject: LimitSubject): Promise<LedgerSnapshot> {
    const { books, calls } = this.#subjects.use(subject, this.#now())
    const { answer, sent } = await calls.read()
    return snapshotOf(books, sent, answer, this.#now())
  }

  async close(deadlineMs: number): Promise<void> {
    this.#isClosed = true
    await this.#subjects.close(deadlineMs)
  }

  /** Handles a bug of the gateway, for example a time zone that the calendar does not know. */
  #broken(error: unknown): Verdict {
    this.#deps.onRefused?.(error instanceof Error ? error : new Error(String(error)))
    return unavailable('store')
  }

  #reserve(subject: LimitSubject, need: Need): Verdict | Promise<Verdict> {
    const now = this.#now()
    const entry = this.#subjects.use(subject, now)
    const forever = foreverRefused(entry.books, need, now)
    if (forever) return forever
    const request = { need, entry, demand: entry.books.demand(need) }
    const verdict = this.#decide(request, now)
    if (verdict) {
      this.#local += 1
      return verdict
    }
    const { obstacle } = entry.calls
    if (obstacle !== undefined) return this.#withoutStore(request, obstacle)
    this.#waited += 1
    return new Promise((resolve) => this.#ask(request, resolve, 1))
  }

  /** Admits or refuses from the memory of this process; undefined if only the store can decide. */
  #decide(request: Request, now: number): Verdict | undefined {
    const { demand } = request
    const { books } = request.entry
    if (books.hasRefusals) {
      const short = books.shortages(demand, now)
      if (short.length > 0) return refusal(books, short, now)
    }
    return books.canTake(demand, now) ? this.#hold(request, now) : undefined
  }

  /** Asks the store, and decides in the turn of its answer, before another request takes the granted units. */
  #ask(request: Request, resolve: (verdict: Verdict) => void, round: number): void {
    request.entry.calls.ask(request.demand, (outcome) => {
      try {
        const verdict = this.#decide(request, this.#now())
        if (verdict) resolve(verdict)
        else if (outcome === 'answered' && round < MAX_ROUNDS) this.#ask(request, resolve, round + 1)
        else resolve(this.#withoutStore(request, outcome === 'answered' ? 'store' : outcome))
      } catch (error) {
        resolve(this.#broken(error))
      }
    })
  }

  /** Applies `onStoreUnavailable`: up to this process's part of every limit, as far as this process knows the limit's state. */
  #withoutStore(request: Request, obstacle: Obstacle): Verdict {
    const { books } = request.entry
    if (obstacle === 'unseeded') return unavailable('unseeded')
    const now = this.#now()
    const short = books.subject.onStoreUnavailable === 'LocalShare' ? this.#localShortages(request, now) : undefined
    if (short === undefined) return unavailable('store')
    return short.length > 0 ? refusal(books, short, now) : this.#hold(request, now)
  }

  /** Limits whose part is used up; undefined if this process does not know the rest of a budget. */
  #localShortages({ entry, demand }: Request, now: number): Shortage[] | undefined {
    const { books, calls } = entry
    if (books.canTake(demand, now)) return []
    const [live, storeNow] = [this.#live(), calls.storeNow(now)]
    if (!books.budgets.every((book, at) => book.canTakeLocal(demand.budgets[at] ?? 0, live, storeNow))) return undefined
    const hasPermit = demand.permits === 0 || books.permits.canTakeLocal(live, this.#timing.windowMs)
    const waits = [
      ['requests', books.requests.localWaitMs(demand.requests, now, { live, storeNow })],
      ['tokens', books.tokens.localWaitMs(demand.tokens, now, { live, storeNow })],
      ['concurrency', hasPermit ? 0 : LOCAL_RETRY_MS],
    ] as const
    return waits.flatMap(([limit, waitMs]) => (waitMs > 0 ? [{ limit, rest: 0, passesAt: now + waitMs, cachedUntil: now }] : []))
  }

  /** Takes leased units, or this process's own part where `#localShortages` has found it free. */
  #hold(request: Request, now: number): Hold {
    const { demand, entry } = request
    const { books, calls } = entry
    const times = { now, storeNow: calls.storeNow(now) }
    const portion = books.canTake(demand, now) ? books.take(demand, times) : books.takeLocal(demand, times)
    if (!calls.isBusy && books.isRefillDue(now, 0)) calls.flush() // before a request has to wait
    return new LeaseHold(request, portion, ratesOf(books, now))
  }

  #now(): number {
    return this.#deps.clock.monotonic()
  }

  #live(): number {
    return Math.max(1, Math.floor(this.#deps.live()) || 1)
  }
}

function isOpen(hold: Hold): hold is LeaseHold {
  return hold instanceof LeaseHold && hold.isOpen
}

const isAmount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

/** Whether every amount is a whole number that the ledger can hold. */
function isSafeNeed({ tokens, certainTokens = 0, holdByUnit }: Need): boolean {
  const { Currency = 0, Tokens } = holdByUnit
  return isAmount(tokens) && isAmount(certainTokens) && isAmount(Currency) && isAmount(Tokens)
}

/** As `isSafeNeed`, for usage. */
function isSafeUsage({ inputTokens, outputTokens, costMicros = 0 }: SettledUsage): boolean {
  const areTokensSafe = isAmount(inputTokens) && isAmount(outputTokens) && isAmount(inputTokens + outputTokens)
  return areTokensSafe && isAmount(costMicros)
}

/** The whole hold: unreadable usage is never zero. */
function usageOfHold({ tokens, holdByUnit }: Need): SettledUsage {
  const inputTokens = Math.max(tokens, holdByUnit.Tokens)
  return { inputTokens, outputTokens: 0, costMicros: holdByUnit.Currency }
}

/** Builds a snapshot of a subject from an answer that contains every limit. @param now monotonic ms */
function snapshotOf(books: SubjectBooks, { parts, books: asked }: SentParts, answer: LedgerAnswer, now: number): LedgerSnapshot {
  const limit = books.permits.limit
  const concurrency = limit !== undefined && answer.permits ? { limit, used: limit - answer.permits.rest } : undefined
  const budgets = asked.flatMap(({ spec }, index): BudgetSnapshot[] => {
    const reply = answer.budgets[index]
    const window = parts.budgets[index]?.windows.find(({ startMs }) => startMs === reply?.startMs)
    if (!reply || !window) return []
    const { name, unit, amount } = spec
    const { spent, held, unsettled, startMs } = reply
    const endMs = spec.window === 'Lifetime' ? Infinity : window.endMs
    return [{ name, unit, window: spec.window, amount, spent, held, unsettled, startMs, endMs }]
  })
  return { ...ratesOf(books, now), concurrency, budgets }
}
