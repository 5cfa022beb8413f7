import { ExponentialDelay } from '#platform/exponential-delay.ts'

const FIRST_MS = 1_000
const MAX_MS = 300_000
/** A conflict is solved by reading again. The watch needs a moment to deliver the newer object, or the next run meets the same conflict. */
const CONFLICT_MS = 50
const CONFLICTS_IN_A_ROW = 5

interface Failures {
  readonly delay: ExponentialDelay
  conflicts: number
}

/** Delays of each item after a failure: 1 s doubling to 5 minutes, ±20 %; after a conflict 50 ms, at most 5 times in a row. */
export class ItemBackoff {
  readonly #random: () => number
  readonly #failures = new Map<string, Failures>()

  /** @param random [0, 1) */
  constructor(random: () => number) {
    this.#random = random
  }

  /** Records a failure of `key`. @returns ms to wait, and whether it is one of the short waits after a conflict */
  next(key: string, isConflict: boolean): { readonly delayMs: number; readonly isShort: boolean } {
    const failures = this.#failures.get(key) ?? this.#first()
    this.#failures.set(key, failures)
    if (isConflict && failures.conflicts < CONFLICTS_IN_A_ROW) {
      failures.conflicts += 1
      return { delayMs: CONFLICT_MS, isShort: true }
    }
    return { delayMs: Math.round(failures.delay.next()), isShort: false }
  }

  /** Forgets the failures of `key`, after a success or the deletion of its object. */
  forget(key: string): void {
    this.#failures.delete(key)
  }

  #first(): Failures {
    return { delay: new ExponentialDelay({ firstMs: FIRST_MS, maxMs: MAX_MS, random: this.#random }), conflicts: 0 }
  }
}
