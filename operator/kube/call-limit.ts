/** What a call may wait for: urgent ones for nobody, background ones (statuses) for everybody. */
export type CallPriority = 'urgent' | 'normal' | 'background'

/** Background calls at once: a storm of statuses must not slow down the writes that issue keys. */
const MOST_BACKGROUND = 6

/**
 * Lets a bounded number of calls run at once; the rest wait in order of priority. One place is kept for urgent calls: renewing the
 * LeaderLease must not queue behind a storm of reconciles, or load alone would depose the leader.
 */
export class CallLimit {
  readonly #max: number
  readonly #waiting: Record<CallPriority, Array<() => void>> = { urgent: [], normal: [], background: [] }
  readonly #running: Record<CallPriority, number> = { urgent: 0, normal: 0, background: 0 }

  /** @param max calls at once, >= 2 */
  constructor(max: number) {
    if (max < 2) throw new RangeError('a call limit below 2 leaves no place for normal calls')
    this.#max = max
  }

  /** Runs `call` when a place is free. @returns what it returns */
  async run<T>(priority: CallPriority, call: () => Promise<T>): Promise<T> {
    await new Promise<void>((resolve) => {
      this.#waiting[priority].push(resolve)
      this.#wake()
    })
    try {
      return await call()
    } finally {
      this.#running[priority] -= 1
      this.#wake()
    }
  }

  #wake(): void {
    for (let priority = this.#next(); priority; priority = this.#next()) {
      this.#running[priority] += 1
      this.#waiting[priority].shift()?.()
    }
  }

  #next(): CallPriority | undefined {
    const running = this.#running.urgent + this.#running.normal + this.#running.background
    if (running < this.#max && this.#waiting.urgent.length > 0) return 'urgent'
    if (running >= this.#max - 1) return undefined
    if (this.#waiting.normal.length > 0) return 'normal'
    return this.#waiting.background.length > 0 && this.#running.background < MOST_BACKGROUND ? 'background' : undefined
  }
}
