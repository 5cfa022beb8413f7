/** Writes to the store that follow from one read of many accounts. */
import type { BalanceStore, DeadHold } from '../books/balance-store.ts'

type Rows<Call extends 'mergeBalances' | 'raisePeriods'> = Parameters<BalanceStore[Call]>[0][number]

export class BalanceRepairs {
  readonly #dropped: string[] = []
  readonly #merged: Array<Rows<'mergeBalances'>> = []
  readonly #raised: Array<Rows<'raisePeriods'>> = []
  readonly #freed: DeadHold[] = []

  get raised(): number {
    return this.#raised.length
  }

  drop(name: string): void {
    this.#dropped.push(name)
  }

  merge(row: Rows<'mergeBalances'>): void {
    this.#merged.push(row)
  }

  raise(row: Rows<'raisePeriods'>): void {
    this.#raised.push(row)
  }

  free(row: DeadHold): void {
    this.#freed.push(row)
  }

  /** @throws errors of the store; the next read finds what is still to do */
  async apply(store: BalanceStore): Promise<void> {
    if (this.#dropped.length > 0) await store.dropBalances(this.#dropped)
    if (this.#merged.length > 0) await store.mergeBalances(this.#merged)
    if (this.#raised.length > 0) await store.raisePeriods(this.#raised)
    if (this.#freed.length > 0) await store.freeHolds(this.#freed)
  }
}
