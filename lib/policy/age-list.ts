/** An object with an age. The older object goes first. */
export interface Aged {
  readonly uid: string
  /** ms since 1970. */
  readonly createdMs: number
}

/** Objects from the oldest to the youngest; objects of the same age by uid. A search takes O(log n). */
export class AgeList<T extends Aged> {
  readonly #items: T[] = []

  get length(): number {
    return this.#items.length
  }

  /** The oldest item. */
  get first(): T | undefined {
    return this.#items[0]
  }

  at(index: number): T | undefined {
    return this.#items[index]
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#items.values()
  }

  /** @returns the index of the item */
  add(item: T): number {
    const index = this.#positionOf(item)
    this.#items.splice(index, 0, item)
    return index
  }

  /** @returns the former index of the item; -1 if the list does not have the item */
  delete(item: Aged): number {
    const index = this.indexOf(item)
    if (index >= 0) this.#items.splice(index, 1)
    return index
  }

  /** @returns the index of the item; -1 if the list does not have the item */
  indexOf(item: Aged): number {
    const index = this.#positionOf(item)
    return this.#items[index]?.uid === item.uid ? index : -1
  }

  /** @returns the index of the first item that is not older than `item` */
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

export function isOlder(a: Aged, b: Aged): boolean {
  return a.createdMs === b.createdMs ? a.uid < b.uid : a.createdMs < b.createdMs
}
