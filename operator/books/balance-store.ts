/**
 * The operator's port to the balances in the ledger: reads and merges the spend of accounts, and drops holds of dead processes. Names are
 * those of accounts in the ledger, and amounts micro-units. Spend is by period and process, with the name of `spentField`.
 */

/** One read of the balance of one account. */
export interface LedgerBalance {
  /** The first period whose spend may still grow; undefined while the balance is not ready, and grants nothing. */
  readonly openFrom: number | undefined
  /** The present period. */
  readonly period: number
  /** Spend of all periods before `openFrom`; 0 while that is not known. */
  readonly closedSpend: bigint
  readonly spent: ReadonlyMap<string, number>
  /** What each process holds for running requests and as float. */
  readonly holders: ReadonlyMap<string, number>
}

/** The spend of one account as its books have it. */
export interface BooksOfSpend {
  readonly openFrom: number
  readonly closedSpend: bigint
  readonly spent: ReadonlyMap<string, number>
}

/** `absent`: the ledger knows nothing. `damaged`: values that no Headgate program writes, or sums that are not those of their parts. */
export type BalanceRead = LedgerBalance | 'absent' | 'damaged'

export interface BalanceMerge {
  readonly name: string
  readonly books: BooksOfSpend
  /** Whether the balance may grant from now on, because every process has reported what it holds. */
  readonly isReady: boolean
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
  /** Drops what a dead process holds. Its spend stays. */
  freeHolds(rows: ReadonlyArray<{ readonly name: string; readonly process: string }>): Promise<void>
  /** Drops damaged balances. */
  dropBalances(names: readonly string[]): Promise<void>
}
