/**
 * The operator's port to the balances in the ledger: reads and merges the spend of accounts, and drops holds of dead processes. Names are
 * those of accounts in the ledger, and amounts micro-units. Spend is by period and process, with the name of `spentField`.
 */

import type { AccountSpend, LedgerBalance } from '#contract/ledger/account-spend.ts'

/** `absent`: the ledger knows nothing. `damaged`: values that no Headgate program writes, or sums that are not those of their parts. */
export type BalanceRead = LedgerBalance | 'absent' | 'damaged'

export interface BalanceMerge {
  readonly name: string
  readonly books: AccountSpend
  /** Whether the balance may grant from now on, because every process has reported what it holds. */
  readonly isReady: boolean
}

/** What a dead process held of an account at the last read. */
export interface DeadHold {
  readonly name: string
  readonly process: string
  /** Micro-units. */
  readonly held: number
}

/** The balances in the ledger, for the operator. After a rejection some of the writes may have happened; each may happen twice. */
export interface BalanceStore {
  /** In the order of the names. */
  readBalances(names: readonly string[]): Promise<readonly BalanceRead[]>
  /**
   * Takes the maximum of the books and the ledger: the later `openFrom` wins with its closed spend, and of one `openFrom` the larger closed
   * spend. Spend of earlier periods is dropped, since the closed spend includes it. A damaged balance stays unchanged.
   */
  mergeBalances(rows: readonly BalanceMerge[]): Promise<void>
  /** The present period is at least the given one from now on. */
  raisePeriods(rows: ReadonlyArray<{ readonly name: string; readonly period: number }>): Promise<void>
  /** Drops what dead processes hold. A hold that has changed since stays: only a living process changes it. The spend stays. */
  freeHolds(rows: readonly DeadHold[]): Promise<void>
  /** Drops damaged balances. */
  dropBalances(names: readonly string[]): Promise<void>
}
