/** Limits and budgets of an ApiKey, from its manifest to its record, and whether an edit of them restricts. Pure. */
import { isTimeZone } from '../../gateway/shared/budget-window.ts'
import type { BudgetRecord, LimitedRecord, Limits } from '../../gateway/shared/limits-record.ts'
import type { ApiKeySpec } from '../api/apikey.ts'
import { toMicros } from '../api/decimal-amount.ts'
import type { BudgetSpec } from '../api/limits.ts'

const DEFAULT_ZONE = 'UTC'

/** @returns budgets of a manifest whose time zone does not exist */
export function budgetsWithoutZone({ budgets = [] }: ApiKeySpec): readonly BudgetSpec[] {
  return budgets.filter(({ timeZone }) => timeZone !== undefined && !isTimeZone(timeZone))
}

/**
 * What the record says about limits. A window in a time zone that does not exist has no beginning, so the budgets stay as they were then;
 * all else of the manifest is carried out.
 * @param former what the record said before
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

/** A budget of another unit or window counts something else; only the same one with as much money is not tighter. */
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

/** In micro-units or tokens. The schema has checked its form. */
export function amountOf(unit: BudgetSpec['unit'], amount: string): number {
  return unit === 'Currency' ? toMicros(amount) : Number(amount)
}
