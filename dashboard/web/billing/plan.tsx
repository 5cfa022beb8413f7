/** The plan, as a tab of Billing: what keys may ask for, and the models with their prices. */
import type { ReactNode } from 'react'
import type { ModelView, PlanView } from '../../server/page-data/keys.ts'
import { Footnote } from '../components/footnote.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { PageSection } from '../components/page-section.tsx'
import { PageTabs } from '../components/page-tabs.tsx'
import { Page } from '../components/page.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { Source } from '../components/source.tsx'
import { Cell, RowHead, Table, TableRow } from '../components/table.tsx'
import { loadErrorOf } from '../load-error.ts'
import { useKeys, usePlan } from '../queries.ts'
import { BILLING_TABS } from './billing-tabs.ts'
import { contextWords, planRows, priceColumns, priceWords } from './plan-words.ts'

export function PlanPage(): ReactNode {
  const plan = usePlan()
  const { data, isFetching, refetch } = plan
  const error = loadErrorOf(plan)
  const used = useKeys().data?.used
  return (
    <Page name="Plan" heading="Billing">
      <PageTabs label="Billing" tabs={BILLING_TABS} />
      {error && <LoadProblem what="The plan" error={error} isBusy={isFetching} again={() => void refetch()} />}
      {data && <PlanOf plan={data} used={used} />}
      {!data && !error && (
        <Loading>
          <Bar />
          <Bar />
          <Bar size="short" />
        </Loading>
      )}
    </Page>
  )
}

/** @param used keys that count; undefined while that is not known */
export function PlanOf({ plan, used }: { readonly plan: PlanView; readonly used: number | undefined }): ReactNode {
  if (plan.most === undefined)
    return (
      <div className="banner warn" role="status">
        <div>
          <b>The plan {plan.name} does not exist</b>
          <p>Keys keep the limits that they have. Ask your administrator for a plan.</p>
        </div>
      </div>
    )
  return (
    <>
      <Limits plan={plan} used={used} />
      <Models models={plan.models} currency={plan.currency} />
      <Footnote>
        A call outside these models, or outside a key’s own list, answers 403. Prices are those of today; a call costs what held when the
        call began.
      </Footnote>
    </>
  )
}

function Limits({ plan, used }: { readonly plan: PlanView; readonly used: number | undefined }): ReactNode {
  const columns = ['Limit', 'For each key', 'If not set', 'All keys together'].map((title) => ({ title }))
  return (
    <PageSection title={plan.displayName ?? plan.name} fact="Set by your administrator">
      <Table label="Limits of the plan" columns={columns} look="stack">
        {planRows(plan, used).map(({ name, each, unset, shared, sharedOwner }) => (
          <TableRow key={name}>
            <RowHead>{name}</RowHead>
            <Cell label="For each key">{each}</Cell>
            <Cell label="If not set">{unset}</Cell>
            <Cell label="All keys together">
              {shared} {sharedOwner && <Source owner={sharedOwner} />}
            </Cell>
          </TableRow>
        ))}
      </Table>
    </PageSection>
  )
}

function Models({ models, currency }: { readonly models: readonly ModelView[]; readonly currency: string }): ReactNode {
  if (models.length === 0)
    return (
      <PageSection title="Models">
        <p className="muted">This plan has no model that your keys may call. Ask your administrator.</p>
      </PageSection>
    )
  const hasContexts = models.some(({ contextTokens }) => contextTokens !== undefined)
  const prices = priceColumns(models)
  const numbers = [...(hasContexts ? ['Context'] : []), ...prices.map(({ title }) => title)]
  const columns = [{ title: 'Model' }, ...numbers.map((title) => ({ title, isNumber: true }))]
  return (
    <PageSection title="Models" fact={`${currency} per million tokens`}>
      <Table label="Models" columns={columns} look="figures">
        {models.map(({ name, price, contextTokens }) => (
          <TableRow key={name}>
            <RowHead>{name}</RowHead>
            {hasContexts && <Cell isNumber>{contextWords(contextTokens)}</Cell>}
            {prices.map(({ title, amountOf }) => (
              <Cell isNumber key={title}>
                {priceWords(price && amountOf(price))}
              </Cell>
            ))}
          </TableRow>
        ))}
      </Table>
      {models.some(({ price }) => price === undefined) && (
        <p className="small muted">A model without prices cannot be called with a key that pays in advance.</p>
      )}
    </PageSection>
  )
}
