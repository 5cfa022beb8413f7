const FIRST_MS = 1_000
const MAX_MS = 300_000
const SPREAD = 0.2
/** A conflict is cured by reading again, which the next run does. */
const CONFLICTS_AT_ONCE = 5

interface Failures {
  errors: number
  conflicts: number
}

/** How long each key waits after failing: 1 s doubling to 5 minutes, ±20 %; after a conflict not at all, at most 5 times in a row. */
export class Backoff {
  readonly #random: () => number
  readonly #failures = new Map<string, Failures>()

  /** @param random [0, 1) */
  constructor(random: () => number) {
    this.#random = random
  }

  /** One more failure of `key`. @returns ms to wait */
  next(key: string, conflict: boolean): number {
    const failures = this.#failures.get(key) ?? { errors: 0, conflicts: 0 }
    this.#failures.set(key, failures)
    if (conflict && failures.conflicts < CONFLICTS_AT_ONCE) {
      failures.conflicts += 1
      return 0
    }
    const waitMs = Math.min(MAX_MS, FIRST_MS * 2 ** failures.errors)
    failures.errors = Math.min(failures.errors + 1, 16)
    return waitMs * (1 - SPREAD + this.#random() * 2 * SPREAD)
  }

  /** `key` has succeeded. */
  forget(key: string): void {
    this.#failures.delete(key)
  }
}
