const FIRST_MS = 800
const MAX_MS = 30_000
const HEALTHY_AFTER_MS = 120_000

/** How long a broken watch waits before the next try: 0.8 s doubling to 30 s, half of it by chance, back to the start after 2 minutes of health. */
export class RestartDelay {
  readonly #random: () => number
  #failures = 0
  #retryAtMs = Number.NEGATIVE_INFINITY

  /** @param random [0, 1) */
  constructor(random: () => number) {
    this.#random = random
  }

  /** One more failure at `nowMs` (monotonic). @returns ms to wait */
  next(nowMs: number): number {
    if (nowMs - this.#retryAtMs > HEALTHY_AFTER_MS) this.#failures = 0
    const boundMs = Math.min(MAX_MS, FIRST_MS * 2 ** this.#failures)
    const waitMs = boundMs / 2 + (this.#random() * boundMs) / 2
    this.#failures = Math.min(this.#failures + 1, 16)
    this.#retryAtMs = nowMs + waitMs
    return waitMs
  }
}
