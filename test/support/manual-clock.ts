import type { Cancel, Clock } from '#platform/clock.ts'

interface Timer {
  readonly dueMs: number
  readonly callback: () => void
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #monotonicMs = 0
  #wallMs: number
  /** By the time when they are due; of several timers that are due at once, the oldest is first. */
  readonly #timers: Timer[] = []

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
    this.#timers.splice(this.#timers.findLastIndex(({ dueMs }) => dueMs <= timer.dueMs) + 1, 0, timer)
    return () => this.#remove(timer)
  }

  get pending(): number {
    return this.#timers.length
  }

  /** ms until the next timer is due; Infinity without one. */
  get nextInMs(): number {
    return Math.max(0, (this.#timers[0]?.dueMs ?? Infinity) - this.#monotonicMs)
  }

  /** Sets the wall clock alone, as a correction of the machine's time does. */
  setWall(nowMs: number): void {
    this.#wallMs = nowMs - this.#monotonicMs
  }

  /** Moves the time without running a timer: due timers are late. */
  skip(ms: number): void {
    this.#monotonicMs += ms
  }

  /** Runs the next timer, at its time or now when it is late. */
  fireNext(): void {
    const timer = this.#timers.shift()
    if (!timer) return
    this.#monotonicMs = Math.max(this.#monotonicMs, timer.dueMs)
    timer.callback()
  }

  /** Moves time forward and runs the due timers in order; promises settle between two timers. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#monotonicMs + ms
    await settle()
    while (this.#monotonicMs + this.nextInMs <= endMs) {
      this.fireNext()
      await settle()
    }
    this.#monotonicMs = endMs
    await settle()
  }

  #remove(timer: Timer): void {
    const at = this.#timers.indexOf(timer)
    if (at >= 0) this.#timers.splice(at, 1)
  }
}

/** Lets every promise that can settle without time or I/O do so. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve))
}
