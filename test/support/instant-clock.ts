import { systemClock, type Cancel, type Clock } from '#platform/clock.ts'

/** A real clock whose waits end at once and are recorded, for tests of retries over a real socket. */
export class InstantClock implements Clock {
  /** Waits that were skipped, ms. */
  readonly waitsMs: number[] = []

  now(): number {
    return systemClock.now()
  }

  monotonic(): number {
    return systemClock.monotonic()
  }

  after(delayMs: number, callback: () => void): Cancel {
    this.waitsMs.push(delayMs)
    const timer = setImmediate(callback)
    return () => clearImmediate(timer)
  }
}
