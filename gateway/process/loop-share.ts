import type { Clock } from './clock.ts'

/** Part of the busy time of the event loop that large chunks may take; of its idle time they may take all. */
const SHARE = 0.2
/** Smaller chunks neither count nor wait, bytes: streams of models consist of them. */
export const LARGE_CHUNK = 16_384
/** Work that may be done at once, ms. */
const BURST_MS = 2
/** The next turn comes after this at the latest, ms: senders that come and go must not starve those who wait. */
const LONGEST_DELAY_MS = 100
/** More work than this is forgotten, ms: after a flood nobody waits for long. */
const MAX_AHEAD_MS = 100
/**
 * What a chunk costs besides the work on it: reading, writing and collecting its buffers. A round figure above the 3.4 ms per MiB that uploads
 * took in all when they filled one core.
 */
const MS_PER_BYTE = 5 / 2 ** 20

/** Something that waits until the event loop has time for it. */
export interface Waiting {
  /** Called once per wait. @returns false if the turn is not needed any more: the next one gets it */
  onTurn(): boolean
}

/**
 * The part of the event loop that large chunks of streams and of large request bodies may take. Without a bound, a hundred peers that send as
 * fast as they can delay the calls of all others. Beyond it they take turns, and everything small goes first.
 */
export class LoopShare {
  readonly #clock: Clock
  readonly #idleMs: () => number
  readonly #waiting: Waiting[] = []
  /** Work beyond the share, ms; it shrinks with time. */
  #aheadMs = 0
  #settledAtMs: number
  #idleThenMs: number
  #lastTurnAtMs = 0
  #isTimerSet = false

  /** @param idleMs how long the event loop has been idle since the start of the process */
  constructor(clock: Clock, idleMs: () => number = () => performance.eventLoopUtilization().idle) {
    this.#clock = clock
    this.#idleMs = idleMs
    this.#settledAtMs = clock.monotonic()
    this.#idleThenMs = idleMs()
  }

  /**
   * Accounts for a chunk; a small one never has to wait.
   * @param workMs time that was spent on it
   * @returns whether its sender has to wait
   */
  spend(bytes: number, workMs: number): boolean {
    if (bytes < LARGE_CHUNK) return false
    this.#settle()
    this.#aheadMs = Math.min(MAX_AHEAD_MS, this.#aheadMs + workMs + bytes * MS_PER_BYTE)
    return this.#aheadMs > BURST_MS
  }

  /** Whether large chunks have used up their part: the next one should wait. */
  get isBusy(): boolean {
    this.#settle()
    return this.#aheadMs > BURST_MS
  }

  /** Waits for a turn, behind those who wait already. */
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

  /** Looks again when it could be time, if the loop has nothing else to do until then. */
  #setTimer(): void {
    if (this.#isTimerSet) return
    this.#isTimerSet = true
    const longestMs = this.#lastTurnAtMs + LONGEST_DELAY_MS - this.#clock.monotonic()
    this.#clock.after(Math.max(1, Math.min(longestMs, this.#aheadMs - BURST_MS)), () => this.#look())
  }

  #look(): void {
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
