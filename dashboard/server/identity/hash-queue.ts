/** Runs password hashes: few at once, since each needs 19 MiB and a core, and a bounded number of waiting ones. */

/** The queue is full; the caller answers 503. */
export class HashQueueFull extends Error {
  override readonly name = 'HashQueueFull'
}

export interface HashQueueBounds {
  readonly running: number
  readonly waiting: number
}

export class HashQueue {
  readonly #bounds: HashQueueBounds
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(bounds: HashQueueBounds) {
    this.#bounds = bounds
  }

  /** Hashes that wait for their turn. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** @throws HashQueueFull without running `task` */
  async run<T>(task: () => Promise<T>): Promise<T> {
    await this.#turn()
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next)
        next() // takes over the turn
      else this.#running -= 1
    }
  }

  async #turn(): Promise<void> {
    if (this.#running < this.#bounds.running) {
      this.#running += 1
      return
    }
    if (this.#waiting.length >= this.#bounds.waiting) throw new HashQueueFull('too many passwords are being checked')
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
