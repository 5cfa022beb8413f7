/** The clock of the store as this process sees it: between calls the monotonic clock carries it on. */
export class StoreTime {
  #offset: number

  /** @param offset guess before the first answer: wall clock minus monotonic clock, in ms */
  constructor(offset: number) {
    this.#offset = offset
  }

  /** An answer to a call that left at `sentAt` says `nowMs`. The result of `at` is never behind the store. */
  observe(nowMs: number, sentAt: number): void {
    this.#offset = nowMs + 1 - sentAt // the store cuts its time to whole ms
  }

  /** ms since 1970, whole. @param now monotonic ms */
  at(now: number): number {
    return Math.floor(now + this.#offset)
  }
}
