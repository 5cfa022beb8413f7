import type { Cancel, Clock } from '#platform/clock.ts'

interface Timer {
  readonly dueMs: number
  readonly callback: () => void
}

/** The clock of a simulation: time stands still until it is moved, and then jumps from one timer to the next. */
export class VirtualClock implements Clock {
  #monotonicMs = 0
  #wallMs: number
  readonly #timers = new Set<Timer>()

  /** @param wallMs ms since 1970 at the start */
  constructor(wallMs = Date.UTC(2026, 0, 1)) {
    this.#wallMs = wallMs
  }

  now(): number {
    return Math.floor(this.#wallMs + this.#monotonicMs) // whole ms, as Date.now()
  }

  monotonic(): number {
    return this.#monotonicMs
  }

  after(delayMs: number, callback: () => void): Cancel {
    const timer: Timer = { dueMs: this.#monotonicMs + Math.max(0, delayMs), callback }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  /** Sets the wall clock alone, as a correction of the machine's time does. */
  setWall(nowMs: number): void {
    this.#wallMs = nowMs - this.#monotonicMs
  }

  /** ms until the next timer is due; Infinity without one. */
  get nextInMs(): number {
    return Math.max(0, (this.#next()?.dueMs ?? Infinity) - this.#monotonicMs)
  }

  /** Moves the time without running a timer: due timers are late. */
  skip(ms: number): void {
    this.#monotonicMs += ms
  }

  /** Runs the next timer, at its time or now when it is late. */
  fireNext(): void {
    const timer = this.#next()
    if (!timer) return
    this.#timers.delete(timer)
    this.#monotonicMs = Math.max(this.#monotonicMs, timer.dueMs)
    timer.callback()
  }

  /** The earliest timer; of several timers that are due at once, the oldest. */
  #next(): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) if (next === undefined || timer.dueMs < next.dueMs) next = timer
    return next
  }
}
