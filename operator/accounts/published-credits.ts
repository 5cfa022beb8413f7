/**
 * Which Credits gateways have: a record has the sum of its account, and a sum does not tell which Credits are in it. So this memory keeps how
 * many Credits the books had when a record was made. Pure except for its memory.
 */
import type { CreditBooks } from './credit-books.ts'

export class PublishedCredits {
  readonly #credits: Pick<CreditBooks, 'count' | 'orderOf'>
  /** Number of Credits in the books when the newest record of an account was made, by uid. */
  readonly #made = new Map<string, number>()
  /** The same of the newest record that has reached the store of the gateways. */
  readonly #stored = new Map<string, number>()

  constructor(credits: Pick<CreditBooks, 'count' | 'orderOf'>) {
    this.#credits = credits
  }

  /** Call this when a record with the present sum of its account goes to the store. */
  made(uid: string): void {
    this.#made.set(uid, this.#credits.count)
  }

  /** Call this when the store has the newest record of an account. */
  stored(uid: string): void {
    const made = this.#made.get(uid)
    if (made !== undefined) this.#stored.set(uid, made)
  }

  /** Whether the store has got a record that this process made since the Credit was booked. @param uid of the account */
  has(uid: string, credit: string): boolean {
    return (this.#credits.orderOf(credit) ?? Infinity) < (this.#stored.get(uid) ?? 0)
  }

  /** Forgets a deleted account. */
  forget(uid: string): void {
    this.#made.delete(uid)
    this.#stored.delete(uid)
  }
}
