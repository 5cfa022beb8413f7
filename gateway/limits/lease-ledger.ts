/** The ledger of one process: spends leases in memory, and asks the store when they do not suffice. */
import type { Cancel, Clock } from '../process/clock.ts'
import { LEDGER_TIMING, type LedgerTiming } from '../shared/ledger-layout.ts'
import { Breaker, type BreakerState } from './breaker.ts'
import type { Hold, Ledger, LedgerSnapshot, LimitSubject, Need, Refused, SettledUsage, Verdict, WindowAt } from './ledger.ts'
import type { LedgerStore } from './ledger-store.ts'
import { localShortages, takeLocally } from './local-admission.ts'
import { isSafeNeed, isSafeUsage, usageCounters, usageOfHold } from './settlement.ts'
import { snapshotOf } from './snapshot.ts'
import { StoreTime } from './store-time.ts'
import type { Times } from './budget-book.ts'
import { SubjectBooks, type Demand, type Portion } from './subject-books.ts'
import { SubjectCalls, type AskOutcome, type StoreNode } from './subject-calls.ts'
import { foreverRefused, ratesOf, refusal, unavailable } from './verdicts.ts'

/** What the ledger needs. */
export interface LeaseLedgerDeps {
  readonly store: LedgerStore
  readonly clock: Clock
  /** Random per start of the process. */
  readonly process: string
  /** Live processes that share the limits, as last known; below 1 counts as 1. */
  readonly live: () => number
  readonly windowAt: WindowAt
  readonly timing?: LedgerTiming
  /** Called for each error reply of the store, with a message that holds no value of a key. */
  readonly onRefused?: (error: Error) => void
}

/** How decisions were made since the start. */
export interface LedgerStats {
  readonly local: number
  readonly waited: number
  readonly calls: number
  readonly subjects: number
}

/** Longest wait of a request for one answer of the store. */
const TIMEOUT_MS = 50
const FLUSH_MS = 250
const IDLE_MS = 60_000
/** Calls that one request may wait for; each serves or refuses somebody. */
const MAX_ROUNDS = 64

interface Entry {
  readonly books: SubjectBooks
  readonly calls: SubjectCalls
  usedAt: number
}

interface Request {
  readonly need: Need
  readonly entries: readonly Entry[]
  readonly demands: readonly Demand[]
}

type Take = (books: SubjectBooks, demand: Demand, times: Times) => Portion

interface OwnHold extends Hold {
  readonly portions: readonly Portion[]
  readonly need: Need
  isOpen: boolean
}

/** Limits of all subjects in one process. */
export class LeaseLedger implements Ledger {
  readonly #deps: LeaseLedgerDeps
  readonly #timing: LedgerTiming
  readonly #entries = new Map<string, Entry>()
  /** Nobody uses them, but what this process has spent in their open windows must stay known: a count that restarts gives spend back. */
  readonly #resting = new Map<string, Entry>()
  readonly #nodes = new Map<string, StoreNode>()
  readonly #holds = new WeakMap<Hold, OwnHold>()
  #number = 0
  #calls = 0
  #local = 0
  #waited = 0
  #cancelTick: Cancel | undefined
  #isClosed = false

  constructor(deps: LeaseLedgerDeps) {
    this.#deps = deps
    this.#timing = deps.timing ?? LEDGER_TIMING
  }

  get stats(): LedgerStats {
    return { local: this.#local, waited: this.#waited, calls: this.#calls, subjects: this.#entries.size }
  }

  /** How each node of the store does that was called so far. */
  get breakers(): readonly BreakerState[] {
    return [...this.#nodes.values()].map(({ breaker }) => breaker.state)
  }

  knownRefusal(subject: LimitSubject): Refused | undefined {
    const entry = this.#entries.get(subject.uid)
    if (entry?.books.subject !== subject) return undefined // other limits, which nobody has asked about yet
    const now = this.#now()
    const least = { ...ONE_REQUEST, budgets: subject.budgets.map(() => 1) }
    const found = entry.books.shortages(least, now).map((shortage) => ({ subject, shortage }))
    const isCertain = found.length > 0 && found.every(({ shortage }) => shortage.limit === 'requests') // else what it costs decides
    return isCertain ? refusal(found, this.#rates([entry], now), now) : undefined
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

  /** A mistake of ours, for example a time zone that the calendar does not know. */
  #broken(error: unknown): Verdict {
    this.#deps.onRefused?.(error instanceof Error ? error : new Error(String(error)))
    return unavailable('store')
  }

  #reserve(subjects: readonly LimitSubject[], need: Need): Verdict | Promise<Verdict> {
    const limited = subjects.filter(hasLimits)
    const forever = foreverRefused(limited, need)
    if (forever) return forever
    const request = this.#request(limited, need)
    const verdict = this.#decide(request)
    if (verdict) {
      this.#local += 1
      return verdict
    }
    const obstacle = this.#obstacle(request)
    if (obstacle !== undefined) return this.#withoutStore(request, obstacle)
    this.#waited += 1
    return this.#acquire(request)
  }

  settle(hold: Hold, usage: SettledUsage): void {
    const own = this.#close(hold)
    if (!own) return
    const used = isSafeUsage(usage) ? usage : usageOfHold(own.need)
    for (const portion of own.portions) {
      portion.books.count(usageCounters(own.need.model, used))
      this.#after(portion, portion.books.settle(portion, used, this.#now()))
    }
  }

  release(hold: Hold): void {
    const own = this.#close(hold)
    for (const portion of own?.portions ?? []) this.#after(portion, portion.books.release(portion, this.#now()))
  }

  /**
   * The store may have lost data (a failover, a new epoch): every subject reports at once what it has spent, admitted and runs. A
   * subject that is in use finds out by itself; one that is not would tell nobody what it has spent.
   */
  reportAgain(): void {
    for (const [uid, entry] of this.#resting) this.#wake(uid, entry)
    for (const { books, calls } of this.#entries.values()) {
      books.forgetReports()
      calls.flush()
    }
  }

  async snapshot(subject: LimitSubject): Promise<LedgerSnapshot> {
    const { books, calls } = this.#entry(subject)
    const { answer, sent } = await calls.read()
    return snapshotOf(books, sent, answer, this.#now())
  }

  async close(deadlineMs: number): Promise<void> {
    this.#isClosed = true
    this.#cancelTick?.()
    const { clock } = this.#deps
    const deadline = clock.monotonic() + deadlineMs
    for (const { books } of this.#entries.values()) books.close()
    while (clock.monotonic() < deadline && this.#flushAll()) {
      await new Promise<void>((resolve) => clock.after(CLOSE_POLL_MS, resolve))
    }
    for (const { breaker } of this.#nodes.values()) breaker.close()
  }

  /** Admits or refuses with what this process knows; undefined if the store must be asked. */
  #decide(request: Request): Verdict | undefined {
    const now = this.#now()
    const { entries, demands } = request
    const shortages = entries.flatMap(({ books }, at) =>
      books.shortages(demandAt(demands, at), now).map((shortage) => ({ subject: books.subject, shortage })),
    )
    if (shortages.length > 0) return refusal(shortages, this.#rates(entries, now), now)
    if (!entries.every(({ books }, at) => books.canTake(demandAt(demands, at), now))) return undefined
    return this.#hold(request, takeLeased)
  }

  async #acquire(request: Request): Promise<Verdict> {
    const asked = new Set<Entry>()
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const outcomes = await this.#askShort(request, asked)
      const verdict = this.#decide(request)
      if (verdict) return this.#done(verdict, asked)
      const failure = outcomes.find((outcome) => outcome !== 'answered')
      if (failure !== undefined) return this.#withoutStore(request, failure)
    }
    return this.#withoutStore(request, 'store')
  }

  async #askShort({ entries, demands }: Request, asked: Set<Entry>): Promise<readonly AskOutcome[]> {
    const now = this.#now()
    const short = entries.flatMap((entry, at) => {
      const demand = demandAt(demands, at)
      return entry.books.canTake(demand, now) ? [] : [{ entry, demand }]
    })
    for (const { entry } of short) asked.add(entry)
    return await Promise.all(short.map(({ entry, demand }) => entry.calls.ask(demand)))
  }

  /** One subject has refused: what the others have granted for this request goes back at the next flush. */
  #done(verdict: Verdict, asked: ReadonlySet<Entry>): Verdict {
    if (verdict.outcome === 'refused' && asked.size > 1) for (const { books } of asked) books.returnLeasesSoon()
    return verdict
  }

  #obstacle({ entries, demands }: Request): AskOutcome | undefined {
    const now = this.#now()
    const short = entries.filter(({ books }, at) => !books.canTake(demandAt(demands, at), now))
    return short.map(({ calls }) => calls.obstacle).find((obstacle) => obstacle !== undefined)
  }

  /** The policy of `onStoreUnavailable`; with several subjects the strictest. */
  #withoutStore(request: Request, outcome: AskOutcome): Verdict {
    const isShared = request.entries.every(({ books }) => books.subject.onStoreUnavailable === 'LocalShare')
    if (outcome === 'unseeded' || !isShared) return unavailable(outcome === 'unseeded' ? 'unseeded' : 'store')
    const now = this.#now()
    const terms = { live: this.#live(), windowMs: this.#timing.windowMs }
    const shortages = request.entries.map(({ books, calls }, at) =>
      localShortages(books, demandAt(request.demands, at), { now, storeNow: calls.storeNow(now), ...terms }),
    )
    if (shortages.includes('unknown')) return unavailable('store')
    const known = shortages.flatMap((found) => (found === 'unknown' ? [] : found))
    if (known.length > 0) return refusal(known, this.#rates(request.entries, now), now)
    return this.#hold(request, takeLocally)
  }

  #hold({ need, entries, demands }: Request, take: Take): Hold {
    const now = this.#now()
    const portions = entries.map(({ books, calls }, at) => take(books, demandAt(demands, at), { now, storeNow: calls.storeNow(now) }))
    const hold: Hold = { outcome: 'held', rates: this.#rates(entries, now) }
    this.#holds.set(hold, { ...hold, portions, need, isOpen: true })
    this.#refill(entries, now)
    return hold
  }

  /** Asks before anybody has to wait. */
  #refill(entries: readonly Entry[], now: number): void {
    for (const { books, calls } of entries) if (!calls.isBusy && books.isRefillDue(now, 0)) calls.flush()
  }

  #close(hold: Hold): OwnHold | undefined {
    const own = this.#holds.get(hold)
    if (!own?.isOpen) return undefined
    own.isOpen = false
    return own
  }

  #after({ books }: Portion, isUrgent: boolean): void {
    const entry = this.#entries.get(books.subject.uid)
    if (!entry) return
    entry.usedAt = this.#now()
    if (isUrgent) entry.calls.flush()
  }

  #request(subjects: readonly LimitSubject[], need: Need): Request {
    const entries = subjects.map((subject) => this.#entry(subject))
    return { need, entries, demands: entries.map(({ books }) => books.demand(need)) }
  }

  #entry(subject: LimitSubject): Entry {
    const now = this.#now()
    const resting = this.#resting.get(subject.uid)
    if (resting) this.#wake(subject.uid, resting)
    const found = this.#entries.get(subject.uid)
    if (found) {
      found.usedAt = now
      found.books.update(subject, now)
      return found
    }
    const books = new SubjectBooks(subject, { timing: this.#timing, windowAt: this.#deps.windowAt, live: () => this.#live() }, now)
    const entry = { books, calls: this.#callsOf(books), usedAt: now }
    this.#entries.set(subject.uid, entry)
    this.#startTicking()
    return entry
  }

  #wake(uid: string, entry: Entry): void {
    this.#resting.delete(uid)
    this.#entries.set(uid, entry)
    this.#startTicking()
  }

  #callsOf(books: SubjectBooks): SubjectCalls {
    const { store, clock, process, onRefused = () => undefined } = this.#deps
    return new SubjectCalls(books, {
      node: () => this.#node(store.nodeOf(books.subject.uid)),
      store,
      clock,
      process,
      live: () => this.#live(),
      nextNumber: () => ++this.#number,
      onCall: () => void (this.#calls += 1),
      timeoutMs: TIMEOUT_MS,
      onRefused,
    })
  }

  #node(name: string): StoreNode {
    const { store, clock } = this.#deps
    const found = this.#nodes.get(name)
    if (found) return found
    const node = {
      breaker: new Breaker({ clock, ping: () => store.ping(name), timeoutMs: TIMEOUT_MS }),
      time: new StoreTime(clock.now() - clock.monotonic()),
    }
    this.#nodes.set(name, node)
    return node
  }

  #startTicking(): void {
    this.#cancelTick ??= this.#deps.clock.after(FLUSH_MS, () => this.#tick())
  }

  #tick(): void {
    this.#cancelTick = undefined
    const now = this.#now()
    for (const [uid, entry] of this.#entries) this.#tickEntry(uid, entry, now)
    if (this.#entries.size > 0 && !this.#isClosed) this.#startTicking()
  }

  #tickEntry(uid: string, entry: Entry, now: number): void {
    const { books, calls, usedAt } = entry
    books.tick({ now, storeNow: calls.storeNow(now) })
    if (books.isCallDue(now, FLUSH_MS)) return calls.flush()
    if (now - usedAt < IDLE_MS || !books.isIdle || calls.isBusy) return
    this.#entries.delete(uid)
    if (!books.isUnused) this.#resting.set(uid, entry)
  }

  /** @returns true while something is left to report */
  #flushAll(): boolean {
    const now = this.#now()
    let isLeft = false
    for (const { books, calls } of this.#entries.values()) {
      const isDue = books.isCallDue(now, 0)
      if (isDue) calls.flush()
      isLeft ||= isDue || calls.isBusy
    }
    return isLeft
  }

  #rates(entries: readonly Entry[], now: number): Hold['rates'] {
    return ratesOf(
      entries.map(({ books }) => books),
      now,
    )
  }

  #now(): number {
    return this.#deps.clock.monotonic()
  }

  #live(): number {
    return Math.max(1, Math.floor(this.#deps.live()) || 1)
  }
}

/** Polls on the way out, when every subject reports at once. */
const CLOSE_POLL_MS = 5

function hasLimits({ limits, budgets }: LimitSubject): boolean {
  const { requestsPerMinute, tokensPerMinute, maxConcurrentRequests } = limits
  return budgets.length > 0 || [requestsPerMinute, tokensPerMinute, maxConcurrentRequests].some((limit) => limit !== undefined)
}

const takeLeased: Take = (books, demand, times) => books.take(demand, times)

const NOTHING: Demand = { requests: 0, tokens: 0, permits: 0, budgets: [] }
/** The least that a request takes where requests are limited. */
const ONE_REQUEST: Demand = { ...NOTHING, requests: 1 }

function demandAt(demands: readonly Demand[], at: number): Demand {
  return demands[at] ?? NOTHING
}
