/** Maps Account and Plan to the policy in their records. Pure. */
import type { AccountRecord } from '#contract/records/account-record.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import type { Account } from './account.ts'
import { budgetRecords, budgetsWithoutZone } from './key-policy.ts'
import type { BudgetSpec } from './limits.ts'
import type { Plan } from './plan.ts'

type AccountPolicy = Pick<AccountRecord, 'limits' | 'budgets'>
type PlanPolicy = Pick<PlanRecord, 'models' | 'keyDefault' | 'keyCeiling' | 'keyBudgets' | 'accountLimits' | 'accountBudgets'>

/** @param former the policy in effect, whose budgets stay while a time zone does not exist */
export function accountPolicy({ limits, budgets }: Account['spec'], former?: AccountPolicy): Required<AccountPolicy> {
  return { limits, budgets: budgetRecords(budgets, former?.budgets) }
}

/** @param former as for an account */
export function planPolicy({ models, perKey, perAccount }: Plan['spec'], former?: PlanPolicy): Required<PlanPolicy> {
  return {
    models,
    keyDefault: perKey?.limits?.default,
    keyCeiling: perKey?.limits?.ceiling,
    keyBudgets: budgetRecords(perKey?.budgets, former?.keyBudgets),
    accountLimits: perAccount?.limits,
    accountBudgets: budgetRecords(perAccount?.budgets, former?.accountBudgets),
  }
}

/** Budgets of a Plan with a time zone that does not exist, and their fields. */
export function planBudgetsWithoutZone({ perKey, perAccount }: Plan['spec']): ReadonlyArray<readonly [field: string, budget: BudgetSpec]> {
  return [
    ...budgetsWithoutZone({ budgets: perKey?.budgets }).map((budget) => [`spec.perKey.budgets[${budget.name}]`, budget] as const),
    ...budgetsWithoutZone({ budgets: perAccount?.budgets }).map((budget) => [`spec.perAccount.budgets[${budget.name}]`, budget] as const),
  ]
}
