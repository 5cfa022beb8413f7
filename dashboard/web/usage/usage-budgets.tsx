/** The budgets that count now: those that all keys share, and each key's own. They count in their own windows and not in the period above. */
import { type ReactNode, useState } from 'react'
import { Budget, Budgets } from '../components/budget.tsx'
import { PageSection } from '../components/page-section.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { loadErrorOf } from '../load-error.ts'
import { useKeys, usePlan } from '../queries.ts'
import { budgetsOf } from './budgets.ts'

/** More budgets than these are shown on demand: an account may have hundreds, and the fullest come first. */
const MAX_SHOWN = 12

/** @param picked id of a key; '' for all */
export function UsageBudgets({ picked }: { readonly picked: string }): ReactNode {
  const keys = useKeys()
  const plan = usePlan()
  const [isWhole, setIsWhole] = useState(false)
  const error = loadErrorOf(keys) ?? loadErrorOf(plan)
  const again = (): void => void Promise.all([keys.refetch(), plan.refetch()])
  if (keys.data === undefined || plan.data === undefined)
    return error && <LoadProblem what="The budgets" error={error} isBusy={keys.isFetching || plan.isFetching} again={again} />
  const budgets = budgetsOf(keys.data.keys, plan.data, picked)
  if (budgets.length === 0) return null
  const { currency } = plan.data
  return (
    <PageSection title="Budgets" fact="In their own windows, as of now">
      <Budgets>
        {(isWhole ? budgets : budgets.slice(0, MAX_SHOWN)).map(({ id, whose, budget }) => (
          <Budget whose={whose} budget={budget} currency={currency} key={id} />
        ))}
      </Budgets>
      {budgets.length > MAX_SHOWN && (
        <div className="actions">
          <button className="button" type="button" aria-expanded={isWhole} onClick={() => setIsWhole(!isWhole)}>
            {isWhole ? 'Show the fullest' : `Show all ${budgets.length} budgets`}
          </button>
        </div>
      )}
    </PageSection>
  )
}
