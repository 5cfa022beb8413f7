/** Consumed entries kept before the array is cut; a Map would be scanned from its start instead. */
const CUT_AFTER = 1_024

/** First in, first out, in constant time on average. */
export class Fifo<T> {
  #entries: T[] = []
  #head = 0

  get size(): number {
    return this.#entries.length - this.#head
  }

  push(entry: T): void {
    this.#entries.push(entry)
  }

  shift(): T | undefined {
    const entry = this.#entries[this.#head]
    if (this.size === 0) return undefined
    this.#head += 1
    if (this.#head > CUT_AFTER && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
    return entry
  }
}
