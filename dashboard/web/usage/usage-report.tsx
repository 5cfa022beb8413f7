/** The usage of a period: figures, chart, tables, budgets. All from the same rows, so that the sums agree. */
import type { ReactNode } from 'react'
import type { Usage, UsageRow } from '../../server/page-data/usage.ts'
import { Chart } from '../charts/chart.tsx'
import { Figure, Figures } from '../components/figures.tsx'
import { Footnote } from '../components/footnote.tsx'
import { PageSection } from '../components/page-section.tsx'
import { share, shortCount } from '../counts.ts'
import { utcDay } from '../days.ts'
import { type Money, moneyIn } from '../micros.ts'
import { whole } from '../money.ts'
import type { Filters } from './filters.ts'
import { periodsOf, unitOf } from './periods.ts'
import { ModelTable, OutcomeTable } from './usage-tables.tsx'
import { UsageBudgets } from './usage-budgets.tsx'
import { partsOf, stacksOf, totalsOf, type UsageTotals } from './usage-sums.ts'
import {
  asOfNote,
  chartName,
  chartSummary,
  chartTitle,
  columnTitle,
  coveredText,
  incompleteNote,
  monthsNote,
  unitsOf,
} from './usage-words.ts'

interface UsageReportProps {
  readonly usage: Usage
  /** Of the period, filtered. */
  readonly rows: readonly UsageRow[]
  readonly filters: Filters
}

export function UsageReport({ usage, rows, filters }: UsageReportProps): ReactNode {
  const money = moneyIn(usage.currency)
  const totals = totalsOf(rows)
  return (
    <>
      <UsageFigures totals={totals} money={money} range={coveredText(rows, usage)} />
      <UsageChart usage={usage} rows={rows} filters={filters} money={money} />
      <ModelTable rows={rows} totals={totals} money={money} />
      <OutcomeTable rows={rows} totals={totals} />
      <UsageBudgets picked={filters.key} />
      <UsageNotes usage={usage} rows={rows} />
    </>
  )
}

function UsageFigures({
  totals,
  money,
  range,
}: {
  readonly totals: UsageTotals
  readonly money: Money
  readonly range: string
}): ReactNode {
  const { spend, calls, answered, input, cached, output, hasEstimates } = totals
  return (
    <Figures>
      <Figure label="Spend" value={`${hasEstimates ? '≈ ' : ''}${money.text(spend)}`} note={range} />
      <Figure label="Requests" value={whole(String(calls))} note={`${share(answered, calls, 1)} answered`} />
      <Figure
        label="Tokens"
        value={shortCount(input + output)}
        note={input === 0n ? '' : `${share(cached, input, 0)} of those read came from the cache`}
      />
    </Figures>
  )
}

function UsageChart({ usage, rows, filters, money }: UsageReportProps & { readonly money: Money }): ReactNode {
  const { show } = filters
  const parts = partsOf(filters)
  const unit = unitOf(rows, usage)
  const units = unitsOf(show, money)
  const stacks = stacksOf(rows, periodsOf(rows, usage), parts)
  const name = chartName(show, unit)
  return (
    <PageSection title={chartTitle(show, unit, parts)}>
      {stacks.series.length === 0 ? (
        <p className="muted">These calls cost nothing: their models have no price, or no model was called.</p>
      ) : (
        <Chart
          stacks={stacks}
          units={units}
          summary={chartSummary(name, stacks, { units, range: coveredText(rows, usage) })}
          table={{ title: `${name} as a table`, column: columnTitle(unit) }}
        />
      )}
    </PageSection>
  )
}

function UsageNotes({ usage, rows }: Pick<UsageReportProps, 'usage' | 'rows'>): ReactNode {
  const today = utcDay(new Date())
  const asOf = asOfNote(usage, today)
  const estimates = rows.some(({ estimated }) => estimated > 0) ? '≈ marks sums with an estimate in them.' : ''
  const notes = ['Days are UTC.', asOf, monthsNote(rows), incompleteNote(usage.incomplete), estimates]
  return (
    <Footnote>{[...notes, 'Neither prompts nor answers nor single calls are stored.'].filter((note) => note !== '').join(' ')}</Footnote>
  )
}
