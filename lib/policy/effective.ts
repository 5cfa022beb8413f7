/**
 * The effective policy of a key and of an account: what key, plan and account allow together, and whose each part is. The gateway, the
 * operator and `make run` call the same functions. Pure over records.
 */
import type { AccountRecord } from '#contract/records/account-record.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import type { BudgetRecord, Limits } from '#contract/records/limits-record.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import { halvesOf, parseSum, type SumHalves } from '#contract/values/signed-micros.ts'

/** Owner of a limit, as a refusal names it. */
export type LimitOwner = 'key' | 'account' | 'plan'

/** The policy in the record of a key. Tombstones have no models. */
export type KeyPolicy = Pick<KeyRecord, 'limits' | 'budgets' | 'onStoreUnavailable'> & { readonly models?: KeyRecord['models'] | undefined }
/** The policy in the record of a plan. */
export type PlanPolicy = Pick<PlanRecord, 'models' | 'keyDefault' | 'keyCeiling' | 'keyBudgets' | 'accountLimits' | 'accountBudgets'>
/** The policy in the record of an account. */
export type AccountPolicy = Pick<AccountRecord, 'limits' | 'budgets'>

/** A budget and its owner. */
export interface OwnedBudget extends BudgetRecord {
  readonly whose: LimitOwner
}

/** Limits and budgets of one subject. */
export interface SubjectPolicy {
  readonly limits: Limits
  /** The owner of each limit. */
  readonly limitedBy: Readonly<Partial<Record<keyof Limits, LimitOwner>>>
  /** All of them apply. */
  readonly budgets: readonly OwnedBudget[]
  /** Policy for requests that cannot be counted. */
  readonly onStoreUnavailable: 'FailClosed' | 'LocalShare'
}

/** An amount per calendar window. */
export interface BudgetSpec extends BudgetRecord {
  /** Owner of this budget if it differs from the owner of the subject. */
  readonly whose?: LimitOwner | undefined
}

/** The part of a balance that a record has. The ledger counts the spend. */
export interface SubjectBalance {
  /** The sum of all credits, micro-units; undefined: the account is Unmetered, so that its spend is counted and nothing is refused. */
  readonly credits: SumHalves | undefined
}

/** An ApiKey with limits, or an Account. Objects with the same uid share one allowance, whichever Credential or process uses it. */
export interface LimitSubject {
  readonly uid: string
  readonly whose: LimitOwner
  readonly limits: Limits
  /** The owner of each limit; absent: `whose`. */
  readonly limitedBy?: Readonly<Partial<Record<keyof Limits, LimitOwner>>>
  readonly budgets: readonly BudgetSpec[]
  /** `LocalShare`: without the store, limit ÷ live processes. With several subjects the strictest policy applies. */
  readonly onStoreUnavailable: 'FailClosed' | 'LocalShare'
  /** Accounts only. */
  readonly balance?: SubjectBalance | undefined
}

/** The effective policy of a key. */
export interface EffectivePolicy extends SubjectPolicy {
  /** All lists must admit a model. */
  readonly models: KeyRecord['models']
}

const NO_LIMITS: Limits = {}

/**
 * Computes the effective policy of a key.
 * @param plan the plan of its account. A key with an account is always FailClosed: its share of an account cannot be known without Redis
 */
export function effective(key: KeyPolicy, plan?: PlanPolicy): EffectivePolicy {
  const { models = [], limits = NO_LIMITS, budgets, onStoreUnavailable = 'FailClosed' } = key
  if (!plan) return { models, limits, limitedBy: ownedBy('key', limits), budgets: owned('key', budgets), onStoreUnavailable }
  const granted = { ...plan.keyCeiling, ...plan.keyDefault, ...limits }
  const asked = { ...ownedBy('plan', granted), ...ownedBy('key', limits) }
  return {
    models: [...models, plan.models],
    ...smallest([granted, asked], [plan.keyCeiling ?? NO_LIMITS, ownedBy('plan', plan.keyCeiling ?? NO_LIMITS)]),
    budgets: [...owned('key', budgets), ...owned('plan', plan.keyBudgets)],
    onStoreUnavailable: 'FailClosed',
  }
}

/** Computes what all keys of an account share. @param plan undefined for an account without a plan */
export function sharedPolicy({ limits = NO_LIMITS, budgets }: AccountPolicy, plan: PlanPolicy | undefined): SubjectPolicy {
  const { accountLimits = NO_LIMITS, accountBudgets } = plan ?? {}
  return {
    ...smallest([limits, ownedBy('account', limits)], [accountLimits, ownedBy('plan', accountLimits)]),
    budgets: [...owned('account', budgets), ...owned('plan', accountBudgets)],
    onStoreUnavailable: 'FailClosed',
  }
}

/** @returns undefined for a record that was written before accounts had balances: nothing is counted then */
export function balanceOf({ balance }: Pick<AccountRecord, 'balance'>): SubjectBalance | undefined {
  if (balance === undefined) return undefined
  const credits = parseSum(balance.credits) ?? 0n // the record was checked; a wrong text would not admit a call
  return { credits: balance.billing === 'Prepaid' ? halvesOf(credits) : undefined }
}

/** Whether a policy limits anything. A balance is not a limit of a policy. */
export function isLimited({ limits, budgets }: SubjectPolicy): boolean {
  return limitNames(limits).length > 0 || budgets.length > 0
}

/** Whether budgets refuse models without a price. */
export function needsPrices(budgets: readonly BudgetRecord[]): boolean {
  return budgets.some(({ unit, onExceeded }) => unit === 'Currency' && onExceeded === 'Block')
}

/** Whether `wanted` refuses what `present` admits. */
export function tightens(present: EffectivePolicy, wanted: EffectivePolicy): boolean {
  return removesModels(present.models, wanted.models) || tightensLimits(present, wanted)
}

/** Whether an edit of a plan refuses what its keys and accounts could do before. */
export function tightensPlan(present: PlanPolicy, wanted: PlanPolicy): boolean {
  const key = (plan: PlanPolicy): EffectivePolicy => effective({ models: [] }, plan)
  return tightens(key(present), key(wanted)) || tightensLimits(sharedPolicy({}, present), sharedPolicy({}, wanted))
}

/** Whether `wanted` has a lower limit, or a tighter budget. */
export function tightensLimits(present: SubjectPolicy, wanted: SubjectPolicy): boolean {
  return (
    limitNames(wanted.limits).some((limit) => (wanted.limits[limit] ?? Infinity) < (present.limits[limit] ?? Infinity)) ||
    wanted.budgets.some((budget) => isTighter(present.budgets, budget)) ||
    (present.onStoreUnavailable === 'LocalShare' && wanted.onStoreUnavailable !== 'LocalShare')
  )
}

type OwnedLimits = readonly [limits: Limits, owners: SubjectPolicy['limitedBy']]

/** The smaller of two limits of each kind, with its owner. The first counts where both are the same. */
function smallest([limits, owners]: OwnedLimits, [others, otherOwners]: OwnedLimits): Pick<SubjectPolicy, 'limits' | 'limitedBy'> {
  const names = limitNames(others).filter((name) => (others[name] ?? Infinity) < (limits[name] ?? Infinity))
  const pick = <T>(from: Readonly<Partial<Record<keyof Limits, T>>>): Array<readonly [keyof Limits, T | undefined]> =>
    names.map((name) => [name, from[name]])
  return { limits: { ...limits, ...Object.fromEntries(pick(others)) }, limitedBy: { ...owners, ...Object.fromEntries(pick(otherOwners)) } }
}

function ownedBy(whose: LimitOwner, limits: Limits): SubjectPolicy['limitedBy'] {
  return Object.fromEntries(limitNames(limits).map((limit) => [limit, whose]))
}

/** Budgets of a plan have another name than budgets of keys and accounts, so that spend stays with its budget when the plan changes. */
function owned(whose: LimitOwner, budgets: readonly BudgetRecord[] = []): OwnedBudget[] {
  return budgets.map((budget) => ({ ...budget, ...(whose === 'plan' && { name: `plan/${budget.name}` }), whose }))
}

function limitNames(limits: Limits): ReadonlyArray<keyof Limits> {
  return (Object.keys(limits) as Array<keyof Limits>).filter((limit) => limits[limit] !== undefined)
}

function removesModels(present: KeyRecord['models'], wanted: KeyRecord['models']): boolean {
  const left = new Set(wanted.flat())
  return present.flat().some((model) => !left.has(model))
}

/** Whether a budget is tighter. A budget with another unit or window is another budget, so the amount alone does not decide. */
function isTighter(present: readonly BudgetRecord[], wanted: BudgetRecord): boolean {
  if (wanted.onExceeded === 'Audit') return false
  return !present.some((former) => isSameBudget(former, wanted) && former.onExceeded === 'Block' && former.amount <= wanted.amount)
}

function isSameBudget(a: BudgetRecord, b: BudgetRecord): boolean {
  return a.name === b.name && a.unit === b.unit && a.window === b.window && a.timeZone === b.timeZone
}
