import type { Clock } from './clock.ts'

/** Part of the time of the event loop that large chunks may take. */
const SHARE = 0.2
/** Work that may be done at once, ms. */
const BURST_MS = 2
/** The next turn comes after this at the latest, ms: senders that come and go must not starve those who wait. */
const LONGEST_DELAY_MS = 100
/** What a chunk costs besides the work on it: reading, writing and collecting its buffers. Measured with 64 KiB chunks: 5 ms per MiB. */
const MS_PER_BYTE = 5 / 2 ** 20

/** Something that waits until the event loop has time for it. */
export interface Waiting {
  /** Called once per wait. @returns false if the turn is not needed any more: the next one gets it */
  onTurn(): boolean
}

/**
 * The part of the event loop that large chunks of streams and of request bodies may take. Without a bound, a hundred peers that send as fast as
 * they can delay the calls of all others. Beyond it they take turns, and everything small goes first.
 */
export class LoopShare {
  readonly #clock: Clock
  readonly #waiting: Waiting[] = []
  /** Work beyond the share, ms; it shrinks with time. */
  #aheadMs = 0
  #settledAtMs: number
  #isTimerSet = false

  constructor(clock: Clock) {
    this.#clock = clock
    this.#settledAtMs = clock.monotonic()
  }

  /**
   * Accounts for a chunk.
   * @param workMs time that was spent on it
   * @returns whether its sender has to wait
   */
  spend(bytes: number, workMs: number): boolean {
    this.#settle()
    this.#aheadMs = Math.min(LONGEST_DELAY_MS, this.#aheadMs + workMs + bytes * MS_PER_BYTE)
    return this.#aheadMs > BURST_MS
  }

  /** Waits for a turn, behind those who wait already. */
  wait(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#setTimer()
  }

  #settle(): void {
    const now = this.#clock.monotonic()
    this.#aheadMs = Math.max(0, this.#aheadMs - (now - this.#settledAtMs) * SHARE)
    this.#settledAtMs = now
  }

  #setTimer(): void {
    if (this.#isTimerSet) return
    this.#isTimerSet = true
    const delayMs = (this.#aheadMs - BURST_MS) / SHARE
    this.#clock.after(Math.min(LONGEST_DELAY_MS, Math.max(1, delayMs)), () => this.#turn())
  }

  #next(): void {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) if (next.onTurn()) return
  }

  #turn(): void {
    this.#isTimerSet = false
    this.#settle()
    this.#next()
    if (this.#waiting.length > 0) this.#setTimer()
  }
}
