/** The balances that the gateway of this process counts in memory, for its operator. */
import type { MemoryLedgerStore } from '../gateway/limits/memory-ledger.ts'
import type { BalanceMerge, BalanceRead, BalanceStore } from '../operator/books/balance-store.ts'

export class MemoryBalanceStore implements BalanceStore {
  readonly #memory: MemoryLedgerStore

  constructor(memory: MemoryLedgerStore) {
    this.#memory = memory
  }

  readBalances(names: readonly string[]): Promise<readonly BalanceRead[]> {
    return Promise.resolve(this.#memory.readBalances(names))
  }

  mergeBalances(rows: readonly BalanceMerge[]): Promise<void> {
    this.#memory.mergeBalances(rows)
    return Promise.resolve()
  }

  raisePeriods(rows: Parameters<BalanceStore['raisePeriods']>[0]): Promise<void> {
    this.#memory.raisePeriods(rows)
    return Promise.resolve()
  }

  freeHolds(rows: Parameters<BalanceStore['freeHolds']>[0]): Promise<void> {
    this.#memory.freeHolds(rows)
    return Promise.resolve()
  }

  dropBalances(names: readonly string[]): Promise<void> {
    this.#memory.dropBalances(names)
    return Promise.resolve()
  }
}
