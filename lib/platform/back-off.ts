export interface BackOffOptions {
  readonly firstMs: number
  readonly maxMs: number
  /** Growth per failure; default 2. */
  readonly factor?: number
  /** Jitter: the largest fractions of a delay that are subtracted or added at random; default 0. */
  readonly below?: number
  readonly above?: number
  /** A failure this long after the last delay ended counts as the first; default never. */
  readonly resetAfterMs?: number
  /** Delay after a failure that another try soon solves, such as a conflict. It holds at most five times until a success. */
  readonly quickMs?: number
  /** [0, 1); needed only with jitter. */
  readonly random?: () => number
}

export interface BackOffFailure {
  /** Monotonic; needed only with `resetAfterMs` and for `waitMs`. */
  readonly nowMs?: number
  /** Whether `quickMs` may do. */
  readonly isQuick?: boolean
  /** Least delay, as a server asks for it by Retry-After. */
  readonly atLeastMs?: number | undefined
}

/** Largest fractions by which the delays of many clients are spread. */
export const SPREAD = { below: 0.2, above: 0.2 } as const

const MAX_QUICK = 5

/** Delays between tries that failed: exponential up to a bound, with jitter. */
export class BackOff {
  readonly #options: BackOffOptions
  #failures = 0
  #quick = 0
  #retryAtMs: number | undefined

  constructor(options: BackOffOptions) {
    this.#options = options
  }

  /** Records a failure. @returns whole ms to wait */
  next({ nowMs = 0, isQuick = false, atLeastMs = 0 }: BackOffFailure = {}): number {
    const delayMs = Math.max(atLeastMs, isQuick && this.#isQuick() ? (this.#options.quickMs ?? 0) : this.#exponential(nowMs))
    this.#retryAtMs = nowMs + delayMs
    return delayMs
  }

  /** @returns ms until the next try; 0 when it may be now */
  waitMs(nowMs: number): number {
    return Math.max(0, (this.#retryAtMs ?? nowMs) - nowMs)
  }

  /** Records a success. */
  reset(): void {
    this.#failures = this.#quick = 0
    this.#retryAtMs = undefined
  }

  #isQuick(): boolean {
    if (this.#options.quickMs === undefined || this.#quick === MAX_QUICK) return false
    this.#quick += 1
    return true
  }

  #exponential(nowMs: number): number {
    const { firstMs, maxMs, factor = 2, below = 0, above = 0, resetAfterMs = Number.POSITIVE_INFINITY, random } = this.#options
    if (nowMs - (this.#retryAtMs ?? nowMs) > resetAfterMs) this.#failures = 0
    const boundMs = Math.min(maxMs, firstMs * factor ** this.#failures)
    if (boundMs < maxMs) this.#failures += 1
    return Math.round(boundMs * (1 - below + (random?.() ?? 0) * (below + above)))
  }
}
