import type { Cancel, Clock } from '#platform/clock.ts'

interface Timer {
  readonly dueMs: number
  readonly callback: () => void
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #nowMs: number
  readonly #startMs: number
  #timers: Timer[] = []

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#startMs = startMs
    this.#nowMs = startMs
  }

  now(): number {
    return this.#nowMs
  }

  monotonic(): number {
    return this.#nowMs - this.#startMs
  }

  after(delayMs: number, callback: () => void): Cancel {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), callback }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  /** How many callbacks wait. */
  get pending(): number {
    return this.#timers.length
  }

  /** Moves time forward and runs the due timers in order; promises settle between two timers. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    await settle()
    for (let timer = this.#next(endMs); timer; timer = this.#next(endMs)) {
      this.#timers = this.#timers.filter((other) => other !== timer)
      this.#nowMs = Math.max(this.#nowMs, timer.dueMs)
      timer.callback()
      await settle()
    }
    this.#nowMs = endMs
    await settle()
  }

  #next(endMs: number): Timer | undefined {
    return this.#timers.filter((timer) => timer.dueMs <= endMs).toSorted((a, b) => a.dueMs - b.dueMs)[0]
  }
}

/** Lets every promise that can settle without time or I/O do so. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve))
}
