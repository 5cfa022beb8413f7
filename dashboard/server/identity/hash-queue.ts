/** Runs password hashes: few at once, since each needs 19 MiB and a core, and a bounded number of waiting ones. */

/** The queue is full; the caller answers 503. */
export class HashQueueFull extends Error {
  override readonly name = 'HashQueueFull'
}

export interface HashQueueBounds {
  readonly running: number
  readonly waiting: number
}

/** Requests under way for each hash that may run: one in its hash, and one before or after it in the database. */
const REQUESTS_A_HASH = 2

export class HashQueue {
  readonly #bounds: HashQueueBounds
  readonly #hashes: Turns
  readonly #requests: Turns
  #admitted = 0

  constructor(bounds: HashQueueBounds) {
    this.#bounds = bounds
    this.#hashes = new Turns(bounds.running)
    this.#requests = new Turns(REQUESTS_A_HASH * bounds.running)
  }

  /** Requests and hashes that wait for their turn. */
  get waiting(): number {
    return this.#requests.waiting + this.#hashes.waiting
  }

  /**
   * Runs a request that will need a hash, if the queue has a place for it: at the door, before the request costs anything else. Few run at once, since
   * SQLite has one connection: the pages of everybody else wait for it behind the transactions of all that are under way.
   * @throws HashQueueFull without running `request`
   */
  async admit<T>(request: () => Promise<T>): Promise<T> {
    if (this.#admitted >= this.#bounds.running + this.#bounds.waiting) throw new HashQueueFull('too many passwords are being checked')
    this.#admitted += 1
    try {
      return await this.#requests.run(request)
    } finally {
      this.#admitted -= 1
    }
  }

  /** @throws HashQueueFull without running `task` */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#hashes.waiting >= this.#bounds.waiting) throw new HashQueueFull('too many passwords are being checked')
    return await this.#hashes.run(task)
  }
}

/** So many tasks at once. The others wait in the order in which they came. */
class Turns {
  readonly #most: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(most: number) {
    this.#most = most
  }

  get waiting(): number {
    return this.#waiting.length
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running < this.#most) this.#running += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next)
        next() // takes over the turn
      else this.#running -= 1
    }
  }
}
