/** The spend of the last seven days. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Usage } from '../../server/page-data/usage.ts'
import { Chart } from '../charts/chart.tsx'
import type { Stacks } from '../charts/stacks.ts'
import { Footnote } from '../components/footnote.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { PageSection } from '../components/page-section.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { daysUntil, rangeText, utcDay, weekday } from '../days.ts'
import { moneyIn } from '../micros.ts'
import { useUsage } from '../money-queries.ts'
import { periodsOf, rowsIn } from '../usage/periods.ts'
import { stacksOf, totalsOf } from '../usage/usage-sums.ts'
import { asOfNote, chartSummary, incompleteNote, unitsOf } from '../usage/usage-words.ts'

const DAYS = 7

export function LastDays(): ReactNode {
  const { data, error, isFetching, refetch } = useUsage(daysUntil(utcDay(new Date()), DAYS))
  if (data !== undefined) return <LastDaysOf usage={data} />
  return (
    <PageSection title="Spend, last 7 days">
      {error && <LoadProblem what="The usage" error={error} isBusy={isFetching} again={() => void refetch()} />}
      {!error && (
        <Loading>
          <Bar size="tall" />
        </Loading>
      )}
    </PageSection>
  )
}

export function LastDaysOf({ usage }: { readonly usage: Usage }): ReactNode {
  const rows = rowsIn(usage.rows, usage)
  const units = unitsOf('spend', moneyIn(usage.currency))
  const stacks = spendStacks(rows, usage)
  const today = usage.to
  const fact = (
    <>
      {units.text(totalsOf(rows).spend)} · <Link href="/usage?days=7">See usage</Link>
    </>
  )
  const asOf = asOfNote(usage, today)
  return (
    <>
      <PageSection title="Spend, last 7 days" fact={fact}>
        <Chart
          stacks={stacks}
          units={units}
          summary={chartSummary('Spend per day', stacks, { units, range: rangeText(usage, today) })}
          table={{ title: 'Last 7 days as a table', column: 'Day' }}
          isShort
        />
      </PageSection>
      <Footnote>{['Days are UTC.', asOf, incompleteNote(usage.incomplete)].filter((note) => note !== '').join(' ')}</Footnote>
    </>
  )
}

/** One series, with the weekday below each bar. */
function spendStacks(rows: Usage['rows'], usage: Usage): Stacks {
  const periods = periodsOf(rows, usage).map((period) => ({ ...period, label: weekday(period.from) }))
  const { series } = stacksOf(rows, periods, 'model')
  const values = periods.map((_, index) => series.reduce((sum, each) => sum + (each.values[index] ?? 0n), 0n))
  return { columns: periods, series: [{ name: 'Spend', look: 1, values }] }
}
