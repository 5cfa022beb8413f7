/**
 * When many objects change at once, what makes a change act goes before what tells about it: statuses, Events and second looks wait until
 * no more changes come in and the last one acts. They compete for the same API server.
 */
import { type Clock, sleep } from '../../gateway/shared/clock.ts'

/** No change, and nothing done for one, for this long is calm, ms. */
const QUIET_MS = 50
/** Nobody waits longer for that, ms. */
const MOST_WAIT_MS = 1_000
/** Statuses that are written at once; the others wait here, where a change of their object ends the wait. */
const TURNS = 6

/** Knows whether changes come in, and whether what they ask for is still being done. */
export class Calm {
  readonly #clock: Clock
  /** Last time a change came in, or something was done for one. */
  #disturbedMs = Number.NEGATIVE_INFINITY
  #acting = 0
  #free = TURNS
  readonly #waiting = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A change has come in. */
  disturbed(): void {
    this.#disturbedMs = this.#clock.monotonic()
  }

  /** Does what makes a change act. It waits for nothing itself; until its end it is not calm. */
  async act<T>(work: () => Promise<T>): Promise<T> {
    this.#acting += 1
    try {
      return await work()
    } finally {
      this.#acting -= 1
      this.disturbed()
    }
  }

  /** Resolves when no change has come and none is being acted on for a while, after a second at the latest, or when `stop` aborts. */
  async wait(stop: AbortSignal): Promise<void> {
    const deadlineMs = this.#clock.monotonic() + MOST_WAIT_MS
    for (;;) {
      const now = this.#clock.monotonic()
      const calmMs = (this.#acting > 0 ? now : this.#disturbedMs) + QUIET_MS
      const leftMs = Math.min(calmMs, deadlineMs) - now
      if (leftMs <= 0 || stop.aborted) return
      await sleep(this.#clock, leftMs, stop)
    }
  }

  /** Tells something when it is calm and its turn has come; not at all when `stop` aborts before. */
  async tell(stop: AbortSignal, write: () => Promise<void>): Promise<void> {
    await this.wait(stop)
    while (this.#free === 0 && !stop.aborted) await this.#turn(stop)
    if (stop.aborted) return
    this.#free -= 1
    try {
      await write()
    } finally {
      this.#free += 1
      for (const wake of this.#waiting) {
        wake()
        break // one place, one waiter
      }
    }
  }

  #turn(stop: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const wake = (): void => {
      stop.removeEventListener('abort', wake)
      this.#waiting.delete(wake)
      resolve()
    }
    this.#waiting.add(wake)
    stop.addEventListener('abort', wake, { once: true })
    return promise
  }
}
