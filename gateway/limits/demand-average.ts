/** Demand of so many requests per ms is brisk: the last second tells how it goes on. */
const BRISK_PER_MS = 0.005
/** Requests of one interval that make a demand brisk at once. */
const BRISK_BURST = 3

interface Pace {
  /** Demand that has stopped for so long is over, and nothing is kept for it. */
  readonly silentMs: number
  /** What the average remembers. A lone request counts as one in this time. */
  readonly memoryMs: number
}

const BRISK: Pace = { silentMs: 1_000, memoryMs: 1_250 }
/** A request now and then is still known when the next one comes. */
const SLOW: Pace = { silentMs: 10_000, memoryMs: 10_000 }

/** Recent demand: exponential averages over the ticks of the ledger. A guess about the future, so floats are enough. */
export class DemandAverage {
  #unitsPerMs = 0
  #requestsPerMs = 0
  #units = 0
  #requests = 0
  #silentMs = 0
  #since: number

  /** @param now monotonic ms */
  constructor(now: number) {
    this.#since = now
  }

  /** Counts one request. */
  add(units: number): void {
    this.#units += units
    this.#requests += 1
  }

  /** Ends an interval. @returns true once the demand is over, and this object knows no more than a new one */
  tick(now: number): boolean {
    const elapsed = now - this.#since
    if (elapsed <= 0) return false
    const { silentMs, memoryMs } = this.#isBriskAfter(elapsed) ? BRISK : SLOW
    const wasSilent = elapsed >= silentMs // nobody looked, since nothing came
    this.#silentMs = this.#requests > 0 ? 0 : this.#silentMs + elapsed
    if (wasSilent || this.#silentMs >= silentMs) {
      this.#unitsPerMs = 0
      this.#requestsPerMs = 0
    }
    const weight = Math.min(1, elapsed / memoryMs) // by its length: one request in a short interval is no high rate
    this.#unitsPerMs += weight * (this.#units / elapsed - this.#unitsPerMs)
    this.#requestsPerMs += weight * (this.#requests / elapsed - this.#requestsPerMs)
    this.#units = 0
    this.#requests = 0
    this.#since = now
    return this.#requestsPerMs === 0
  }

  /**
   * Units expected within `ms`, rounded down.
   * @param requests 0 units if fewer are likely: a lone request is no reason to take units that others may need
   */
  within(ms: number, requests = 1): number {
    return this.#requestsPerMs * ms >= requests ? Math.floor(this.#unitsPerMs * ms) : 0
  }

  /** Requests come so often that each interval should be looked at. */
  get isBrisk(): boolean {
    return this.#requestsPerMs >= BRISK_PER_MS
  }

  #isBriskAfter(elapsed: number): boolean {
    if (this.isBrisk) return true
    return this.#requests >= BRISK_BURST && this.#requests >= BRISK_PER_MS * elapsed
  }
}
