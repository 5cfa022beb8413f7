import type { Cancel, Clock } from '#platform/clock.ts'

/** State of the store: `suspect` after the first failure, `open` after many. No request waits for the store in either state. */
export type BreakerState = 'closed' | 'suspect' | 'open'

interface BreakerDeps {
  readonly clock: Clock
  readonly ping: () => Promise<void>
  /** Longest wait for a call or a ping, in ms. */
  readonly timeoutMs: number
}

const SUSPECT_PING_MS = 100
const OPEN_PING_MS = 1_000
const GOOD_PINGS = 2
const FAILURES = 5
const FAILURES_WITHIN_MS = 10_000
/** A slow answer takes more than one part in this number of the longest wait. */
const SLOW_PER_WAIT = 2
const LATENCIES = 100
/** A percentile needs at least this many answers. */
const MIN_LATENCIES = 20
const SLOW_PART = 0.05

/** Keeps requests from waiting for a dead or slow store, and notices when the store works again. */
export class Breaker {
  readonly #deps: BreakerDeps
  readonly #slowMs: number
  #state: BreakerState = 'closed'
  /** One entry for each stop of the store, however many calls fail in the stop. */
  #failures: number[] = []
  /** Latencies of the last answers, in a ring; then the number of all answers, and the number of slow ones in the ring. */
  readonly #latencies: number[] = []
  #answers = 0
  #slow = 0
  #goodPings = 0
  #cancel: Cancel | undefined
  #isProbing = false
  #isClosed = false

  constructor(deps: BreakerDeps) {
    this.#deps = deps
    this.#slowMs = deps.timeoutMs / SLOW_PER_WAIT
  }

  get state(): BreakerState {
    return this.#state
  }

  get allows(): boolean {
    return this.#state === 'closed'
  }

  answered(latencyMs: number): void {
    const at = this.#answers++ % LATENCIES
    if (this.#answers > LATENCIES && (this.#latencies[at] ?? 0) > this.#slowMs) this.#slow -= 1
    this.#latencies[at] = latencyMs
    if (latencyMs > this.#slowMs) this.#slow += 1
    if (this.#slow > 0 && this.#state === 'closed' && !this.#isProbing && this.#isSlow()) void this.#probe()
  }

  /** Reports a time-out or a lost connection. */
  failed(): void {
    if (this.#state !== 'closed') return // this call left before the first failure, so its failure adds no information
    this.#state = 'suspect'
    this.#count()
    if (this.#state === 'suspect') this.#pingAfter(SUSPECT_PING_MS)
  }

  close(): void {
    this.#isClosed = true
    this.#cancel?.()
  }

  #isSlow(): boolean {
    const known = Math.min(this.#answers, LATENCIES)
    return known >= MIN_LATENCIES && this.#slow > SLOW_PART * known
  }

  /** Calls continue meanwhile. This process may have been busy, so a second ping decides: an open breaker refuses for 2 s. */
  async #probe(): Promise<void> {
    this.#isProbing = true
    const isGood = (await this.#isAnswering(this.#slowMs)) || (await this.#isAnswering(this.#slowMs))
    this.#isProbing = false
    if (this.#isClosed || this.#state !== 'closed') return
    if (isGood) this.#forgetLatencies()
    else this.#open()
  }

  #forgetLatencies(): void {
    this.#answers = 0
    this.#slow = 0
  }

  #open(): void {
    if (this.#state === 'open') return
    this.#state = 'open'
    this.#goodPings = 0
    this.#pingAfter(OPEN_PING_MS)
  }

  #pingAfter(delayMs: number): void {
    this.#cancel?.()
    if (this.#isClosed) return
    this.#cancel = this.#deps.clock.after(delayMs, () => void this.#ping())
  }

  async #ping(): Promise<void> {
    const limitMs = this.#state === 'open' ? this.#slowMs : this.#deps.timeoutMs
    const isGood = await this.#isAnswering(limitMs)
    if (this.#isClosed) return
    if (!isGood) this.#pingFailed()
    else if (this.#state === 'suspect' || ++this.#goodPings >= GOOD_PINGS) this.#close()
    else this.#pingAfter(OPEN_PING_MS)
  }

  #count(): void {
    const now = this.#deps.clock.monotonic()
    this.#failures = [...this.#failures.filter((at) => now - at < FAILURES_WITHIN_MS), now]
    if (this.#failures.length >= FAILURES) this.#open()
  }

  #pingFailed(): void {
    this.#goodPings = 0
    this.#count()
    this.#pingAfter(this.#state === 'open' ? OPEN_PING_MS : SUSPECT_PING_MS)
  }

  async #isAnswering(limitMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const cancel = answerDeadline(this.#deps.clock, limitMs, () => resolve(false))
    this.#deps.ping().then(
      () => resolve(true),
      () => resolve(false),
    )
    const isGood = await promise
    cancel()
    return isGood
  }

  #close(): void {
    this.#state = 'closed'
    this.#forgetLatencies()
    this.#goodPings = 0
    if (this.#failures.length >= FAILURES) this.#failures = []
  }
}

/** Number of parts of a wait. A part in which the process had no time to read answers counts once, however long it took. */
const PARTS = 10
/** Turns of the event loop, each of at least 1 ms, in which arrived answers are read before an answer counts as late. */
const LAST_TURNS = 3

/**
 * Calls `callback` when an answer is late. A process that is busy, or that its CPU limit stops, reads an answer long after the answer has
 * arrived. Node also runs timers before it reads, and sends a request one turn after its creation. So the wait is counted in parts, and some
 * turns of the event loop follow the last part.
 */
export function answerDeadline(clock: Clock, delayMs: number, callback: () => void): Cancel {
  const part = Math.floor((delayMs - LAST_TURNS) / PARTS)
  const first = delayMs - LAST_TURNS - part * (PARTS - 1)
  let left = PARTS - 1 + LAST_TURNS
  const next = (): void => {
    if (left === 0) return callback()
    left -= 1
    cancel = clock.after(left < LAST_TURNS ? 1 : part, next)
  }
  let cancel = clock.after(first, next)
  return () => cancel()
}
