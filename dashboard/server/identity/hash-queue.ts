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
  #admitted = 0
  readonly #waiting: (() => void)[] = []

  constructor(bounds: HashQueueBounds) {
    this.#bounds = bounds
  }

  /** Hashes that wait for their turn. */
  get waiting(): number {
    return this.#waiting.length
  }

  /**
   * Runs a request that will need a hash, if the queue has a place for it: at the door, before the request costs anything else. The database writes
   * of a thousand requests would hold up all other pages.
   * @throws HashQueueFull without running `request`
   */
  async admit<T>(request: () => Promise<T>): Promise<T> {
    if (this.#admitted >= this.#bounds.running + this.#bounds.waiting) throw new HashQueueFull('too many passwords are being checked')
    this.#admitted += 1
    try {
      return await request()
    } finally {
      this.#admitted -= 1
    }
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
