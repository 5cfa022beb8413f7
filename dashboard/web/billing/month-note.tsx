/** Below the spend of the month: the budget of the account for a month, if there is one, and how full the budget is. */
import type { ReactNode } from 'react'
import { Gauge } from '../components/gauge.tsx'
import { Source } from '../components/source.tsx'
import { money } from '../money.ts'
import { usePlan } from '../queries.ts'

export function MonthNote(): ReactNode {
  const plan = usePlan().data
  const budget = plan?.budgets.find(
    ({ isShared, isAudit, unit, window }) => isShared && !isAudit && unit === 'Currency' && window === 'Month',
  )
  if (budget === undefined) return null
  return (
    <>
      of {money(budget.amount, plan?.currency)} <Source owner={budget.owner} />
      <Gauge percent={budget.percent ?? 0} />
    </>
  )
}
