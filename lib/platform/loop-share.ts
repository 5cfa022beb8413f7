import type { Clock } from './clock.ts'

/** Share of the busy time of the event loop that large chunks may use. They may use all of its idle time. */
const SHARE = 0.2
/** Smaller chunks, in bytes, neither count nor wait. Streams of models consist of them. */
export const LARGE_CHUNK = 16_384
/** Work that may be done without a wait, ms. */
const BURST_MS = 2
/** Longest time until the next turn, ms, so that new senders cannot starve waiting ones. */
const LONGEST_DELAY_MS = 100
/** Work above this is forgotten, ms, so that no request waits for long after a flood. */
const MAX_AHEAD_MS = 100
/**
 * Cost of a chunk besides the work on it: reading, writing and collecting its buffers. A round number above the 3.4 ms per MiB that uploads
 * took in total when they filled one core (decision 20).
 */
const MS_PER_BYTE = 5 / 2 ** 20

/** A task that waits until the event loop has time for it. */
export interface Waiting {
  /** Called once per wait. @returns false if the task no longer needs its turn; the next task then gets it */
  onTurn(): boolean
}

/**
 * Limits the share of the event loop for large chunks of streams and request bodies. Without a limit, a hundred peers that send as fast as
 * they can delay the calls of all others. Above the limit large chunks take turns, and everything small goes first.
 */
export class LoopShare {
  readonly #clock: Clock
  readonly #idleMs: () => number
  readonly #waiting: Waiting[] = []
  /** Work above the share, ms. It shrinks with time. */
  #aheadMs = 0
  #settledAtMs: number
  #idleThenMs: number
  #lastTurnAtMs = 0
  #isTimerSet = false

  /** @param idleMs idle time of the event loop since the start of the process, ms */
  constructor(clock: Clock, idleMs: () => number = () => performance.eventLoopUtilization().idle) {
    this.#clock = clock
    this.#idleMs = idleMs
    this.#settledAtMs = clock.monotonic()
    this.#idleThenMs = idleMs()
  }

  /**
   * Counts a chunk. Small chunks never wait.
   * @param workMs time that the chunk took
   * @returns whether its sender has to wait
   */
  spend(bytes: number, workMs: number): boolean {
    if (bytes < LARGE_CHUNK) return false
    this.#settle()
    this.#aheadMs = Math.min(MAX_AHEAD_MS, this.#aheadMs + workMs + bytes * MS_PER_BYTE)
    return this.#aheadMs > BURST_MS
  }

  /** Whether large chunks have used up their share, so that the next one should wait. */
  get isBusy(): boolean {
    this.#settle()
    return this.#aheadMs > BURST_MS
  }

  /** Queues a task for its turn. */
  wait(waiting: Waiting): void {
    if (this.#waiting.length === 0) this.#lastTurnAtMs = this.#clock.monotonic()
    this.#waiting.push(waiting)
    this.#setTimer()
  }

  #settle(): void {
    const [now, idle] = [this.#clock.monotonic(), this.#idleMs()]
    const idleForMs = idle - this.#idleThenMs
    const busyForMs = Math.max(0, now - this.#settledAtMs - idleForMs)
    this.#aheadMs = Math.max(0, this.#aheadMs - idleForMs - busyForMs * SHARE)
    this.#settledAtMs = now
    this.#idleThenMs = idle
  }

  /** Checks again at the time when a turn may be free, if the loop has nothing else to do until then. */
  #setTimer(): void {
    if (this.#isTimerSet) return
    this.#isTimerSet = true
    const longestMs = this.#lastTurnAtMs + LONGEST_DELAY_MS - this.#clock.monotonic()
    this.#clock.after(Math.max(1, Math.min(longestMs, this.#aheadMs - BURST_MS)), () => this.#takeFreeTurn())
  }

  #takeFreeTurn(): void {
    this.#isTimerSet = false
    this.#settle()
    if (this.#aheadMs <= BURST_MS || this.#settledAtMs - this.#lastTurnAtMs >= LONGEST_DELAY_MS) this.#turn()
    if (this.#waiting.length > 0) this.#setTimer()
  }

  #turn(): void {
    this.#lastTurnAtMs = this.#settledAtMs
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) if (next.onTurn()) return
  }
}
