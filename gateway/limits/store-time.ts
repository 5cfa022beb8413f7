/** The clock of the store as this process knows it. Between calls it advances with the monotonic clock. */
export class StoreTime {
  #offset: number

  /** @param offset guess before the first answer: wall clock minus monotonic clock, in ms */
  constructor(offset: number) {
    this.#offset = offset
  }

  /** Takes the time `nowMs` from the answer to a call that left at `sentAt`. The result of `at` is never behind the store. */
  observe(nowMs: number, sentAt: number): void {
    this.#offset = nowMs + 1 - sentAt // the store rounds its time down to whole ms
  }

  /** ms since 1970, whole. @param now monotonic ms */
  at(now: number): number {
    return Math.floor(now + this.#offset)
  }
}
