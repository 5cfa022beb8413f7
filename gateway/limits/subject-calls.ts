/** The conversation of one process with the store about one subject: one call at a time, shared by everybody who waits. */
import type { Cancel, Clock } from '../process/clock.ts'
import type { LedgerAnswer, LedgerCall, LedgerReply } from '../shared/ledger-call.ts'
import type { Breaker } from './breaker.ts'
import { LedgerCallRefused, type LedgerStore } from './ledger-store.ts'
import type { StoreTime } from './store-time.ts'
import type { Demand, SentParts, SubjectBooks } from './subject-books.ts'

/** How a wait for the store ended. `answered`: look at the books again. */
export type AskOutcome = 'answered' | 'store' | 'unseeded'

/** What a process knows of one node of the store. */
export interface StoreNode {
  readonly breaker: Breaker
  readonly time: StoreTime
}

/** What the conversation needs from the ledger of the process. */
export interface CallDeps {
  readonly store: LedgerStore
  readonly clock: Clock
  /** The node that holds the subject at this moment: a failover moves it. */
  readonly node: () => StoreNode
  /** Random per start. */
  readonly process: string
  readonly live: () => number
  /** Above every number before: calls and batches of all subjects share one counter. */
  readonly nextNumber: () => number
  readonly onCall: () => void
  /** Longest wait of a request for the store, in ms. */
  readonly timeoutMs: number
  /** An answer without the call having counted: an error reply, or one that cannot be read. */
  readonly onRefused: (error: Error) => void
}

/** After an error reply, or without a seed, the subject is left alone for so long. */
const BACK_OFF_MS = 250

/** A read gives up after so many calls without an answer in them. */
const MAX_READ_CALLS = 4

interface Flight {
  readonly call: LedgerCall
  readonly sent: SentParts
  readonly node: StoreNode
  readonly cancelTimer: Cancel
  isLate: boolean
}

interface Reader {
  calls: number
  readonly resolve: (read: { readonly answer: LedgerAnswer; readonly sent: SentParts }) => void
  readonly reject: (error: Error) => void
}

/** Calls about one subject. */
export class SubjectCalls {
  readonly #books: SubjectBooks
  readonly #deps: CallDeps
  #flight: Flight | undefined
  #isScheduled = false
  #isCallWanted = false
  #waiting: Demand[] = []
  #wake = Promise.withResolvers<AskOutcome>()
  #readers: Reader[] = []
  #acknowledged = 0
  #seed = ''
  #backOff: { readonly until: number; readonly outcome: AskOutcome } = { until: -Infinity, outcome: 'store' }

  constructor(books: SubjectBooks, deps: CallDeps) {
    this.#books = books
    this.#deps = deps
  }

  /** Why a call would be in vain now; undefined if it may succeed. */
  get obstacle(): AskOutcome | undefined {
    if (!this.#deps.node().breaker.allows || this.#flight?.isLate) return 'store'
    return this.#deps.clock.monotonic() < this.#backOff.until ? this.#backOff.outcome : undefined
  }

  /** Time of the store as far as known, ms since 1970. @param now monotonic ms */
  storeNow(now: number): number {
    return this.#deps.node().time.at(now)
  }

  get isBusy(): boolean {
    return this.#flight !== undefined || this.#isScheduled
  }

  /** Waits for the next answer, with the demand in the next call. */
  ask(demand: Demand): Promise<AskOutcome> {
    const { obstacle } = this
    if (obstacle !== undefined) return Promise.resolve(obstacle)
    this.#waiting.push(demand)
    this.#schedule()
    return this.#wake.promise
  }

  /** Reports at once, or right after the call under way. */
  flush(): void {
    if (this.obstacle === undefined) this.#schedule()
  }

  /** An answer with every limit in it. @throws Error if none comes */
  read(): Promise<{ readonly answer: LedgerAnswer; readonly sent: SentParts }> {
    if (this.obstacle !== undefined) return Promise.reject(new Error('the ledger does not answer'))
    const { promise, resolve, reject } = Promise.withResolvers<{ readonly answer: LedgerAnswer; readonly sent: SentParts }>()
    this.#readers.push({ calls: 0, resolve, reject })
    this.#schedule()
    return promise
  }

  /** Waits with everybody who asks in this turn of the event loop, so that one call serves all of them. */
  #schedule(): void {
    if (this.#flight) this.#isCallWanted = true
    if (this.#flight || this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => this.#sendOrRefuse())
  }

  /** A mistake here must not end the process: a time zone that the calendar does not know, for example. */
  #sendOrRefuse(): void {
    this.#isScheduled = false
    this.#isCallWanted = false
    try {
      this.#send()
    } catch (error) {
      this.#backOff = { until: this.#deps.clock.monotonic() + BACK_OFF_MS, outcome: 'store' }
      this.#deps.onRefused(error instanceof Error ? error : new Error(String(error)))
      this.#wakeAll('store')
    }
  }

  #send(): void {
    const { clock, store, timeoutMs, onCall } = this.#deps
    const sent = this.#parts()
    const call = this.#call(sent)
    onCall()
    for (const reader of this.#readers) reader.calls += 1
    const cancelTimer = clock.after(timeoutMs, () => this.#timedOut(flight))
    const flight: Flight = { call, sent, node: this.#deps.node(), cancelTimer, isLate: false }
    this.#flight = flight
    store.call(call).then(
      (reply) => this.#answered(flight, reply),
      (error: unknown) => this.#failed(flight, error),
    )
  }

  #parts(): SentParts {
    const now = this.#deps.clock.monotonic()
    return this.#books.parts(this.#waiting, this.#readers.length > 0 || this.#waiting.length === 0, { now, storeNow: this.storeNow(now) })
  }

  #call({ parts }: SentParts): LedgerCall {
    const { process, live, nextNumber } = this.#deps
    const batch = this.#books.batch.freeze(nextNumber)
    const acknowledged = this.#acknowledged
    return {
      subject: this.#books.subject.uid,
      process,
      number: nextNumber(),
      acknowledged,
      live: live(),
      seed: this.#seed,
      batch,
      ...parts,
    }
  }

  #timedOut(flight: Flight): void {
    flight.isLate = true
    flight.node.breaker.failed()
    this.#wakeAll('store')
  }

  /** A late answer counts too: its grants are in the store. */
  #answered(flight: Flight, reply: LedgerReply): void {
    const now = this.#deps.clock.monotonic()
    this.#land(flight)
    if (!flight.isLate) flight.node.breaker.answered(now - flight.sent.sentAt)
    flight.node.time.observe(reply.nowMs, flight.sent.sentAt)
    this.#wakeAll(this.#book(flight, reply, now))
    this.#goOn()
  }

  #failed(flight: Flight, error: unknown): void {
    const now = this.#deps.clock.monotonic()
    this.#land(flight)
    this.#books.forgetReports()
    if (error instanceof LedgerCallRefused) {
      this.#backOff = { until: now + BACK_OFF_MS, outcome: 'store' }
      this.#deps.onRefused(error)
    } else if (!flight.isLate) flight.node.breaker.failed()
    this.#wakeAll('store')
    this.#goOn()
  }

  #land(flight: Flight): void {
    flight.cancelTimer()
    this.#flight = undefined
  }

  /** A reader goes on after a call that has only set numbers or windows right. */
  #goOn(): void {
    const expired = this.#readers.filter(({ calls }) => calls >= MAX_READ_CALLS)
    this.#readers = this.#readers.filter((reader) => !expired.includes(reader))
    for (const { reject } of expired) reject(new Error('the ledger gives no answer'))
    if (this.#isCallWanted || this.#readers.length > 0) this.flush()
  }

  #book({ call, sent }: Flight, reply: LedgerReply, now: number): AskOutcome {
    switch (reply.status) {
      case 'stale':
        this.#books.forgetReports()
        this.#backOff = { until: now + BACK_OFF_MS, outcome: 'store' }
        return 'store'
      case 'lost':
        this.#acknowledged = reply.number
        this.#books.batch.lost(reply.number, reply.batch)
        this.#books.forgetReports()
        this.#isCallWanted = true
        return 'answered'
      case 'unseeded':
        this.#acknowledge(call, sent, reply.nowMs)
        this.#backOff = { until: now + BACK_OFF_MS, outcome: 'unseeded' }
        return 'unseeded'
      case 'window':
        this.#acknowledge(call, sent, reply.nowMs)
        for (const book of this.#books.budgets) book.forgetWindows()
        return 'answered'
      case 'granted':
      case 'short':
        this.#acknowledge(call, sent, reply.nowMs)
        this.#seed = reply.seed
        this.#books.answered(sent, reply, call.number, now)
        for (const { resolve } of this.#takeReaders()) resolve({ answer: reply, sent })
        return 'answered'
    }
  }

  #acknowledge(call: LedgerCall, { parts, sentAt }: SentParts, nowMs: number): void {
    this.#acknowledged = call.number
    this.#books.batch.acknowledged(call.number, nowMs)
    if (parts.permits) this.#books.permits.reported(parts.permits, undefined, sentAt)
  }

  #wakeAll(outcome: AskOutcome): void {
    this.#waiting = []
    const { resolve } = this.#wake
    this.#wake = Promise.withResolvers<AskOutcome>()
    resolve(outcome)
    if (outcome === 'answered') return
    for (const { reject } of this.#takeReaders()) reject(new Error(`the ledger does not answer: ${outcome}`))
  }

  #takeReaders(): Reader[] {
    return this.#readers.splice(0)
  }
}
