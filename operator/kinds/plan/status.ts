/** Derives the status of a Plan. Pure. */
import { PLAN_CONDITIONS, type PlanCondition } from '#api/account-conditions.ts'
import { planBudgetsWithoutZone } from '#api/account-policy.ts'
import { conditionList, findCondition } from '#api/condition-list.ts'
import { MAX_UNRESOLVED, type PlanStatus } from '#api/plan.ts'
import { programmedCount, programmedOf } from '../../accounts/record-state.ts'
import type { ObservedPlan } from './observed.ts'

type ConditionFor<Type extends PlanCondition['type']> = Extract<PlanCondition, { type: Type }>

/** Maximum number of entries that a message names. */
const NAMED_MODELS = 5

export function statusOf(observed: ObservedPlan): PlanStatus {
  const { plan, record, accountCount, keyCount, unresolvedModels, now } = observed
  const generation = plan.metadata.generation ?? 0
  const accepted = acceptedOf(observed)
  const programmed: ConditionFor<'Programmed'> = { type: 'Programmed', ...programmedOf(record, 'plan') }
  const counts = programmedCount(record) ?? plan.status?.programmed
  return {
    observedGeneration: generation,
    accountCount,
    keyCount,
    ...(unresolvedModels.length > 0 && { unresolvedModels: unresolvedModels.slice(0, MAX_UNRESOLVED) }),
    ...(counts && { programmed: counts }),
    conditions: conditionList(PLAN_CONDITIONS, [readyOf(observed, accepted, programmed), accepted, programmed, resolvedOf(observed)], {
      previous: plan.status?.conditions,
      generation,
      nowMs: now,
    }),
  }
}

function acceptedOf({ plan, record }: ObservedPlan): ConditionFor<'Accepted'> {
  const [found] = planBudgetsWithoutZone(plan.spec)
  if (found === undefined) return { type: 'Accepted', reason: 'Accepted', message: 'The manifest is applied.' }
  const [field, { timeZone }] = found
  const effect = record.wanted === undefined ? 'Until then the plan is not in effect.' : 'Until then the former budgets hold.'
  const message = `${field}.timeZone is ${timeZone ?? ''}, and there is no such time zone. Write an IANA name such as Europe/Berlin. ${effect}`
  return { type: 'Accepted', reason: 'InvalidTimeZone', message }
}

/** Ready does not flap: a plan that held on every gateway stays Ready while an edit is on its way. */
function readyOf(
  { plan }: ObservedPlan,
  accepted: ConditionFor<'Accepted'>,
  programmed: ConditionFor<'Programmed'>,
): ConditionFor<'Ready'> {
  if (accepted.reason !== 'Accepted') return { type: 'Ready', reason: 'NotAccepted', message: accepted.message }
  const wasReady = findCondition(plan.status?.conditions, 'Ready')?.status === 'True'
  if (programmed.reason !== 'Programmed' && !wasReady) return { type: 'Ready', reason: 'NotProgrammed', message: programmed.message }
  return { type: 'Ready', reason: 'Ready', message: 'The plan holds on every gateway.' }
}

function resolvedOf({ unresolvedModels }: ObservedPlan): ConditionFor<'ModelsResolved'> {
  if (unresolvedModels.length === 0) return { type: 'ModelsResolved', reason: 'Resolved', message: 'Every entry matches a ServedModel.' }
  const named = unresolvedModels.slice(0, NAMED_MODELS).join(', ')
  const message = `No ServedModel matches ${named}${unresolvedModels.length > NAMED_MODELS ? ' and others' : ''}.`
  return { type: 'ModelsResolved', reason: 'ModelNotFound', message }
}
