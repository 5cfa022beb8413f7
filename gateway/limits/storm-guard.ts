/** Number of refusals within the time that make a storm. */
const MANY = 20
const WITHIN_MS = 10_000
/** Maximum number of watched keys; the key with the earliest first refusal is dropped first. */
const MOST_KEYS = 10_000

/** Finds keys whose clients ignore refusals: refused again and again for requests per minute. */
export class StormGuard {
  /** Monotonic ms of the last refusals of each key, as a ring of `MANY`. */
  readonly #times = new Map<string, { readonly at: Float64Array; next: number }>()

  /** Counts a refused request. @param now monotonic ms */
  refused(uid: string, now: number): void {
    const ring = this.#times.get(uid) ?? this.#add(uid)
    ring.at[ring.next] = now
    ring.next = (ring.next + 1) % MANY
  }

  /** Whether the last 20 refusals lie within 10 s. */
  isStorm(uid: string, now: number): boolean {
    const ring = this.#times.get(uid)
    return ring !== undefined && now - (ring.at[ring.next] ?? -Infinity) < WITHIN_MS
  }

  #add(uid: string): { readonly at: Float64Array; next: number } {
    if (this.#times.size >= MOST_KEYS)
      for (const oldest of this.#times.keys()) {
        this.#times.delete(oldest)
        break
      }
    const ring = { at: new Float64Array(MANY).fill(-Infinity), next: 0 }
    this.#times.set(uid, ring)
    return ring
  }
}
