/**
 * The effective policy of a key: what all that limits it allows together, and whose each part is. Today the key alone limits itself. The
 * gateway, the operator and `make run` call the one function, so another source is added here. Pure.
 */
import type { KeyRecord } from '#contract/records/key-record.ts'
import type { BudgetRecord, Limits } from '#contract/records/limits-record.ts'

/** Owner of a limit, as a refusal names it. */
export type LimitOwner = 'key' | 'account' | 'plan'

/** The policy in the record of a key. Tombstones have no models. */
export type KeyPolicy = Pick<KeyRecord, 'limits' | 'budgets' | 'onStoreUnavailable'> & { readonly models?: KeyRecord['models'] | undefined }

/** A budget and its owner. */
export interface OwnedBudget extends BudgetRecord {
  readonly whose: LimitOwner
}

/** The effective policy of a key. */
export interface EffectivePolicy {
  /** All lists must admit a model. */
  readonly models: KeyRecord['models']
  readonly limits: Limits
  /** The owner of each limit. */
  readonly limitedBy: Readonly<Partial<Record<keyof Limits, LimitOwner>>>
  /** All count. */
  readonly budgets: readonly OwnedBudget[]
  /** Policy for requests that cannot be counted. */
  readonly onStoreUnavailable: 'FailClosed' | 'LocalShare'
}

/** Computes the effective policy. */
export function effective({ models = [], limits = {}, budgets = [], onStoreUnavailable = 'FailClosed' }: KeyPolicy): EffectivePolicy {
  return {
    models,
    limits,
    limitedBy: Object.fromEntries(limitNames(limits).map((limit) => [limit, 'key'])),
    budgets: budgets.map((budget) => ({ ...budget, whose: 'key' })),
    onStoreUnavailable,
  }
}

/** Whether a policy limits anything. */
export function isLimited({ limits, budgets }: EffectivePolicy): boolean {
  return limitNames(limits).length > 0 || budgets.length > 0
}

/** Whether `wanted` refuses what `present` admits. */
export function tightens(present: EffectivePolicy, wanted: EffectivePolicy): boolean {
  return (
    removesModels(present, wanted) ||
    limitNames(wanted.limits).some((limit) => (wanted.limits[limit] ?? Infinity) < (present.limits[limit] ?? Infinity)) ||
    wanted.budgets.some((budget) => isTighter(present.budgets, budget)) ||
    (present.onStoreUnavailable === 'LocalShare' && wanted.onStoreUnavailable !== 'LocalShare')
  )
}

function limitNames(limits: Limits): ReadonlyArray<keyof Limits> {
  return (Object.keys(limits) as Array<keyof Limits>).filter((limit) => limits[limit] !== undefined)
}

function removesModels(present: EffectivePolicy, wanted: EffectivePolicy): boolean {
  const left = new Set(wanted.models.flat())
  return present.models.flat().some((model) => !left.has(model))
}

/** Whether a budget is tighter. A budget with another unit or window is another budget, so the amount alone does not decide. */
function isTighter(present: readonly BudgetRecord[], wanted: BudgetRecord): boolean {
  if (wanted.onExceeded === 'Audit') return false
  return !present.some((former) => isSameBudget(former, wanted) && former.onExceeded === 'Block' && former.amount <= wanted.amount)
}

function isSameBudget(a: BudgetRecord, b: BudgetRecord): boolean {
  return a.name === b.name && a.unit === b.unit && a.window === b.window && a.timeZone === b.timeZone
}
