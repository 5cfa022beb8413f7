/** Parameters of the back-off. */
export interface ExponentialDelayOptions {
  readonly firstMs: number
  readonly maxMs: number
  /** Growth per failure; default 2. */
  readonly factor?: number
  /** Jitter: the largest fractions of a delay that are subtracted or added at random; default 0.2 each. */
  readonly below?: number
  readonly above?: number
  /** A failure this long after the last delay ended counts as the first; default never. */
  readonly resetAfterMs?: number
  /** [0, 1) */
  readonly random: () => number
}

/** Delays between tries that failed: exponential up to a bound, with jitter. */
export class ExponentialDelay {
  readonly #options: ExponentialDelayOptions
  #nextMs: number
  #endedAtMs = Number.POSITIVE_INFINITY

  constructor(options: ExponentialDelayOptions) {
    this.#options = options
    this.#nextMs = options.firstMs
  }

  /** Records a failure. @param nowMs monotonic; needed only with `resetAfterMs`. @returns ms to wait */
  next(nowMs = 0): number {
    const { firstMs, maxMs, factor = 2, below = 0.2, above = 0.2, resetAfterMs = Number.POSITIVE_INFINITY, random } = this.#options
    if (nowMs - this.#endedAtMs > resetAfterMs) this.#nextMs = firstMs
    const delayMs = Math.min(this.#nextMs, maxMs) * (1 - below + random() * (below + above))
    this.#nextMs = Math.min(this.#nextMs * factor, maxMs)
    this.#endedAtMs = nowMs + delayMs
    return delayMs
  }

  /** Records a success. */
  reset(): void {
    this.#nextMs = this.#options.firstMs
  }
}
