/** What an account has spent, as the ledger and the books have it. Amounts are micro-units. */

/** Everything before the first open period as a sum, and the rest by period and process. */
export interface AccountSpend {
  /** The first open period. Spend of earlier ones is in `closedSpend` and in no entry. */
  readonly openFrom: number
  readonly closedSpend: bigint
  /** Integers above 0, by `spentField`. */
  readonly spent: ReadonlyMap<string, number>
}

/** One read of the balance of one account in the ledger. */
export interface LedgerBalance extends Omit<AccountSpend, 'openFrom'> {
  /** undefined while the balance is not ready, and grants nothing; `closedSpend` is 0 then. */
  readonly openFrom: number | undefined
  /** The present period. */
  readonly period: number
  /** What each process holds for running requests and as float. */
  readonly holders: ReadonlyMap<string, number>
}

/** The name of the spend of one process in one period. */
export function spentField(period: number, process: string): string {
  return `${period}:${process}`
}

/** The period in a `spentField`. */
export function periodOf(field: string): number {
  return Number(field.slice(0, field.indexOf(':')))
}
