/** Which budgets the usage page shows, and in which order. Pure. */
import type { BudgetView, Keys, PlanView } from '../../server/page-data/keys.ts'

export interface WhoseBudget {
  readonly id: string
  /** `All keys`, or the name of the key. */
  readonly whose: string
  readonly budget: BudgetView
}

/** Keys in these states make no calls, so their budgets say nothing. */
const ENDED = new Set(['Revoked', 'Revoking', 'Expired'])

/** @param picked id of the only key to show, beside the budgets that count for all; '' for all keys @returns the fullest first, those of all keys before */
export function budgetsOf(keys: Keys['keys'], plan: Pick<PlanView, 'budgets'>, picked: string): readonly WhoseBudget[] {
  const shared = plan.budgets.filter(({ isShared }) => isShared).map((budget) => ({ id: `/${budget.name}`, whose: 'All keys', budget }))
  const own = keys
    .filter(({ id, state }) => (picked === '' ? !ENDED.has(state) : id === picked))
    .flatMap(({ id, name, budgets }) =>
      budgets.filter(({ isShared }) => !isShared).map((budget) => ({ id: `${id}/${budget.owner}/${budget.name}`, whose: name, budget })),
    )
  return [...shared, ...own.toSorted((a, b) => (b.budget.percent ?? 0) - (a.budget.percent ?? 0))]
}
