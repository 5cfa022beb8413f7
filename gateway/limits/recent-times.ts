/** Maximum number of keys that are remembered; the key with the earliest first event is dropped first. */
const MAX_KEYS = 10_000

/** The times of the last events of each key, monotonic ms: as many as `count`. */
export class RecentTimes {
  readonly #count: number
  readonly #rings = new Map<string, { readonly at: Float64Array; next: number }>()

  constructor(count: number) {
    this.#count = count
  }

  /** Time of the event before the last `count - 1`; -Infinity if the key has had fewer events. */
  earliest(uid: string): number {
    const ring = this.#rings.get(uid)
    return ring?.at[ring.next] ?? -Infinity
  }

  add(uid: string, now: number): void {
    const ring = this.#rings.get(uid) ?? this.#add(uid)
    ring.at[ring.next] = now
    ring.next = (ring.next + 1) % this.#count
  }

  #add(uid: string): { readonly at: Float64Array; next: number } {
    if (this.#rings.size >= MAX_KEYS) {
      const [first = ''] = this.#rings.keys()
      this.#rings.delete(first)
    }
    const ring = { at: new Float64Array(this.#count).fill(-Infinity), next: 0 }
    this.#rings.set(uid, ring)
    return ring
  }
}
