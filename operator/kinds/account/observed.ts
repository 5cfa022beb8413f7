/** The observed state of an Account, or of Accounts that were deleted: the input of `nextStep` and `statusOf`. Plain data. */
import type { Plan } from '#api/plan.ts'
import type { AccountRecord } from '#contract/records/account-record.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import type { ObjectRef } from '#kube/port.ts'
import type { Claim } from '../../accounts/claim.ts'
import type { RecordState } from '../../accounts/record-state.ts'
import type { SubjectUsage } from '../../books/subject-ledger.ts'
import type { AccountBook } from '../../shards/account-book.ts'
import type { Interval } from '../../shards/spend-entry.ts'
import type { BalanceFacts, BalanceReading } from './balance.ts'

export interface ObservedAccount extends BalanceFacts {
  readonly state: 'Present'
  readonly claim: Claim
  readonly book: AccountBook | undefined
  /** Whether a change of the books is not durable yet. */
  readonly isBooking: boolean
  /** Why the last change of the books was refused. */
  readonly bookRefusal: string | undefined
  readonly isMarked: boolean
  /** Whether the cached Account is older than its record, so that only a live read can decide. */
  readonly isStale: boolean
  /** The record in effect before this edit. */
  readonly former: AccountRecord | undefined
  readonly record: RecordState
  /** The plan in effect. */
  readonly plan: PlanRecord | undefined
  /** The manifest that planRef names; undefined if there is none. */
  readonly planSpec: Plan['spec'] | undefined
  readonly keyCount: number
  /** Keys that are issued, and neither revoked nor expired. */
  readonly activeKeyCount: number
  /** Use for the status; undefined keeps the use that the status shows. */
  readonly usage: SubjectUsage | undefined
  /** The balance for the status; undefined keeps what the status shows. */
  readonly balance: BalanceReading | undefined
  readonly spendLoss: Interval | undefined
  /** Names of budgets whose spend in Redis is not believed. */
  readonly heldBack: readonly string[]
  /** Whether the same is true of the spend of the balance. */
  readonly isBalanceDoubted: boolean
  /** ms since 1970. */
  readonly now: number
}

/** Accounts of one name that were deleted, and whose keys gateways do not refuse yet. */
export interface DeletedAccounts {
  readonly state: 'Deleted'
  readonly ref: ObjectRef
  readonly records: readonly AccountRecord[]
  /** Whether a live read has just found the Account that the cache lacks. */
  readonly isFoundLive: boolean
}

export type Observed = ObservedAccount | DeletedAccounts
