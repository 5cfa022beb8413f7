/** Maps the policy of an ApiKey to the fields of its record: for every program that computes the effective policy of a manifest. Pure. */
import type { KeyRecord } from '#contract/records/key-record.ts'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import { isTimeZone } from '#contract/values/budget-window.ts'
import type { ApiKeySpec } from './apikey.ts'
import { toMicros } from './decimal-amount.ts'
import type { BudgetSpec } from './limits.ts'

/** The fields of a record about its policy. */
export type RecordPolicy = Pick<KeyRecord, 'models' | 'limits' | 'budgets' | 'onStoreUnavailable'>

/**
 * The fields of the record. A window in a time zone that does not exist has no start, so all budgets then stay unchanged; the other fields
 * of the manifest apply.
 * @param former budgets of the present record
 */
export function keyPolicy(spec: ApiKeySpec, former?: KeyRecord['budgets']): Required<RecordPolicy> {
  const { models, limits, budgets, onStoreUnavailable } = spec
  return {
    models: [models],
    limits,
    budgets: budgetRecords(budgets, former),
    onStoreUnavailable: onStoreUnavailable === 'LocalShare' ? onStoreUnavailable : undefined,
  }
}

/** The budgets of a record, sorted by name; the former ones if a time zone does not exist. */
export function budgetRecords(budgets: readonly BudgetSpec[] = [], former?: KeyRecord['budgets']): KeyRecord['budgets'] {
  if (budgets.length === 0) return undefined
  if (budgetsWithoutZone({ budgets }).length > 0) return former
  return budgets.map(budgetRecord).toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** @returns budgets with a time zone that does not exist */
export function budgetsWithoutZone({ budgets = [] }: { readonly budgets?: readonly BudgetSpec[] | undefined }): readonly BudgetSpec[] {
  return budgets.filter(({ timeZone }) => timeZone !== undefined && !isTimeZone(timeZone))
}

/** The amount in micro-units or tokens. The schema has checked the form. */
function budgetRecord(budget: BudgetSpec): BudgetRecord {
  const amount = budget.unit === 'Currency' ? toMicros(budget.amount) : Number(budget.amount)
  return { ...budget, amount, timeZone: budget.timeZone ?? 'UTC' }
}
