/** The operator's half of the ledger as a port: it seeds, reads, repairs and clears what gateways count. Nothing here counts a request. */

import type { UsageCounters } from '../../gateway/shared/ledger-call.ts'

/** One window of one budget: `budgetField`. */
export type WindowField = string

/** What the ledger says about one window. Micro-units or tokens, integers of at least 0. */
export interface WindowSpend {
  readonly spent: number
  /** Holds of processes that have died: counted as spent. */
  readonly unsettled: number
  /** Holds of running requests, and of the floats of processes. */
  readonly held: number
}

/** A spend that the ledger must know. */
export type Checkpoint = readonly [field: WindowField, spent: number]

/** One read of the budgets of one subject. `damaged`: somebody has written what no program of ours writes. */
export type BudgetRead =
  { readonly state: 'seeded'; readonly windows: readonly WindowSpend[] } | { readonly state: 'unseeded' } | { readonly state: 'damaged' }

/** Everything that the budgets of one subject hold, by name. */
export interface BudgetSurvey {
  readonly state: BudgetRead['state']
  readonly windows: readonly WindowField[]
  /** Processes that hold something. */
  readonly holders: readonly string[]
  /** Processes whose spend is known. */
  readonly spenders: readonly string[]
}

/** One subject, and windows of it. */
export interface SubjectFields {
  readonly subject: string
  readonly fields: readonly WindowField[]
}

/** One subject, and what it has spent at least. */
export interface SubjectCheckpoints {
  readonly subject: string
  readonly checkpoints: readonly Checkpoint[]
}

/** What became of a seed. `planted`: nothing was there before. */
export type SeedOutcome = 'planted' | 'present' | 'damaged'

/** One key of the ledger, as a walk over all of them finds it. */
export interface LedgerKey {
  readonly name: string
  /** undefined: it belongs to no subject. */
  readonly subject: string | undefined
  /** Too large, or of a name or type that no program of ours makes. */
  readonly isDamaged: boolean
}

/**
 * The ledger, for the operator. Subjects are uids of ApiKeys. A list is read and written in the order that it is given in.
 * Every method rejects if the store does not answer, or lacks the functions; some of its writes may have happened then.
 */
export interface OperatorLedgerStore {
  /** Loads the functions where they are missing or older. @returns on how many servers */
  prepare(): Promise<number>
  /** Takes names out of the set of subjects that have settled something. @param limit most of them */
  settled(limit: number): Promise<readonly string[]>
  read(asked: readonly SubjectFields[]): Promise<readonly BudgetRead[]>
  survey(subjects: readonly string[]): Promise<readonly BudgetSurvey[]>
  /** @returns ms since 1970 by the clock of the store, which decides to which day usage belongs */
  timeMs(): Promise<number>
  /**
   * Usage of one UTC day by model.
   * @param day whole days since 1970
   * @returns by subject; empty for one that used nothing, or whose usage is damaged
   */
  usage(subjects: readonly string[], day: number): Promise<ReadonlyArray<readonly UsageCounters[]>>
  /** Starts budgets. Those that have a seed stay as they are. */
  seed(subjects: readonly SubjectCheckpoints[]): Promise<readonly SeedOutcome[]>
  /** Raises lower spends. @returns how many, by subject */
  restore(subjects: readonly SubjectCheckpoints[]): Promise<readonly number[]>
  /** Drops the budgets of subjects; they need a seed then. */
  dropBudgets(subjects: readonly string[]): Promise<void>
  /** Drops windows that are over. */
  forget(windows: readonly SubjectFields[]): Promise<void>
  /** Counts the holds of a process that has died as spent. */
  reap(process: string, subjects: readonly string[]): Promise<void>
  /** Forgets how much a process had spent; the sums keep it. */
  bury(process: string, subjects: readonly string[]): Promise<void>
  /** Drops everything about subjects. @param nowMs ms since 1970: usage is kept by day */
  remove(subjects: readonly string[], nowMs: number): Promise<void>
  /** Walks over every key of the ledger, some at a time. */
  walk(): AsyncIterable<readonly LedgerKey[]>
  /** Drops keys by their names. */
  unlink(names: readonly string[]): Promise<void>
}
