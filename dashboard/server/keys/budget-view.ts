/** Budgets as pages show them. Pure. */
import type { UsageStatus } from '#api/limits.ts'
import { windowAt } from '#contract/values/budget-window.ts'
import { formatAmount } from '#contract/values/micros.ts'
import { rfc3339 } from '#contract/values/rfc3339.ts'
import type { OwnedBudget } from '#policy/effective.ts'
import type { BudgetView } from '../page-data/keys.ts'

export interface BudgetFacts {
  /** The uses of a status. */
  readonly usage: readonly UsageStatus[] | undefined
  readonly isShared: boolean
  readonly nowMs: number
}

export function budgetView(budget: OwnedBudget, { usage, isShared, nowMs }: BudgetFacts): BudgetView {
  const { name, unit, window, timeZone, amount, whose, onExceeded } = budget
  const { startMs, endMs } = windowAt(window, timeZone, nowMs)
  const entry = usage?.find((one) => one.budget === name)
  const isOfThisWindow = window === 'Lifetime' || Date.parse(entry?.windowStartTime ?? '') >= startMs
  return {
    name: name.replace(/^plan\//, ''),
    owner: whose,
    unit,
    window,
    amount: formatAmount(amount, unit),
    used: entry && (isOfThisWindow ? entry.used : formatAmount(0, unit)),
    percent: entry && (isOfThisWindow ? entry.percent : 0),
    resetsAt: endMs === Infinity ? undefined : rfc3339(endMs),
    timeZone,
    isAudit: onExceeded === 'Audit',
    isShared,
  }
}
