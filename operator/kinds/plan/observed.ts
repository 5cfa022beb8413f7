/** The observed state of a Plan, or of a Plan that was deleted: the input of `nextStep` and `statusOf`. Plain data. */
import type { Plan } from '#api/plan.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import type { ObjectRef } from '#kube/port.ts'
import type { RecordState } from '../../accounts/record-state.ts'

export interface ObservedPlan {
  readonly state: 'Present'
  readonly plan: Plan
  /** Whether the cached Plan is older than its record, so that only a live read can decide. */
  readonly isStale: boolean
  /** The record in effect before this edit. */
  readonly former: PlanRecord | undefined
  readonly record: RecordState
  readonly accountCount: number
  readonly keyCount: number
  /** Entries of models that no ServedModel matches. */
  readonly unresolvedModels: readonly string[]
  /** ms since 1970. */
  readonly now: number
}

/** Records of Plans that were deleted and that no account uses any more. */
export interface UnusedPlans {
  readonly state: 'Unused'
  readonly ref: ObjectRef
  readonly uids: readonly string[]
}

export type Observed = ObservedPlan | UnusedPlans
