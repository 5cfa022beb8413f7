/** Something that one IntrusiveSet can hold at a time. */
export interface Intrusive {
  /** Its place, kept by the list alone; `NO_SLOT` outside of it. */
  slot: number
}

/** Where an entry is that is in no list. */
export const NO_SLOT = -1

/**
 * What is under way, for things that come and go with every request. Not a Set: V8's hash tables point to the table that replaces them,
 * and each dead one still holds what was in it when it was full. Once one of them is old, every request of the process hangs on that
 * chain until the next full collection, and each young collection copies megabytes of the dead (measured: a fifth of all CPU time).
 */
export class IntrusiveSet<T extends Intrusive> {
  readonly #entries: T[] = []

  get size(): number {
    return this.#entries.length
  }

  /** Does nothing when it is in already. */
  add(entry: T): void {
    if (entry.slot !== NO_SLOT) return
    entry.slot = this.#entries.length
    this.#entries.push(entry)
  }

  /** Does nothing when it is not in. The last entry takes its place. */
  delete(entry: T): void {
    const { slot } = entry
    if (slot === NO_SLOT) return
    entry.slot = NO_SLOT
    const last = this.#entries.pop()
    if (last === undefined || last === entry) return
    last.slot = slot
    this.#entries[slot] = last
  }

  /** Calls `visit` once for each entry of this moment that is still in when its turn comes; entries may come and go meanwhile. */
  forEach(visit: (entry: T) => void): void {
    for (const entry of [...this.#entries]) if (entry.slot !== NO_SLOT) visit(entry)
  }
}
