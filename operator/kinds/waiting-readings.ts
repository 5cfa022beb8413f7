/** Readings that wait for a status, in the order in which they get one. No operation depends on the number of readings. Pure. */

export interface WaitingReading<Usage> {
  readonly usage: Usage
  /** The change since the last status, per cent. */
  readonly size: number
}

/** Changes of this size and larger ones are alike, per cent. */
const LARGEST = 100

export class WaitingReadings<Usage> {
  /** In the order in which the wait began. */
  readonly #readings = new Map<string, WaitingReading<Usage> & { readonly sinceMs: number }>()
  /** Uids by size of the change. */
  readonly #bySize = Array.from({ length: LARGEST + 1 }, () => new Set<string>())

  get size(): number {
    return this.#readings.size
  }

  get(uid: string): Usage | undefined {
    return this.#readings.get(uid)?.usage
  }

  /** Adds a reading, or replaces an older one, which has waited since its own time. */
  set(uid: string, { usage, size }: WaitingReading<Usage>, nowMs: number): void {
    const former = this.#readings.get(uid)
    if (former && classOf(former.size) !== classOf(size)) this.#classOf(former.size).delete(uid)
    this.#readings.set(uid, { usage, size, sinceMs: former?.sinceMs ?? nowMs })
    this.#classOf(size).add(uid)
  }

  delete(uid: string): void {
    const reading = this.#readings.get(uid)
    if (reading === undefined) return
    this.#readings.delete(uid)
    this.#classOf(reading.size).delete(uid)
  }

  clear(): void {
    for (const uid of [...this.#readings.keys()]) this.delete(uid)
  }

  /** @returns the uids that have waited longest, none of which has waited since `sinceMs` or later */
  longest(count: number, sinceMs: number): readonly string[] {
    const found: string[] = []
    for (const [uid, reading] of this.#readings) {
      if (found.length >= count || reading.sinceMs >= sinceMs) break
      found.push(uid)
    }
    return found
  }

  /** @returns the uids with the largest changes, the largest first */
  largest(count: number): readonly string[] {
    const found: string[] = []
    for (let size = LARGEST; size >= 0; size -= 1)
      for (const uid of this.#classOf(size)) {
        if (found.length >= count) return found
        found.push(uid)
      }
    return found
  }

  #classOf(size: number): Set<string> {
    return this.#bySize[classOf(size)] ?? new Set()
  }
}

function classOf(size: number): number {
  return Math.min(LARGEST, Math.max(0, Math.floor(size)))
}
