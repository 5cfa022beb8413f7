/**
 * The ledger, for the kinds whose objects have limits and budgets. Such an object is a subject, known by the uid of the object; the ledger
 * knows nothing else of a kind.
 */
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import type { Interval } from '../shards/spend-entry.ts'

/** A reading of one budget of one subject. The amount is in the record of the subject: a changed amount keeps the spend. */
export interface BudgetReading {
  /** Name of the budget. */
  readonly budget: string
  readonly unit: BudgetRecord['unit']
  readonly window: BudgetRecord['window']
  /** Spend in the window, including open holds: micro-units or tokens, an integer of at least 0. */
  readonly spent: number
  /** ms since 1970; 0 for Lifetime. */
  readonly windowStartMs: number
}

/** A reading of all budgets of one subject. */
export interface SubjectUsage {
  readonly budgets: readonly BudgetReading[]
  /** ms since 1970; undefined if unknown. */
  readonly lastUsedMs: number | undefined
}

/** A source of readings. */
export interface UsageSource {
  /** @param listener called with each new reading and the uid of the subject; it must only remember and enqueue */
  onRead(listener: (uid: string, usage: SubjectUsage) => void): void
}

/** One kind of subjects: the ledger asks it, and reports to it. */
export interface SubjectKind {
  /** All subjects of this kind, at the start. */
  readonly uids: () => Iterable<string>
  /** Budgets in force, durable or about to be; undefined if there are none, or no such subject. */
  readonly budgetsOf: (uid: string) => readonly BudgetRecord[] | undefined
  /** Whether a subject with this uid exists or may exist. The ledger drops the counts of all others. */
  readonly mayExist: (uid: string) => boolean
  /** Called with each new reading; it must only remember and enqueue. */
  readonly onRead: (uid: string, usage: SubjectUsage) => void
  /** Called when lost spend was restored from the known spend. */
  readonly onLoss: (uid: string) => void
}

/** The operator's side of the ledger, for kinds. Its owner loads, starts and stops it. */
export interface SubjectLedger {
  /** Adds a kind of subjects, before the ledger starts. */
  add(kind: SubjectKind): void
  /** Called when the budgets of a subject may have changed. */
  changed(uid: string): void
  /** Called when a subject was deleted for certain: its spend is dropped. */
  deleted(uid: string): void
  /** The period in which spend may have been lost; undefined as soon as a status no longer shows the period. */
  loss(uid: string): Interval | undefined
}
