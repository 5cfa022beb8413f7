/** The figures of the overview: balance, spend of the month, keys in use. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Billing } from '../../server/page-data/billing.ts'
import type { Keys, PlanView } from '../../server/page-data/keys.ts'
import { paceWords } from '../billing/balance.ts'
import { MonthNote } from '../billing/month-note.tsx'
import { keysWords } from '../billing/plan-words.ts'
import { Figure, Figures } from '../components/figures.tsx'
import { monthName } from '../days.ts'
import { microsOf, moneyIn } from '../micros.ts'
import { whole } from '../money.ts'

/** What is undefined could not be loaded; the rest is shown. */
interface OverviewFiguresProps {
  readonly billing: Billing | undefined
  readonly keys: Keys | undefined
  readonly plan: PlanView | undefined
}

export function OverviewFigures({ billing, keys, plan }: OverviewFiguresProps): ReactNode {
  return (
    <Figures>
      {billing && <BalanceFigure billing={billing} />}
      {billing && (
        <Figure
          label={`Spent in ${monthName(billing.asOf)}`}
          value={moneyIn(billing.currency).text(microsOf(billing.spentThisMonth))}
          note={<MonthNote />}
        />
      )}
      {keys && <KeysFigure keys={keys} plan={plan} />}
    </Figures>
  )
}

function BalanceFigure({ billing }: { readonly billing: Billing }): ReactNode {
  const { isPrepaid, asOf, payments } = billing
  const balance = microsOf(billing.balance)
  return (
    <Figure
      label="Balance"
      value={moneyIn(billing.currency).text(balance)}
      isNegative={isPrepaid && balance < 0n}
      note={
        <>
          {isPrepaid ? paceWords(billing, asOf.slice(0, 10)) : 'Your calls do not depend on the balance.'}{' '}
          <Link href="/billing">{isPrepaid && payments.provider === 'stripe' ? 'Top up' : 'See billing'}</Link>
        </>
      }
    />
  )
}

function KeysFigure({ keys, plan }: { readonly keys: Keys; readonly plan: PlanView | undefined }): ReactNode {
  const inUse = keys.keys.filter(({ state }) => state === 'Active' || state === 'Activating').length
  return (
    <Figure
      label="API keys in use"
      value={whole(inUse)}
      note={
        <>
          {keysWords(keys.used, keys.most)} in the{' '}
          <Link href="/billing/plan">{plan === undefined ? 'plan' : `${plan.displayName ?? plan.name} plan`}</Link>
        </>
      }
    />
  )
}
