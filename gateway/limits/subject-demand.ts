/** What one request takes from one subject, and what one call about the subject contains. */
import type { LedgerCall } from '#contract/ledger/ledger-call.ts'
import type { BudgetBook, BudgetPiece, SentReport } from './budget-book.ts'
import type { Piece } from './rate-lease.ts'

/** Units of one subject that one request takes. */
export interface Demand {
  readonly requests: number
  readonly tokens: number
  readonly permits: number
  readonly budgets: readonly number[]
  /** Micro-units of the balance. */
  readonly balance: number
}

/** The part of a request's hold that belongs to one subject: what the request takes, and where it was taken from. */
export interface SubjectHold extends Demand {
  requestPieces: readonly Piece[]
  tokenPieces: readonly Piece[]
  takenPermits: number
  budgetPieces: readonly BudgetPiece[]
  takenBalance: number
}

/**
 * When the store should learn of the end of a request: `now`, because another request may wait for its permit; `soon`, because a limit is
 * nearly used up or was exceeded; else `later`, with the next call.
 */
export type Urgency = 'now' | 'soon' | 'later'

/** The parts of a call that the books fill, and the state for the comparison with the reply. */
export interface SentParts {
  readonly parts: Pick<LedgerCall, 'reports' | 'permits' | 'rates' | 'budgets' | 'balance'>
  readonly reports: readonly SentReport[]
  readonly books: readonly BudgetBook[]
  /** Number of times that all leases had ended at the time of the call. */
  readonly term: number
  /** Monotonic ms. */
  readonly sentAt: number
}
