/** A budget: whose it is, its bar, used of amount, and when it starts again. */
import type { ReactNode } from 'react'
import type { BudgetView } from '../../server/page-data/keys.ts'
import { budgetAmount, presentWindow, resetTime } from '../budget-words.ts'
import styles from './budget.module.css'
import { Gauge } from './gauge.tsx'
import { Source } from './source.tsx'

export function Budgets({ children }: { readonly children: ReactNode }): ReactNode {
  return <div className={styles.budgets}>{children}</div>
}

export interface BudgetProps {
  readonly budget: BudgetView
  /** Whose calls count; by default `This key` or `All keys`. */
  readonly whose?: string
  readonly currency: string | undefined
}

export function Budget({ budget, whose = budget.isShared ? 'All keys' : 'This key', currency }: BudgetProps): ReactNode {
  const { owner, used, amount, percent = 0, isAudit } = budget
  const reset = resetTime(budget)
  return (
    <div className={styles.budget}>
      <p>
        <b>
          {whose}, {presentWindow(budget, new Date())}
        </b>{' '}
        <Source owner={owner} />
      </p>
      <Gauge percent={percent} />
      <p className={styles.line}>
        <span className={styles.amounts}>
          {used === undefined ? 'Not known yet' : budgetAmount(budget, used, currency)}{' '}
          <span className="muted">of {budgetAmount(budget, amount, currency)}</span>
        </span>
        <span className={styles.reset}>{reset === undefined ? 'Never starts again' : `Resets ${reset}`}</span>
      </p>
      {isAudit && <p className={styles.reset}>Only watched: no call is refused for this budget.</p>}
    </div>
  )
}
