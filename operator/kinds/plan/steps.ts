/** The next step of a Plan. Pure. The record goes to the Secrets and to the gateways at once; a record without a use is dropped. */
import { sameStatus } from '#api/condition-list.ts'
import { decodePlanRecord } from '#contract/records/plan-record.ts'
import { tightensPlan } from '#policy/effective.ts'
import { awaitEvents, awaitGateways, projectStep, publishStep } from '../../accounts/record-state.ts'
import { firstAnswer, type StepBase, type Wait } from '../../loop/reconciler.ts'
import type { Observed, ObservedPlan } from './observed.ts'
import { statusOf } from './status.ts'

export interface PlanStep extends StepBase {
  readonly do: 'read-live' | 'publish' | 'project' | 'drop' | 'write-status'
}

export function nextStep(observed: Observed): PlanStep | Wait | undefined {
  return observed.state === 'Unused' ? { do: 'drop', level: 'background' } : firstAnswer(CHECKS, observed)
}

export function reportStep(observed: Observed): PlanStep | undefined {
  if (observed.state === 'Unused' || sameStatus(statusOf(observed), observed.plan.status)) return undefined
  return { do: 'write-status', level: 'background' }
}

const CHECKS: ReadonlyArray<(observed: ObservedPlan) => PlanStep | Wait | undefined> = [
  ({ isStale }) => (isStale ? { do: 'read-live', level: 'change' } : undefined),
  (observed) => publishStep(observed.record, levelOf(observed)),
  ({ record }) => projectStep(record),
  ({ record }) => awaitGateways(record),
  reportStep,
  ({ record }) => awaitEvents(record),
]

function levelOf({ former, record }: ObservedPlan): 'urgent' | 'change' | 'create' {
  if (former === undefined) return 'create'
  return record.wanted === undefined || tightensPlan(former, decodePlanRecord(record.wanted)) ? 'urgent' : 'change'
}
