/** Calls that cost nothing, such as the count of tokens: each key has a small limit of its own in this process, and the store is not asked. */
import type { Clock } from '#platform/clock.ts'

const MINUTE_MS = 60_000
/** Maximum number of keys that are remembered; the key with the earliest first call is dropped first. */
const MOST_KEYS = 10_000

export class FreeCalls {
  readonly #perMinute: number
  readonly #clock: Clock
  /** Monotonic ms of the last calls of each key, as a ring. */
  readonly #times = new Map<string, { readonly at: Float64Array; next: number }>()

  constructor(perMinute: number, clock: Clock) {
    this.#perMinute = perMinute
    this.#clock = clock
  }

  /** Counts a call. @returns 0, or the time until the next call passes, ms */
  take(uid: string): number {
    const now = this.#clock.monotonic()
    const ring = this.#times.get(uid) ?? this.#add(uid)
    const waitMs = (ring.at[ring.next] ?? 0) + MINUTE_MS - now
    if (waitMs > 0) return waitMs
    ring.at[ring.next] = now
    ring.next = (ring.next + 1) % this.#perMinute
    return 0
  }

  #add(uid: string): { readonly at: Float64Array; next: number } {
    if (this.#times.size >= MOST_KEYS) {
      const [oldest = ''] = this.#times.keys()
      this.#times.delete(oldest)
    }
    const ring = { at: new Float64Array(this.#perMinute).fill(-Infinity), next: 0 }
    this.#times.set(uid, ring)
    return ring
  }
}
