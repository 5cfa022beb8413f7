import { IntrusiveSet, type Intrusive } from '#platform/intrusive-set.ts'

export interface Ticked extends Intrusive {
  /** @param now ticks since the start of the ticker */
  onTick(now: number): void
}

/**
 * One timer for all waits in whole seconds: time-outs, keep-alives, probes. A timer per request would cost more than all of
 * them; here a request costs one `add` and one `delete`, and a chunk reads `now`. Time is counted in ticks, so a stalled event loop makes
 * waits longer, never shorter.
 */
export class Ticker {
  readonly #tickMs: number
  readonly #entries = new IntrusiveSet<Ticked>()
  #timer: NodeJS.Timeout | undefined
  #now = 0

  /** @param tickMs length of a tick: 1 s in production */
  constructor(tickMs = 1000) {
    this.#tickMs = tickMs
  }

  /** Number of ticks since the start. Ticks count only while there are entries. */
  get now(): number {
    return this.#now
  }

  get size(): number {
    return this.#entries.size
  }

  add(entry: Ticked): void {
    this.#entries.add(entry)
    this.#timer ??= setInterval(() => this.tick(), this.#tickMs).unref()
  }

  delete(entry: Ticked): void {
    this.#entries.delete(entry)
  }

  tick(): void {
    this.#now++
    this.#entries.forEach((entry) => entry.onTick(this.#now))
    if (this.#entries.size === 0) this.stop()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
