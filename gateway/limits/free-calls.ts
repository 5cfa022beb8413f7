/** Calls that cost nothing, such as the count of tokens: each key has a small limit of its own in this process, and the store is not asked. */
import type { Clock } from '#platform/clock.ts'
import { RecentTimes } from './recent-times.ts'

const MINUTE_MS = 60_000

export class FreeCalls {
  readonly #clock: Clock
  readonly #times: RecentTimes

  constructor(perMinute: number, clock: Clock) {
    this.#clock = clock
    this.#times = new RecentTimes(perMinute)
  }

  /** Counts a call. @returns 0, or the time until the next call passes, ms */
  take(uid: string): number {
    const now = this.#clock.monotonic()
    const waitMs = this.#times.earliest(uid) + MINUTE_MS - now
    if (waitMs > 0) return waitMs
    this.#times.add(uid, now)
    return 0
  }
}
