/** What one key has spent in the last 30 days, for its page. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Usage } from '../../server/page-data/usage.ts'
import { Chart } from '../charts/chart.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { PageSection } from '../components/page-section.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { daysUntil, utcDay } from '../days.ts'
import { moneyIn } from '../micros.ts'
import { useUsage } from '../money-queries.ts'
import { periodsOf, rowsIn } from './periods.ts'
import { rowsFor, stacksOf } from './usage-sums.ts'
import { chartSummary, coveredText, incompleteNote, unitsOf } from './usage-words.ts'

const DAYS = 30

interface KeyUsageProps {
  readonly id: string
  /** `Last used 21 Nov` */
  readonly lastUsed: string
}

export function KeyUsage({ id, lastUsed }: KeyUsageProps): ReactNode {
  const { data, error, isFetching, refetch } = useUsage(daysUntil(utcDay(new Date()), DAYS))
  const fact = (
    <>
      {lastUsed} · <Link href={`/usage?key=${encodeURIComponent(id)}`}>See usage</Link>
    </>
  )
  return (
    <PageSection title={`Spend, last ${DAYS} days`} fact={fact}>
      {data && <KeySpend usage={data} id={id} />}
      {!data && error && <LoadProblem what="The usage" error={error} isBusy={isFetching} again={() => void refetch()} />}
      {!data && !error && (
        <Loading>
          <Bar size="tall" />
        </Loading>
      )}
    </PageSection>
  )
}

export function KeySpend({ usage, id }: { readonly usage: Usage; readonly id: string }): ReactNode {
  const rows = rowsFor(rowsIn(usage.rows, usage), { key: id, model: '' })
  if (rows.length === 0) return <p className="small muted">No calls with this key in these {DAYS} days.</p>
  const stacks = stacksOf(rows, periodsOf(rows, usage), 'model')
  if (stacks.series.length === 0) return <p className="small muted">The calls with this key cost nothing: their models have no price.</p>
  const units = unitsOf('spend', moneyIn(usage.currency))
  const note = incompleteNote(usage.incomplete)
  return (
    <>
      <Chart
        stacks={stacks}
        units={units}
        summary={chartSummary('Spend per day', stacks, { units, range: coveredText(rows, usage) })}
        table={{ title: `Last ${DAYS} days as a table`, column: 'Day' }}
      />
      {note !== '' && <p className="small muted">{note}</p>}
    </>
  )
}
