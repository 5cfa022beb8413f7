/** The calls of one process to the store about one subject: one at a time, shared by all waiting requests. */
import type { Cancel } from '#platform/clock.ts'
import type { LedgerCall, LedgerReply } from '#contract/ledger/ledger-call.ts'
import { BackOff } from '#platform/back-off.ts'
import { answerDeadline, type Breaker } from './breaker.ts'
import { LedgerCallRefused } from './ledger.ts'
import { appended } from './short-list.ts'
import { type StoreTime, SubjectTime } from './store-time.ts'
import type { SubjectBooks } from './subject-books.ts'
import type { Demand, SentParts } from './subject-demand.ts'
import type { LedgerDeps } from './subject-registry.ts'

/** How a call ended; `refused` by an error reply, `failed` without an answer. */
export type CallEnd = 'answered' | 'refused' | 'failed'

export type AskOutcome = 'answered' | 'store' | 'unseeded'

/** What the calls need; the ledger of the process provides it for all subjects. */
export interface CallDeps extends LedgerDeps {
  readonly breaker: Breaker
  readonly time: StoreTime
  /** Returns a number above all earlier ones: calls and batches of all subjects share one counter. */
  readonly nextNumber: () => number
  /** Called before a call is made. */
  readonly onSend: () => void
  readonly onCall: (uid: string) => void
  /** Called when the store has lost calls that it should still know: it has probably lost those of other subjects too. */
  readonly onLost: () => void
}

/** Time for which a subject is not called after an error reply, and at first without a seed, ms. */
const BACK_OFF_MS = 250
/** Longest time for which a subject without a seed is not called, ms. */
const UNSEEDED_MS = 4_000

/** Requests give up after this many calls without a result. */
const MAX_CALLS_WITHOUT_ANSWER = 4

interface Waiter {
  /** Undefined: the call has to contain every limit. */
  readonly demand: Demand | undefined
  readonly wake: (outcome: AskOutcome) => void
}

interface Flight {
  readonly call: LedgerCall
  readonly sent: SentParts
  /** The requests whose demands are in the call. Later requests wait for the next call. */
  waiters: readonly Waiter[]
  readonly cancelTimer: Cancel
  isLate: boolean
}

/** Time in which a subject is not called. */
interface Pause {
  readonly until: number
  readonly outcome: AskOutcome
}

const NO_PAUSE: Pause = { until: -Infinity, outcome: 'store' }

/** Never changed: `appended` makes a new list of an empty one. */
const NO_WAITERS: Waiter[] = []

/** The seed of the last reply. Thousands of subjects share a seed, and each reply brings a copy. */
let lastSeed = ''

function shared(seed: string): string {
  if (seed !== lastSeed) lastSeed = seed
  return lastSeed
}

export class SubjectCalls {
  readonly #books: SubjectBooks
  readonly #deps: CallDeps
  #flight: Flight | undefined
  #isScheduled = false
  #isCallWanted = false
  #waiters: Waiter[] = NO_WAITERS
  #acknowledged = 0
  /** Seed of the last answer. */
  #seed = ''
  #wasAway = false
  #mustRepeat = false
  readonly #time = new SubjectTime()
  #paused = NO_PAUSE
  /** Undefined while the budgets have a seed. */
  #unseeded: BackOff | undefined
  /** Number of consecutive calls that only corrected numbers or windows. */
  #withoutAnswer = 0

  constructor(books: SubjectBooks, deps: CallDeps) {
    this.#books = books
    this.#deps = deps
  }

  /** Why a call would fail now; undefined if it may succeed. */
  get obstacle(): AskOutcome | undefined {
    if (!this.#deps.breaker.allows || this.#flight?.isLate) return 'store'
    return this.#deps.clock.monotonic() < this.#paused.until ? this.#paused.outcome : undefined
  }

  /** The operator may have forgotten what this process has spent: the next call says so, and reports every budget. */
  setAway(): void {
    this.#wasAway = true
    this.#books.forgetReports()
  }

  /** The store may have lost data: the next call reports everything. */
  repeatReports(): void {
    this.#mustRepeat = true
  }

  get isReportDue(): boolean {
    return this.#mustRepeat || this.#books.isReportDue
  }

  /** Whether the store has no seed for the budgets: none yet, or none any more. */
  get isUnseeded(): boolean {
    return this.#unseeded !== undefined
  }

  /** Time of the store as far as known, ms since 1970. @param now monotonic ms */
  storeNow(now: number): number {
    return this.#time.at(now) ?? this.#deps.time.at(now)
  }

  get isBusy(): boolean {
    return this.#flight !== undefined || this.#isScheduled
  }

  /**
   * @param demand undefined to ask for every limit
   * @param wake called once, after the answer is in the books: the next call does not count units that it takes as free
   */
  ask(demand: Demand | undefined, wake: (outcome: AskOutcome) => void): void {
    const { obstacle } = this
    if (obstacle !== undefined) return wake(obstacle)
    this.#waiters = appended(this.#waiters, { demand, wake })
    this.#schedule()
  }

  /** Reports at once, or directly after the running call. */
  flush(): void {
    if (this.obstacle === undefined) this.#schedule()
  }

  /** Sends the call at the end of this turn of the event loop, so that one call serves all requests of the turn. */
  #schedule(): void {
    if (this.#flight) this.#isCallWanted = true
    if (this.#flight || this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => this.#sendOrRefuse())
  }

  /** Sends the call. A mistake must not end the process: for example, a time zone that the calendar does not know. */
  #sendOrRefuse(): void {
    this.#isScheduled = false
    this.#isCallWanted = false
    try {
      this.#send()
    } catch (error) {
      this.#pause('store')
      this.#deps.onRefused(error instanceof Error ? error : new Error(String(error)))
      this.#giveUp('store')
    }
  }

  #send(): void {
    const { clock, store, waitMs, onSend, onCall } = this.#deps
    onSend()
    if (this.#mustRepeat) this.#books.forgetReports()
    this.#mustRepeat = false
    const sent = this.#parts()
    const call = this.#call(sent, clock.monotonic())
    onCall(this.#books.subject.uid)
    const cancelTimer = answerDeadline(clock, waitMs, () => this.#timedOut(flight))
    const flight: Flight = { call, sent, waiters: this.#waiters, cancelTimer, isLate: false }
    this.#flight = flight
    this.#waiters = NO_WAITERS
    store.call(call).then(
      (reply) => this.#answered(flight, reply),
      (error: unknown) => this.#failed(flight, error),
    )
  }

  #parts(): SentParts {
    const now = this.#deps.clock.monotonic()
    const demands = this.#waiters.flatMap(({ demand }) => demand ?? [])
    const isEveryLimitAsked = demands.length === 0 || demands.length < this.#waiters.length
    return this.#books.parts(demands, isEveryLimitAsked, { now, storeNow: this.storeNow(now) })
  }

  #call({ parts }: SentParts, now: number): LedgerCall {
    const { process, live, nextNumber } = this.#deps
    const batch = this.#books.batch.freeze(nextNumber)
    const acknowledged = this.#acknowledged
    return {
      subject: this.#books.subject.uid,
      process,
      number: nextNumber(),
      acknowledged,
      live: live(),
      ...this.#time.bounds(now),
      wasAway: this.#wasAway,
      batch,
      ...parts,
    }
  }

  #timedOut(flight: Flight): void {
    flight.isLate = true
    this.#deps.breaker.failed()
    wakeAll(flight.waiters, 'store')
    flight.waiters = []
    this.#giveUp('store')
  }

  /** Books a late answer, because its grants are in the store. */
  #answered(flight: Flight, reply: LedgerReply): void {
    const { clock, breaker, time, onEnd } = this.#deps
    const now = clock.monotonic()
    onEnd('answered')
    this.#land(flight)
    if (!flight.isLate) breaker.answered(now - flight.sent.sentAt)
    time.observe(reply.nowMs, flight.sent.sentAt)
    if (reply.status === 'lost' && this.#time.isFresh(now)) this.#deps.onLost()
    this.#time.told(reply.nowMs, flight.sent.sentAt, now)
    const outcome = this.#limited(this.#book(flight, reply, now))
    if (flight.isLate) this.#books.endLeases() // no request waits for these grants, and the process may have used its own share instead
    this.#serve(flight, outcome)
    this.#goOn()
  }

  #pause(outcome: AskOutcome): void {
    if (outcome === 'unseeded') this.#unseeded ??= new BackOff({ firstMs: BACK_OFF_MS, maxMs: UNSEEDED_MS })
    const ms = outcome === 'unseeded' ? this.#unseeded?.next() : undefined
    this.#paused = { until: this.#deps.clock.monotonic() + (ms ?? BACK_OFF_MS), outcome }
  }

  /** Pauses calls to a store whose answers repeatedly contain no result. */
  #limited(outcome: AskOutcome | 'again'): AskOutcome | 'again' {
    this.#withoutAnswer = outcome === 'again' ? this.#withoutAnswer + 1 : 0
    if (this.#withoutAnswer < MAX_CALLS_WITHOUT_ANSWER) return outcome
    this.#withoutAnswer = 0
    this.#pause('store')
    return 'store'
  }

  /** After an answer that only corrected numbers or windows, the next call asks for the same units. */
  #serve({ waiters }: Flight, outcome: AskOutcome | 'again'): void {
    if (outcome === 'again') {
      this.#waiters = [...waiters, ...this.#waiters]
      return
    }
    wakeAll(waiters, outcome)
    if (outcome !== 'answered') this.#giveUp(outcome)
  }

  #failed(flight: Flight, error: unknown): void {
    this.#land(flight)
    this.#books.forgetReports()
    const isRefused = error instanceof LedgerCallRefused
    this.#deps.onEnd(isRefused ? 'refused' : 'failed')
    if (isRefused) {
      this.#pause('store')
      this.#deps.onRefused(error)
    } else if (!flight.isLate) this.#deps.breaker.failed()
    this.#serve(flight, 'store')
    this.#goOn()
  }

  #land(flight: Flight): void {
    flight.cancelTimer()
    this.#flight = undefined
  }

  #goOn(): void {
    const { obstacle } = this
    if (obstacle !== undefined) this.#giveUp(obstacle)
    else if (this.#isCallWanted || this.#waiters.length > 0) this.#schedule()
  }

  #book({ call, sent }: Flight, reply: LedgerReply, now: number): AskOutcome | 'again' {
    switch (reply.status) {
      case 'stale':
        this.#books.forgetReports()
        this.#pause('store')
        return 'store'
      case 'lost':
        this.#acknowledged = reply.number
        this.#books.batch.lost(reply.number, reply.batch)
        this.#books.forgetReports()
        this.#isCallWanted = true
        return 'again'
      case 'unseeded':
        this.#acknowledge(call, sent, reply.nowMs)
        this.#pause('unseeded')
        return 'unseeded'
      case 'window':
        this.#acknowledge(call, sent, reply.nowMs)
        for (const book of this.#books.budgets) book.forgetWindows()
        return 'again'
      case 'granted':
      case 'short':
        this.#acknowledge(call, sent, reply.nowMs)
        if (this.#seed !== '' && reply.seed !== this.#seed) this.#books.forgetReports() // the new seed lacks what this call did not report
        this.#seed = shared(reply.seed)
        this.#unseeded = undefined
        this.#wasAway = false
        this.#books.answered(sent, { ...reply, seed: this.#seed }, call.number, now)
        return 'answered'
    }
  }

  #acknowledge(call: LedgerCall, { parts, sentAt }: SentParts, nowMs: number): void {
    this.#acknowledged = call.number
    this.#books.batch.acknowledged(call.number, nowMs)
    if (parts.permits) this.#books.permits.reported(parts.permits, undefined, sentAt)
  }

  /** Reports to all waiting requests that no answer will arrive. */
  #giveUp(outcome: AskOutcome): void {
    const waiters = this.#waiters
    this.#waiters = NO_WAITERS
    wakeAll(waiters, outcome)
  }
}

function wakeAll(waiters: readonly Waiter[], outcome: AskOutcome): void {
  for (const { wake } of waiters) wake(outcome)
}
