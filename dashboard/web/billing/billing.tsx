/** Billing: the balance, the way to top up, and every movement. The plan is the second tab. */
import type { ReactNode } from 'react'
import { useSearch } from 'wouter'
import type { Billing, TopUpState } from '../../server/page-data/billing.ts'
import { Figure, Figures } from '../components/figures.tsx'
import { Footnote } from '../components/footnote.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { PageTabs } from '../components/page-tabs.tsx'
import { Page } from '../components/page.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { momentText, monthName, utcDay } from '../days.ts'
import { loadErrorOf } from '../load-error.ts'
import { microsOf, type Money, moneyIn, sumOf } from '../micros.ts'
import { useBilling, useTopUpState } from '../money-queries.ts'
import { incompleteNote } from '../usage/usage-words.ts'
import { paceWords, sinceWords } from './balance.ts'
import { BILLING_TABS } from './billing-tabs.ts'
import styles from './billing.module.css'
import { Ledger } from './ledger.tsx'
import { MonthNote } from './month-note.tsx'
import { TopUpPanel } from './top-up-panel.tsx'
import { isWaiting, paymentNotice, type Return, returnOf } from './top-up.ts'
import { UsedUpBanner } from './used-up-banner.tsx'

export function BillingPage(): ReactNode {
  const returned = returnOf(useSearch())
  const state = useTopUpState(returned?.session ?? '').data?.state
  const billing = useBilling((known) => isWaiting(known, returned, state))
  const { data, isFetching, refetch } = billing
  const error = loadErrorOf(billing)
  return (
    <Page name="Billing">
      <PageTabs label="Billing" tabs={BILLING_TABS} />
      {error && <LoadProblem what="The balance" error={error} isBusy={isFetching} again={() => void refetch()} />}
      {data && <BillingOf billing={data} returned={returned} state={state} />}
      {!data && !error && (
        <Loading>
          <Bar size="tall" />
          <Bar />
          <Bar size="short" />
        </Loading>
      )}
    </Page>
  )
}

interface BillingOfProps {
  readonly billing: Billing
  readonly returned: Return | undefined
  /** Of the payment from which the person comes. */
  readonly state: TopUpState['state'] | undefined
}

export function BillingOf({ billing, returned, state }: BillingOfProps): ReactNode {
  const money = moneyIn(billing.currency)
  const notice = paymentNotice(billing, { returned, state, money })
  return (
    <>
      {notice && (
        <div className={notice.look === 'info' ? 'banner' : `banner ${notice.look}`} role={notice.look === 'danger' ? 'alert' : 'status'}>
          <div>
            <b>{notice.title}</b>
            <p>{notice.text}</p>
          </div>
        </div>
      )}
      <UsedUpBanner billing={billing} />
      <div className={styles.split}>
        <BalanceFigures billing={billing} money={money} />
        {billing.isPrepaid && <TopUpPanel billing={billing} money={money} />}
      </div>
      <Ledger billing={billing} money={money} />
      <Footnote>
        {[
          `Amounts are in ${billing.currency}. Usage is one row a day, in UTC.`,
          `As of ${momentText(billing.asOf, utcDay(new Date()))}.`,
          incompleteNote(billing.incomplete),
        ]
          .filter((note) => note !== '')
          .join(' ')}
      </Footnote>
    </>
  )
}

function BalanceFigures({ billing, money }: { readonly billing: Billing; readonly money: Money }): ReactNode {
  const { isPrepaid, asOf, pending = [] } = billing
  const balance = microsOf(billing.balance)
  const onItsWay =
    pending.length === 0 ? '' : `${money.text(sumOf(pending.map(({ amount }) => microsOf(amount))))} pending, not counted yet.`
  const notes = isPrepaid
    ? [onItsWay, sinceWords(billing), paceWords(billing, asOf.slice(0, 10))]
    : ['Your calls do not depend on the balance: this account does not pay in advance.']
  return (
    <Figures isColumn>
      <Figure
        label="Balance"
        value={money.text(balance)}
        isNegative={isPrepaid && balance < 0n}
        note={notes.filter((note) => note !== '').join(' ')}
      />
      <Figure label={`Spent in ${monthName(asOf)}`} value={money.text(microsOf(billing.spentThisMonth))} note={<MonthNote />} />
    </Figures>
  )
}
