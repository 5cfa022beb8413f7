/** The ledger of one process: spends leases in memory, and asks the store if the leases do not suffice. */
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import { windowsAt } from '#contract/values/budget-window.ts'
import type { BreakerState } from './breaker.ts'
import type { Hold, Ledger, LedgerSnapshot, LimitSubject, Need, RateState, RateStates, Refused, SettledUsage, Verdict } from './ledger.ts'
import type { AskOutcome } from './subject-calls.ts'
import type { Demand, SubjectHold } from './subject-demand.ts'
import { type Entry, type LedgerDeps, SubjectRegistry } from './subject-registry.ts'
import { foreverRefused, refusal, type TimedShortage, unavailable } from './refusals.ts'

/** `live` below 1 counts as 1; the default of `waitMs` is 500 ms. */
type LeaseLedgerDeps = Pick<LedgerDeps, 'store' | 'clock' | 'process' | 'live'> & Partial<LedgerDeps>

/** Numbers of decisions, of subjects and of calls. */
export type LedgerStats = LeaseLedger['stats']

const WAIT_MS = 500
/** Life of a snapshot, ms. */
const FRESH_MS = 1_000
/** Maximum number of calls that one request waits for; each call serves or refuses a request. */
const MAX_ROUNDS = 64

/** One subject of a request, and what the request holds of it. */
interface Part {
  readonly entry: Entry
  readonly hold: SubjectHold
}

/** A request, and its hold from its admission until it is settled. */
class LeaseHold implements Hold {
  readonly outcome = 'held'
  readonly need: Need
  readonly parts: readonly Part[]
  rates: RateStates = {}
  isOpen = false

  constructor(need: Need, parts: readonly Part[]) {
    this.need = need
    this.parts = parts
  }
}

interface Acquiring {
  readonly request: LeaseHold
  readonly resolve: (verdict: Verdict) => void
  readonly asked: Set<Entry>
  round: number
}

export class LeaseLedger implements Ledger {
  readonly #deps: LeaseLedgerDeps
  readonly #subjects: SubjectRegistry
  #local = 0
  #waited = 0
  #isClosed = false

  constructor(deps: LeaseLedgerDeps) {
    const { store, clock, process, calendar = windowsAt, waitMs = WAIT_MS, timing = LEDGER_TIMING } = deps
    const { onRefused = () => undefined, onEnd = () => undefined } = deps
    this.#deps = deps
    this.#subjects = new SubjectRegistry({ store, clock, process, calendar, waitMs, timing, onRefused, onEnd, live: () => this.#live() })
  }

  get stats(): SubjectRegistry['stats'] & { readonly local: number; readonly waited: number } {
    return { ...this.#subjects.stats, local: this.#local, waited: this.#waited }
  }

  get breaker(): BreakerState {
    return this.#subjects.breaker
  }

  knownRefusal(subject: LimitSubject): Refused | undefined {
    const entry = this.#subjects.find(subject.uid)
    if (entry?.books.subject !== subject) return undefined // changed limits, for which no request has arrived yet
    const now = this.#now()
    const least = { ...ONE_REQUEST, budgets: subject.budgets.map(() => 1), balance: 1 }
    const found = entry.books.shortages(least, now)
    const isCertain = found.length > 0 && found.every(({ limit }) => limit === 'requests') // otherwise its cost decides
    return isCertain ? refusal(found, ratesOf([{ entry }], now), now) : undefined
  }

  reserve(subjects: readonly LimitSubject[], need: Need): Verdict | Promise<Verdict> {
    if (this.#isClosed) return unavailable('closed')
    if (!isSafeNeed(need)) return unavailable('need')
    try {
      const verdict = this.#reserve(subjects, need)
      return verdict instanceof Promise ? verdict.catch((error: unknown) => this.#broken(error)) : verdict
    } catch (error) {
      return this.#broken(error)
    }
  }

  settle(hold: Hold, usage: SettledUsage | undefined): void {
    if (!isOpen(hold)) return
    hold.isOpen = false
    const used = usage !== undefined && isSafeUsage(usage) ? usage : usageOfHold(hold.need)
    const now = this.#now()
    for (const { entry, hold: part } of hold.parts) this.#subjects.ended(entry, entry.books.settle(part, used, now), now)
  }

  release(hold: Hold): void {
    if (!isOpen(hold)) return
    hold.isOpen = false
    const now = this.#now()
    for (const { entry, hold: part } of hold.parts) this.#subjects.ended(entry, entry.books.release(part, now), now)
  }

  /** A subject in use notices by itself that the store has lost data; an unused one would not report its spend. */
  reportAgain(): void {
    this.#subjects.reportAgain()
  }

  /** Records that the store has answered this process, on any connection. */
  heard(): void {
    this.#subjects.heard(this.#now())
  }

  changed(uid: string): void {
    this.#subjects.changed(uid, this.#now())
  }

  deleted(uid: string): void {
    this.#subjects.deleted(uid, this.#now())
  }

  /** At most one call a second for a subject, because a client may ask in a loop. A failure is not kept. */
  async snapshot(subject: LimitSubject): Promise<LedgerSnapshot> {
    const askedAt = this.#now()
    const entry = this.#subjects.use(subject, askedAt)
    const last = entry.snapshot
    if (last?.subject === subject && askedAt - last.askedAt < FRESH_MS) return await last.snapshot
    const own = { subject, askedAt, snapshot: this.#read(entry) }
    entry.snapshot = own
    try {
      return await own.snapshot
    } catch (error) {
      if (entry.snapshot === own) entry.snapshot = undefined
      throw error
    }
  }

  async close(deadlineMs: number): Promise<void> {
    this.#isClosed = true
    await this.#subjects.close(deadlineMs)
  }

  async #read({ books, calls }: Entry): Promise<LedgerSnapshot> {
    const outcome = await new Promise<AskOutcome>((resolve) => calls.ask(undefined, resolve))
    if (outcome !== 'answered') throw new Error(`the ledger does not answer: ${outcome}`)
    return { ...books.snapshot(this.#now()), atMs: this.#deps.clock.now() }
  }

  /** Handles a bug of the gateway, for example a time zone that the calendar does not know. */
  #broken(error: unknown): Verdict {
    this.#deps.onRefused?.(error instanceof Error ? error : new Error(String(error)))
    return unavailable('store')
  }

  #reserve(subjects: readonly LimitSubject[], need: Need): Verdict | Promise<Verdict> {
    const now = this.#now()
    const request = this.#request(subjects, need, now)
    const forever = foreverRefused(subjects, need, () => ratesOf(request.parts, now)) // rates as this process knows them
    if (forever) return forever
    const verdict = this.#decide(request, now)
    if (verdict) {
      this.#local += 1
      return verdict
    }
    const obstacle = obstacleOf(request, now)
    if (obstacle !== undefined) return this.#withoutStore(request, obstacle)
    this.#waited += 1
    return this.#acquire(request)
  }

  /** Admits or refuses from the memory of this process; undefined if only the store can decide. */
  #decide(request: LeaseHold, now: number): Verdict | undefined {
    const { parts } = request
    if (parts.some(hasShortages)) {
      const short = parts.flatMap(({ entry, hold }) => entry.books.shortages(hold, now))
      if (short.length > 0) return refusal(short, ratesOf(parts, now), now)
    }
    return canTake(request, now) ? this.#take(request, true, now) : undefined
  }

  #acquire(request: LeaseHold): Promise<Verdict> {
    return new Promise((resolve) => this.#ask({ request, resolve, asked: new Set(), round: 0 }))
  }

  /** Asks the store about every short subject. Decides in the turn of the last answer, before another request takes the granted units. */
  #ask(acquiring: Acquiring): void {
    const now = this.#now()
    const short = acquiring.request.parts.filter(({ entry, hold }) => !entry.books.canTake(hold, now))
    let missing = short.length
    let failure: AskOutcome | undefined
    for (const { entry, hold } of short) {
      acquiring.asked.add(entry)
      entry.calls.ask(hold, (outcome) => {
        if (outcome !== 'answered') failure ??= outcome
        missing -= 1
        if (missing === 0) this.#answered(acquiring, failure)
      })
    }
    if (short.length === 0) this.#answered(acquiring, undefined)
  }

  #answered(acquiring: Acquiring, failure: AskOutcome | undefined): void {
    const { request, resolve, asked } = acquiring
    try {
      const verdict = this.#decide(request, this.#now())
      if (verdict) return resolve(this.#done(verdict, asked))
      acquiring.round += 1
      if (failure !== undefined || acquiring.round >= MAX_ROUNDS) return resolve(this.#withoutStore(request, failure ?? 'store'))
      this.#ask(acquiring)
    } catch (error) {
      resolve(this.#broken(error))
    }
  }

  /** Ends a wait. If one subject has refused, the units that the others granted for this request are returned at the next flush. */
  #done(verdict: Verdict, asked: ReadonlySet<Entry>): Verdict {
    if (verdict.outcome === 'refused' && asked.size > 1) for (const { books } of asked) books.returnLeasesSoon()
    return verdict
  }

  /**
   * Applies `onStoreUnavailable`; with several subjects, the strictest policy. `LocalShare`: up to this process's part of every limit, as
   * far as this process knows the limit's state.
   */
  #withoutStore(request: LeaseHold, outcome: AskOutcome): Verdict {
    const isShared = request.parts.every(({ entry }) => mayShare(entry.books.subject))
    if (outcome === 'unseeded' || !isShared) return unavailable(outcome === 'unseeded' ? 'unseeded' : 'store')
    const now = this.#now()
    const short: TimedShortage[] = []
    for (const { entry, hold } of request.parts) {
      const own = entry.books.localShortages(hold, { now, storeNow: entry.calls.storeNow(now) })
      if (own === undefined) return unavailable('store')
      short.push(...own)
    }
    if (short.length > 0) return refusal(short, ratesOf(request.parts, now), now)
    return this.#take(request, false, now)
  }

  /** @param isLeased whether leases suffice; otherwise `localShortages` has found this process's own part free */
  #take(request: LeaseHold, isLeased: boolean, now: number): LeaseHold {
    for (const { entry, hold } of request.parts) {
      const { books, calls } = entry
      const times = { now, storeNow: calls.storeNow(now) }
      if (isLeased || books.canTake(hold, now)) books.take(hold, times)
      else books.takeLocal(hold, times)
      if (!calls.isBusy && books.isRefillDue(now, 0)) calls.flush() // before a request has to wait
    }
    request.isOpen = true
    request.rates = ratesOf(request.parts, now)
    return request
  }

  #request(subjects: readonly LimitSubject[], need: Need, now: number): LeaseHold {
    const parts = subjects.map((subject): Part => {
      const entry = this.#subjects.use(subject, now)
      return { entry, hold: entry.books.holdOf(need) }
    })
    return new LeaseHold(need, parts)
  }

  #now(): number {
    return this.#deps.clock.monotonic()
  }

  #live(): number {
    return Math.max(1, Math.floor(this.#deps.live()) || 1)
  }
}

/** The share of a process in a balance is not known without the store. */
function mayShare({ onStoreUnavailable, balance }: LimitSubject): boolean {
  return onStoreUnavailable === 'LocalShare' && balance === undefined
}

function isOpen(hold: Hold): hold is LeaseHold {
  return hold instanceof LeaseHold && hold.isOpen
}

function hasShortages({ entry }: Part): boolean {
  return entry.books.hasShortages
}

/** For headers: per kind, the limit nearest to exhaustion over all subjects. */
function ratesOf(parts: ReadonlyArray<Pick<Part, 'entry'>>, now: number): RateStates {
  let requests: RateState | undefined
  let tokens: RateState | undefined
  for (const { entry } of parts) {
    requests = nearer(requests, entry.books.requests.state(now))
    tokens = nearer(tokens, entry.books.tokens.state(now))
  }
  return { requests, tokens }
}

function nearer(a: RateState | undefined, b: RateState | undefined): RateState | undefined {
  return a === undefined || (b !== undefined && b.remaining < a.remaining) ? b : a
}

function canTake({ parts }: LeaseHold, now: number): boolean {
  return parts.every(({ entry, hold }) => entry.books.canTake(hold, now))
}

/** Why the store cannot be asked about a subject that is short. */
function obstacleOf({ parts }: LeaseHold, now: number): AskOutcome | undefined {
  const short = parts.filter(({ entry, hold }) => !entry.books.canTake(hold, now))
  return short.map(({ entry }) => entry.calls.obstacle).find((obstacle) => obstacle !== undefined)
}

const ONE_REQUEST: Demand = { requests: 1, tokens: 0, permits: 0, budgets: [], balance: 0 }

function isSafeNeed({ tokens, certainTokens = 0, holdByUnit: { Currency = 0, Tokens } }: Need): boolean {
  return isAmount(tokens) && isAmount(certainTokens) && isAmount(Currency) && isAmount(Tokens)
}

function isSafeUsage({ inputTokens, outputTokens, costMicros = 0 }: SettledUsage): boolean {
  return isAmount(inputTokens) && isAmount(outputTokens) && isAmount(inputTokens + outputTokens) && isAmount(costMicros)
}

function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

/** The whole hold: unreadable usage is never zero. */
function usageOfHold({ tokens, holdByUnit }: Need): SettledUsage {
  const inputTokens = Math.max(tokens, holdByUnit.Tokens)
  return { inputTokens, outputTokens: 0, costMicros: holdByUnit.Currency }
}
