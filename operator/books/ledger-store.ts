/** The operator's port to the ledger: seeds, reads, repairs and deletes the counts of gateways. Never counts a request. */

/** The name of one window of one budget, from `budgetField`. */
export type WindowField = string

/** The spend of one window in micro-units or tokens, as integers of at least 0. */
export interface WindowSpend {
  readonly spent: number
  /** Holds of dead processes, which count as spent. */
  readonly unsettled: number
  /** Holds of running requests and of the floats of processes. */
  readonly held: number
}

export type Checkpoint = readonly [field: WindowField, spent: number]

/** One read of the budgets of one subject. `damaged`: the key holds values that no Headgate program writes. */
export type BudgetRead =
  { readonly state: 'seeded'; readonly windows: readonly WindowSpend[] } | { readonly state: 'unseeded' } | { readonly state: 'damaged' }

export interface BudgetSurvey {
  readonly state: BudgetRead['state']
  readonly windows: readonly WindowField[]
  readonly holders: readonly string[]
  readonly spenders: readonly string[]
}

export interface SubjectFields {
  readonly subject: string
  readonly fields: readonly WindowField[]
}

export interface SubjectCheckpoints {
  readonly subject: string
  readonly checkpoints: readonly Checkpoint[]
}

/** The outcome of a seed. `planted`: the budgets have restarted. */
export type SeedOutcome = 'planted' | 'present' | 'damaged'

export interface LedgerKey {
  readonly name: string
  /** undefined if the key belongs to no subject. */
  readonly subject: string | undefined
  /** Too large, or with a name or type that no Headgate program writes. */
  readonly isDamaged: boolean
}

/** The ledger, for the operator. Results have the order of the arguments. After a rejection some of the writes may have happened. */
export interface OperatorLedgerStore {
  /** Loads missing or older functions. @returns the number of libraries that were loaded */
  prepare(): Promise<0 | 1>
  /** The clock of the store, by which gateways count windows, ms since 1970. */
  timeMs(): Promise<number>
  /** Takes names out of the set of subjects with a settlement. @param limit most names */
  settled(limit: number): Promise<readonly string[]>
  read(asked: readonly SubjectFields[]): Promise<readonly BudgetRead[]>
  survey(subjects: readonly string[]): Promise<readonly BudgetSurvey[]>
  /** Starts budgets. Budgets with a seed and no spend below its checkpoint stay unchanged. */
  seed(subjects: readonly SubjectCheckpoints[]): Promise<readonly SeedOutcome[]>
  /** Drops the budgets of subjects, which then need a seed. */
  dropBudgets(subjects: readonly string[]): Promise<void>
  forget(windows: readonly SubjectFields[]): Promise<void>
  /** Counts the holds of a dead process as spent. */
  reap(process: string, subjects: readonly string[]): Promise<void>
  /** Drops the recorded spend of a process. The sums include it. */
  bury(process: string, subjects: readonly string[]): Promise<void>
  /** Drops everything about subjects except balances. @returns the number of dropped keys by subject */
  remove(subjects: readonly string[]): Promise<readonly number[]>
  /** Whether the store has little memory left, so that it refuses writes now or soon. */
  isNearlyFull(): Promise<boolean>
  /** @param mostBytes a larger key counts as damaged */
  walk(mostBytes: number): AsyncIterable<readonly LedgerKey[]>
  unlink(names: readonly string[]): Promise<void>
}
