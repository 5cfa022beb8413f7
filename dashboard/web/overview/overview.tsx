/** Overview: the steps to the first answer for a new account; then the balance, what needs attention, and the last days. */
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Billing } from '../../server/page-data/billing.ts'
import type { Keys, PlanView } from '../../server/page-data/keys.ts'
import type { Me } from '../../server/page-data/people.ts'
import { UsedUpBanner } from '../billing/used-up-banner.tsx'
import { LinkButton } from '../components/link-button.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { Page } from '../components/page.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { listed } from '../listed.ts'
import { loadErrorOf } from '../load-error.ts'
import { useBilling } from '../money-queries.ts'
import { useKeys, useMe, usePlan } from '../queries.ts'
import { AccountBanner } from './account-banner.tsx'
import { AttentionList } from './attention-list.tsx'
import { FirstSteps } from './first-steps.tsx'
import { LastDays } from './last-days.tsx'
import { OverviewFigures } from './overview-figures.tsx'
import { hasCalled } from './progress.ts'

export function Overview(): ReactNode {
  const me = useMe()
  if (me.data !== undefined) return <OverviewOf me={me.data} />
  return (
    <Page name="Overview">
      {me.error === null ? (
        <LoadingOverview />
      ) : (
        <LoadProblem what="Your account" error={me.error} isBusy={me.isFetching} again={() => void me.refetch()} />
      )}
    </Page>
  )
}

function OverviewOf({ me }: { readonly me: Me }): ReactNode {
  const billing = useBilling(isNew)
  const keys = useKeys(billing.data !== undefined && isNew(billing.data))
  const plan = usePlan()
  if (me.account.state === 'Suspended' || me.account.state === 'Closed')
    return (
      <Page name="Overview">
        <AccountBanner account={me.account} />
      </Page>
    )
  if (keys.data && billing.data && !hasCalled(billing.data, keys.data.keys))
    return <NewOverview me={me} keys={keys.data} billing={billing.data} plan={plan.data} />
  return <UsualOverview me={me} keys={keys} billing={billing} plan={plan} />
}

/** Whether the page waits for the first call: the steps tick soon after they were done. */
function isNew(billing: Billing): boolean {
  return !hasCalled(billing, [])
}

interface UsualOverviewProps {
  readonly me: Me
  readonly keys: UseQueryResult<Keys>
  readonly billing: UseQueryResult<Billing>
  readonly plan: UseQueryResult<PlanView>
}

function UsualOverview({ me, keys, billing, plan }: UsualOverviewProps): ReactNode {
  return (
    <Page name="Overview" actions={<LinkButton href="/keys?new" look="primary" text="New key" />}>
      <AccountBanner account={me.account} />
      {billing.data && (
        <UsedUpBanner billing={billing.data}>
          <TopUpLink billing={billing.data} />
        </UsedUpBanner>
      )}
      <QueryProblem queries={{ balance: billing, keys, plan }} />
      {billing.isPending || keys.isPending ? (
        <LoadingOverview />
      ) : (
        <OverviewFigures billing={billing.data} keys={keys.data} plan={plan.data} />
      )}
      {keys.data && plan.data && <AttentionList keys={keys.data} plan={plan.data} />}
      <LastDays />
    </Page>
  )
}

/** One banner for all that could not be loaded. What was loaded before stays below. @param queries by the noun of their data */
function QueryProblem({ queries }: { readonly queries: Readonly<Record<string, UseQueryResult<unknown>>> }): ReactNode {
  const failed = Object.entries(queries).filter(([, query]) => loadErrorOf(query) !== undefined)
  const error = failed[0]?.[1].error
  if (!error) return null
  const again = (): void => failed.forEach(([, { refetch }]) => void refetch())
  return (
    <LoadProblem
      what={capitalized(listed(failed.map(([noun]) => `the ${noun}`)))}
      error={error}
      isBusy={failed.some(([, { isFetching }]) => isFetching)}
      again={again}
    />
  )
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

interface NewOverviewProps {
  readonly me: Me
  readonly keys: Keys
  readonly billing: Billing
  readonly plan: PlanView | undefined
}

export function NewOverview({ me, keys, billing, plan }: NewOverviewProps): ReactNode {
  const lead = 'They tick by themselves, also when your administrator does one for you.'
  return (
    <Page name="Overview" heading={`${billing.isPrepaid ? 'Four' : 'Three'} steps to your first answer`} lead={lead} isNarrow>
      <AccountBanner account={me.account} />
      <FirstSteps me={me} keys={keys.keys} billing={billing} plan={plan} />
    </Page>
  )
}

function TopUpLink({ billing }: { readonly billing: Billing }): ReactNode {
  return (
    <Link className="button compact" href="/billing">
      {billing.payments.provider === 'stripe' ? 'Top up' : 'Go to Billing'}
    </Link>
  )
}

function LoadingOverview(): ReactNode {
  return (
    <Loading>
      <Bar size="tall" />
      <Bar />
      <Bar size="short" />
    </Loading>
  )
}
