/** Maps limits and budgets of a manifest to the record, and decides whether an edit restricts. Pure. */
import { isTimeZone } from '#contract/values/budget-window.ts'
import type { BudgetRecord, LimitedRecord, Limits } from '#contract/records/limits-record.ts'
import type { ApiKeySpec } from '#api/apikey.ts'
import { toMicros } from '#api/decimal-amount.ts'
import type { BudgetSpec } from '#api/limits.ts'

const DEFAULT_ZONE = 'UTC'

/** @returns budgets with a time zone that does not exist */
export function budgetsWithoutZone({ budgets = [] }: ApiKeySpec): readonly BudgetSpec[] {
  return budgets.filter(({ timeZone }) => timeZone !== undefined && !isTimeZone(timeZone))
}

/**
 * The fields of the record about limits. A window in a time zone that does not exist has no start, so all budgets then stay unchanged; the
 * operator applies the other fields of the manifest.
 * @param former the same fields of the present record
 */
export function limitedBy(spec: ApiKeySpec, former: LimitedRecord | undefined): Required<LimitedRecord> {
  const { limits, budgets = [], onStoreUnavailable } = spec
  const wanted = budgets.length === 0 ? undefined : budgets.map(budgetRecord).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return {
    limits,
    budgets: budgetsWithoutZone(spec).length > 0 ? former?.budgets : wanted,
    onStoreUnavailable: onStoreUnavailable === 'LocalShare' ? onStoreUnavailable : undefined,
  }
}

/** @returns whether `wanted` refuses what `present` admits */
export function tightens(present: LimitedRecord, wanted: LimitedRecord): boolean {
  return (
    lowers(present.limits, wanted.limits) ||
    (wanted.budgets ?? []).some((budget) => isTighter(present.budgets, budget)) ||
    (present.onStoreUnavailable === 'LocalShare' && wanted.onStoreUnavailable !== 'LocalShare')
  )
}

const LIMITS = ['requestsPerMinute', 'tokensPerMinute', 'maxConcurrentRequests'] as const satisfies readonly (keyof Limits)[]

function lowers(present: Limits = {}, wanted: Limits = {}): boolean {
  return LIMITS.some((limit) => (wanted[limit] ?? Infinity) < (present[limit] ?? Infinity))
}

/** Whether a budget is tighter. A budget with another unit or window is another budget, so the amount alone does not decide. */
function isTighter(present: readonly BudgetRecord[] = [], wanted: BudgetRecord): boolean {
  if (wanted.onExceeded === 'Audit') return false
  return !present.some((former) => isSameBudget(former, wanted) && former.onExceeded === 'Block' && former.amount <= wanted.amount)
}

function isSameBudget(a: BudgetRecord, b: BudgetRecord): boolean {
  return a.name === b.name && a.unit === b.unit && a.window === b.window && a.timeZone === b.timeZone
}

function budgetRecord({ name, amount, unit, window, timeZone = DEFAULT_ZONE, onExceeded }: BudgetSpec): BudgetRecord {
  return { name, unit, amount: amountOf(unit, amount), window, timeZone, onExceeded }
}

/** The amount in micro-units or tokens. The schema has checked the form. */
export function amountOf(unit: BudgetSpec['unit'], amount: string): number {
  return unit === 'Currency' ? toMicros(amount) : Number(amount)
}
