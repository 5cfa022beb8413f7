/** Demand in requests per ms from which it is brisk: the last second then predicts the next one. */
const BRISK_PER_MS = 0.005
const BRISK_BURST = 3

interface Pace {
  /** Time after which stopped demand is over and forgotten, ms. */
  readonly silentMs: number
  /** Memory of the average, ms. A single request counts as one per this time. */
  readonly memoryMs: number
}

const BRISK: Pace = { silentMs: 1_000, memoryMs: 1_250 }
/** For slow demand: one occasional request still counts when the next one arrives. */
const SLOW: Pace = { silentMs: 10_000, memoryMs: 10_000 }

/** Recent demand: exponential averages over the ticks of the ledger. It predicts the future, so floating-point numbers are exact enough. */
export class DemandAverage {
  #unitsPerMs = 0
  #requestsPerMs = 0
  #units = 0
  #requests = 0
  #silentMs = 0
  #since: number

  constructor(now: number) {
    this.#since = now
  }

  add(units: number): void {
    this.#units += units
    this.#requests += 1
  }

  /** Ends an interval. @returns true if the demand is over; this object then equals a new one */
  tick(now: number): boolean {
    const elapsed = now - this.#since
    if (elapsed <= 0) return false
    const { silentMs, memoryMs } = this.#isBriskAfter(elapsed) ? BRISK : SLOW
    const wasSilent = elapsed >= silentMs // there was no tick, because there were no requests
    this.#silentMs = this.#requests > 0 ? 0 : this.#silentMs + elapsed
    if (wasSilent || this.#silentMs >= silentMs) {
      this.#unitsPerMs = 0
      this.#requestsPerMs = 0
    }
    const weight = Math.min(1, elapsed / memoryMs) // by the length of the interval: one request in a short interval is not a high rate
    this.#unitsPerMs += weight * (this.#units / elapsed - this.#unitsPerMs)
    this.#requestsPerMs += weight * (this.#requests / elapsed - this.#requestsPerMs)
    this.#units = 0
    this.#requests = 0
    this.#since = now
    return this.#requestsPerMs === 0
  }

  /** @param requests 0 units if fewer are likely: a single request is no reason to take units that others may need */
  within(ms: number, requests = 1): number {
    return this.#requestsPerMs * ms >= requests ? Math.floor(this.#unitsPerMs * ms) : 0
  }

  /** Whether requests arrive so often that each interval needs a check. */
  get isBrisk(): boolean {
    return this.#requestsPerMs >= BRISK_PER_MS
  }

  #isBriskAfter(elapsed: number): boolean {
    if (this.isBrisk) return true
    return this.#requests >= BRISK_BURST && this.#requests >= BRISK_PER_MS * elapsed
  }
}
