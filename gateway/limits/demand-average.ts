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
    const wasSilent = elapsed >= SILENT_MS // nobody looked, since nothing came
    this.#silentMs = this.#requests > 0 ? 0 : this.#silentMs + elapsed
    if (wasSilent || this.#silentMs >= SILENT_MS) {
      this.#unitsPerMs = 0
      this.#requestsPerMs = 0
    }
    const weight = Math.min(1, elapsed / MEMORY_MS) // by its length: one request in a short interval is no high rate
    this.#unitsPerMs += weight * (this.#units / elapsed - this.#unitsPerMs)
    this.#requestsPerMs += weight * (this.#requests / elapsed - this.#requestsPerMs)
    this.#units = 0
    this.#requests = 0
    this.#since = now
    return this.#requestsPerMs === 0
  }

  /** Whether a request is likely within `ms`: a lone request is no reason to take units that others may need. */
  isSteady(ms: number): boolean {
    return this.#requestsPerMs * ms >= 1
  }

  /** Units expected within `ms`, rounded down. */
  within(ms: number): number {
    return Math.floor(this.#unitsPerMs * ms)
  }
}

/** Demand that has stopped for so long is over, and nothing is kept for it. */
const SILENT_MS = 1_000
/** A lone request counts as less than one a second. */
const MEMORY_MS = 1_250
