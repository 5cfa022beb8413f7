/** Usage: what was spent, on what, by which key, for 7, 30 or 90 days. The filters are in the URL. */
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Link, useLocation, useSearch } from 'wouter'
import type { Usage } from '../../server/page-data/usage.ts'
import { CsvLink } from '../components/csv-link.tsx'
import { Empty } from '../components/empty.tsx'
import { Bar, Loading } from '../components/loading.tsx'
import { Page } from '../components/page.tsx'
import { LoadProblem } from '../components/problem.tsx'
import { daysUntil, utcDay } from '../days.ts'
import { loadErrorOf } from '../load-error.ts'
import { useUsage } from '../money-queries.ts'
import { csvPath, type Filters, filtersOf, usagePath } from './filters.ts'
import { rowsIn } from './periods.ts'
import { UsageBudgets } from './usage-budgets.tsx'
import { UsageFilters } from './usage-filters.tsx'
import { UsageReport } from './usage-report.tsx'
import { rowsFor } from './usage-sums.ts'
import { LATE_NOTE } from './usage-words.ts'

export function UsagePage(): ReactNode {
  const filters = filtersOf(useSearch())
  const [, navigate] = useLocation()
  const range = daysUntil(utcDay(new Date()), filters.days)
  const usage = useUsage(range)
  const rows = usage.data?.rows ?? []
  const file = `usage-${range.from}-${range.to}.csv`
  return (
    <Page
      name="Usage"
      actions={rows.length === 0 ? undefined : <CsvLink path={csvPath(range, filters)} name={file} content="the usage" isButton />}
    >
      <UsageFilters filters={filters} rows={rows} onChange={(next) => navigate(usagePath(next))} />
      <UsageContent query={usage} filters={filters} />
    </Page>
  )
}

function UsageContent({ query, filters }: { readonly query: UseQueryResult<Usage>; readonly filters: Filters }): ReactNode {
  const { data, isFetching, refetch } = query
  const error = loadErrorOf(query)
  return (
    <>
      {error && <LoadProblem what="The usage" error={error} isBusy={isFetching} again={() => void refetch()} />}
      {data && <UsageOf usage={data} filters={filters} />}
      {!data && error && <UsageBudgets picked={filters.key} />}
      {!data && !error && (
        <Loading>
          <Bar size="tall" />
          <Bar />
          <Bar size="short" />
        </Loading>
      )}
    </>
  )
}

/** @param usage of the range of the filters, or of the former one while that is being read */
export function UsageOf({ usage, filters }: { readonly usage: Usage; readonly filters: Filters }): ReactNode {
  const inRange = rowsIn(usage.rows, usage)
  const rows = rowsFor(inRange, filters)
  if (inRange.length === 0)
    return (
      <Empty
        title={`No calls in these ${filters.days} days`}
        text={`${usage.isLate ? LATE_NOTE : 'The first call shows up here within ten seconds.'} Neither prompts nor answers are stored.`}
      >
        <Link className="button" href="/keys">
          Go to API Keys
        </Link>
      </Empty>
    )
  if (rows.length === 0)
    return (
      <Empty title="No calls with these filters" text="Other keys or models were used in this time." isPlain>
        <Link className="button" href={usagePath({ ...filters, key: '', model: '' })}>
          Show all
        </Link>
      </Empty>
    )
  return <UsageReport usage={usage} rows={rows} filters={filters} />
}
