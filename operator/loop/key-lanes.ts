/** Changes go before what is looked at again out of caution: a resync of 10,000 objects must not delay a new one. */
export type Priority = 'change' | 'resync'

/** A waiting key, and since when (monotonic ms). */
export interface Waiting {
  readonly key: string
  readonly sinceMs: number
}

/** Two lines of keys, each key at most once. Sets keep the order of arrival. */
export class KeyLanes {
  readonly #lanes: Readonly<Record<Priority, Map<string, number>>> = { change: new Map(), resync: new Map() }

  get size(): number {
    return this.#lanes.change.size + this.#lanes.resync.size
  }

  /** Adds a key, or moves it to the faster line. @returns whether it is new here */
  add(key: string, priority: Priority, nowMs: number): boolean {
    const { change, resync } = this.#lanes
    if (change.has(key)) return false
    const sinceMs = resync.get(key)
    if (priority === 'change') {
      resync.delete(key)
      change.set(key, sinceMs ?? nowMs)
    } else if (sinceMs === undefined) resync.set(key, nowMs)
    return sinceMs === undefined
  }

  /** Removes the next key: the oldest change, else the oldest resync. */
  shift(): Waiting | undefined {
    for (const lane of [this.#lanes.change, this.#lanes.resync]) {
      for (const [key, sinceMs] of lane) {
        lane.delete(key)
        return { key, sinceMs }
      }
    }
    return undefined
  }

  clear(): void {
    this.#lanes.change.clear()
    this.#lanes.resync.clear()
  }
}
