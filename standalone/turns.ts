/** Splits long work into turns of the event loop, so that calls are served between them. */
import { breathe } from '#platform/clock.ts'

/** Length of a turn, ms. */
const TURN_MS = 10

/** The turns of all work that shares one object: together they take one turn at a time. */
export class Turns {
  #endMs = performance.now() + TURN_MS
  /** The last one of those who wait. */
  #last: Promise<void> = Promise.resolve()

  /**
   * Resolves within the turn, else in a later one, in the order of the calls. Even within the turn each waits for the one before: many that
   * ask at once would all be admitted before the first of them has worked.
   */
  next(): Promise<void> {
    this.#last = this.#last.then(() => this.#begin())
    return this.#last
  }

  /** Carries out steps, as many per turn as fit. @returns the result of the last one */
  async run<T>(steps: Generator<void, T>): Promise<T> {
    for (;;) {
      const { done, value } = steps.next()
      if (done) return value
      await this.next()
    }
  }

  async #begin(): Promise<void> {
    if (performance.now() < this.#endMs) return
    await breathe()
    this.#endMs = performance.now() + TURN_MS
  }
}
