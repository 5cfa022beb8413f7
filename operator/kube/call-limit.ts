/**
 * Lets a bounded number of calls run at once; the rest wait in order. One place is kept for urgent calls (renewing the LeaderLease must
 * not queue behind a storm of reconciles, or load alone would depose the leader), and urgent calls go first.
 */
export class CallLimit {
  readonly #max: number
  #running = 0
  readonly #urgent: Array<() => void> = []
  readonly #normal: Array<() => void> = []

  /** @param max calls at once, >= 2 */
  constructor(max: number) {
    if (max < 2) throw new RangeError('a call limit below 2 leaves no place for normal calls')
    this.#max = max
  }

  /** Runs `call` when a place is free. @returns what it returns */
  async run<T>(urgent: boolean, call: () => Promise<T>): Promise<T> {
    await this.#enter(urgent)
    try {
      return await call()
    } finally {
      this.#running -= 1
      this.#wake()
    }
  }

  #enter(urgent: boolean): Promise<void> {
    return new Promise((resolve) => {
      ;(urgent ? this.#urgent : this.#normal).push(resolve)
      this.#wake()
    })
  }

  #wake(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      this.#running += 1
      next()
    }
  }

  #next(): (() => void) | undefined {
    if (this.#running < this.#max && this.#urgent.length > 0) return this.#urgent.shift()
    return this.#running < this.#max - 1 ? this.#normal.shift() : undefined
  }
}
