/** A key as pages show it: what holds, and whose each number is. Pure. */
import type { Account } from '#api/account.ts'
import { accountPolicy, planPolicy } from '#api/account-policy.ts'
import type { ApiKey } from '#api/apikey.ts'
import { findCondition } from '#api/condition-list.ts'
import { keyPolicy } from '#api/key-policy.ts'
import { CREATED_BY_DASHBOARD, CREATED_BY_LABEL } from '#api/metadata.ts'
import type { Plan } from '#api/plan.ts'
import { effective, sharedPolicy, type SubjectPolicy } from '#policy/effective.ts'
import type { KeyState, KeyView, LimitName, LimitView } from '../page-data/keys.ts'
import { budgetView } from './budget-view.ts'

export interface KeyFacts {
  readonly account: Account
  /** undefined: the Plan does not exist. */
  readonly plan: Plan | undefined
  /** ms since 1970 */
  readonly nowMs: number
}

export const LIMIT_NAMES = ['requestsPerMinute', 'tokensPerMinute', 'maxConcurrentRequests'] as const satisfies readonly LimitName[]

export function keyView(apiKey: ApiKey, facts: KeyFacts): KeyView {
  const { metadata, spec, status } = apiKey
  const policy = effective(keyPolicy(spec), facts.plan && planPolicy(facts.plan.spec))
  const state = stateOf(apiKey)
  return {
    ...namesOf(apiKey),
    state,
    wanted: spec.state,
    isManaged: isManaged(apiKey),
    problem: problemOf(apiKey, state),
    models: spec.models,
    limits: LIMIT_NAMES.flatMap((limit) => limitView(limit, policy, spec.limits?.[limit]) ?? []),
    budgets: budgetsOf(apiKey, policy, facts),
    createdAt: metadata.creationTimestamp ?? '',
    ...endsOf(apiKey),
    lastUsedAt: status?.lastUsedTime,
    programmed: isCurrent(apiKey) ? status?.programmed : undefined,
  }
}

/** Keys without the label of the dashboard have a manifest somewhere, which would undo each change. */
export function isManaged({ metadata }: ApiKey): boolean {
  return metadata.labels?.[CREATED_BY_LABEL] !== CREATED_BY_DASHBOARD
}

function namesOf({ metadata, spec, status }: ApiKey): Pick<KeyView, 'id' | 'name' | 'hint'> {
  return { id: metadata.name, name: spec.displayName ?? metadata.name, hint: status?.prefix ?? spec.source?.hash?.hint ?? '' }
}

/** When the key ends, and when its former value does. */
function endsOf({ spec, status }: ApiKey): Pick<KeyView, 'expiresAt' | 'ownExpiresAt' | 'formerValueUntil'> {
  const expiresAt = status?.expirationTime ?? spec.expirationTime
  const ends = (status?.verifiers ?? []).flatMap(({ expireTime }) => expireTime ?? [])
  const formerValueUntil = ends
    .filter((end) => end !== expiresAt)
    .toSorted()
    .at(-1)
  return { expiresAt, ownExpiresAt: spec.expirationTime, formerValueUntil }
}

/** Whether the status describes the newest edit. */
function isCurrent({ metadata, status }: ApiKey): boolean {
  return status?.observedGeneration !== undefined && status.observedGeneration >= (metadata.generation ?? 0)
}

/** Reasons of Ready that are states of their own. */
const STATES: Readonly<Partial<Record<string, KeyState>>> = {
  Ready: 'Active',
  Expired: 'Expired',
  AccountSuspended: 'AccountSuspended',
  BalanceExhausted: 'BalanceUsedUp',
  BudgetExhausted: 'BudgetUsedUp',
  NotProgrammed: 'Activating',
}

function stateOf(apiKey: ApiKey): KeyState {
  const { spec, status } = apiKey
  const isStopped = isCurrent(apiKey) && isProgrammed(apiKey)
  if (spec.state === 'Revoked') return isStopped ? 'Revoked' : 'Revoking'
  if (spec.state === 'Suspended') return isStopped ? 'Suspended' : 'Suspending'
  const ready = findCondition(status?.conditions, 'Ready')
  if (ready === undefined || ready.reason === 'Suspended') return 'Activating'
  return STATES[ready.reason] ?? 'NotAccepted'
}

function isProgrammed({ status }: ApiKey): boolean {
  return findCondition(status?.conditions, 'Programmed')?.status === 'True'
}

/** Why a key that is meant to work does not: the condition Accepted where that says more than Ready. */
function problemOf({ status }: ApiKey, state: KeyState): KeyView['problem'] {
  if (state !== 'NotAccepted') return undefined
  const accepted = findCondition(status?.conditions, 'Accepted')
  const condition = accepted?.status === 'True' ? findCondition(status?.conditions, 'Ready') : accepted
  return condition && { reason: condition.reason, message: condition.message }
}

function limitView(limit: LimitName, { limits, limitedBy }: SubjectPolicy, asked: number | undefined): LimitView | undefined {
  const [value, owner] = [limits[limit], limitedBy[limit]]
  if (value === undefined || owner === undefined) return undefined
  return { limit, value, owner, asked: asked !== undefined && asked > value ? asked : undefined }
}

/** The key's own budgets first, then those of the plan for each key, then those that all keys share. */
function budgetsOf({ status }: ApiKey, policy: SubjectPolicy, { account, plan, nowMs }: KeyFacts): KeyView['budgets'] {
  const shared = sharedPolicy(accountPolicy(account.spec), plan && planPolicy(plan.spec))
  return [
    ...policy.budgets.map((budget) => budgetView(budget, { usage: status?.usage, isShared: false, nowMs })),
    ...shared.budgets.map((budget) => budgetView(budget, { usage: account.status?.usage, isShared: true, nowMs })),
  ]
}
