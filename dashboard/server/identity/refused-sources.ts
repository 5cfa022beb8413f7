/** Remembers which clients the library has refused, and until when: a refusal would otherwise cost a write at each further request. */
import type { Clock } from '#platform/clock.ts'

/** The oldest ones are forgotten beyond this number. The library then refuses them itself. */
const MOST = 10_000

export class RefusedSources {
  readonly #clock: Clock
  /** End of the refusal, ms since 1970, by address and route. */
  readonly #ends = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(address: string, route: string, seconds: number): void {
    const key = `${route} ${address}`
    this.#ends.delete(key) // to be the newest
    this.#ends.set(key, this.#clock.now() + seconds * 1_000)
    const [oldest] = this.#ends.keys()
    if (this.#ends.size > MOST && oldest !== undefined) this.#ends.delete(oldest)
  }

  /** Time until the client may ask again, s; 0: now. */
  secondsLeft(address: string, route: string): number {
    const key = `${route} ${address}`
    const leftMs = (this.#ends.get(key) ?? 0) - this.#clock.now()
    if (leftMs <= 0) this.#ends.delete(key)
    return Math.max(0, Math.ceil(leftMs / 1_000))
  }
}
