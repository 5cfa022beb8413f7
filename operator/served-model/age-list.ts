/** Something with an age: the older one goes first. */
export interface Aged {
  readonly uid: string
  /** ms since 1970. */
  readonly createdMs: number
}

/** Objects from the oldest to the youngest; equally old ones by uid. Finding a position takes O(log n). */
export class AgeList<T extends Aged> {
  readonly #items: T[] = []

  get length(): number {
    return this.#items.length
  }

  /** The oldest. */
  get first(): T | undefined {
    return this.#items[0]
  }

  at(index: number): T | undefined {
    return this.#items[index]
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#items.values()
  }

  /** @returns its index */
  add(item: T): number {
    const index = this.#positionOf(item)
    this.#items.splice(index, 0, item)
    return index
  }

  /** @returns the index that it had; -1 when it is not in the list */
  delete(item: Aged): number {
    const index = this.#positionOf(item)
    if (this.#items[index]?.uid !== item.uid) return -1
    this.#items.splice(index, 1)
    return index
  }

  /** @returns its index; -1 when it is not in the list */
  indexOf(item: Aged): number {
    const index = this.#positionOf(item)
    return this.#items[index]?.uid === item.uid ? index : -1
  }

  /** Index of the first item that is not older. */
  #positionOf(item: Aged): number {
    let low = 0
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const other = this.#items[middle]
      if (other !== undefined && isOlder(other, item)) low = middle + 1
      else high = middle
    }
    return low
  }
}

function isOlder(a: Aged, b: Aged): boolean {
  return a.createdMs === b.createdMs ? a.uid < b.uid : a.createdMs < b.createdMs
}
