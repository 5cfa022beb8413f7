import { Fifo } from '#platform/fifo.ts'

/** A write for which no caller waits. */
export interface BackgroundWrite {
  /** Must not reject. */
  readonly run: () => Promise<void>
  /** Called instead of `run` when too many writes wait. */
  readonly dropped: () => void
}

/** Runs writes in the background: a few at once and the others in order. When too many wait, the oldest is dropped. */
export class BoundedWrites {
  readonly #maxRunning: number
  readonly #maxWaiting: number
  readonly #waiting = new Fifo<BackgroundWrite>()
  readonly #idleWaiters: Array<() => void> = []
  #running = 0

  constructor(maxRunning: number, maxWaiting: number) {
    this.#maxRunning = maxRunning
    this.#maxWaiting = maxWaiting
  }

  add(write: BackgroundWrite): void {
    this.#waiting.push(write)
    if (this.#running === this.#maxRunning && this.#waiting.size > this.#maxWaiting) this.#waiting.shift()?.dropped()
    this.#next()
  }

  /** Resolves when no write runs or waits. */
  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  #next(): void {
    while (this.#running < this.#maxRunning) {
      const write = this.#waiting.shift()
      if (!write) break
      this.#running += 1
      void write.run().finally(() => {
        this.#running -= 1
        this.#next()
      })
    }
    if (this.#running === 0) for (const wake of this.#idleWaiters.splice(0)) wake()
  }
}
