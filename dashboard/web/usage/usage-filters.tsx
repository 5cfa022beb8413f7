/** The filters of usage. Period and measure are links, so that each has its address; key and model are lists. */
import { type ReactNode, useId } from 'react'
import { Link } from 'wouter'
import type { UsageRow } from '../../server/page-data/usage.ts'
import { Select } from '../components/select.tsx'
import { useKeys } from '../queries.ts'
import { type Filters, PERIODS, SHOWN, usagePath } from './filters.ts'
import styles from './usage-filters.module.css'
import { choices } from './usage-sums.ts'

interface UsageFiltersProps {
  readonly filters: Filters
  /** All rows of the period: the lists offer what was used. */
  readonly rows: readonly UsageRow[]
  readonly onChange: (filters: Filters) => void
}

const SHOW: Readonly<Record<Filters['show'], string>> = { spend: 'Spend', tokens: 'Tokens', requests: 'Requests' }

export function UsageFilters({ filters, rows, onChange }: UsageFiltersProps): ReactNode {
  const revoked = useRevokedKeys()
  const used = rows.map(({ key, keyName }): [string, string] => [key, revoked.has(key) ? `${keyName} (revoked)` : keyName])
  const keys = choices(used, filters.key)
  const models = choices(
    rows.map(({ model }) => [model, model]),
    filters.model,
  )
  const periods = PERIODS.map((days) => ({ text: `${days} days`, filters: { ...filters, days } }))
  const shown = SHOWN.map((show) => ({ text: SHOW[show], filters: { ...filters, show } }))
  return (
    <div className={styles.filters} role="search" aria-label="Filter usage">
      <Segments label="Period" filters={filters} segments={periods} />
      <Segments label="Show" filters={filters} segments={shown} />
      <List label="Key" all="All keys" value={filters.key} options={keys} onChange={(key) => onChange({ ...filters, key })} />
      <List label="Model" all="All models" value={filters.model} options={models} onChange={(model) => onChange({ ...filters, model })} />
    </div>
  )
}

/** Ids of revoked keys, of which the usage stays; none while the keys are not known. */
function useRevokedKeys(): ReadonlySet<string> {
  const keys = useKeys().data?.keys ?? []
  return new Set(keys.filter(({ wanted }) => wanted === 'Revoked').map(({ id }) => id))
}

interface SegmentsProps {
  readonly label: string
  readonly filters: Filters
  readonly segments: readonly { readonly text: string; readonly filters: Filters }[]
}

function Segments({ label, filters, segments }: SegmentsProps): ReactNode {
  const id = useId()
  return (
    <div className={`field ${styles.fixed}`}>
      <span className="label" id={id}>
        {label}
      </span>
      <div className={styles.segments} role="group" aria-labelledby={id}>
        {segments.map(({ text, filters: next }) => (
          <Link href={usagePath(next)} aria-current={usagePath(next) === usagePath(filters) ? 'true' : undefined} key={text}>
            {text}
          </Link>
        ))}
      </div>
    </div>
  )
}

interface ListProps {
  readonly label: string
  /** The first choice, which filters nothing. */
  readonly all: string
  readonly value: string
  readonly options: ReadonlyArray<readonly [string, string]>
  readonly onChange: (value: string) => void
}

function List({ label, all, value, options, onChange }: ListProps): ReactNode {
  const id = useId()
  const named = options.map(([each, text]) => ({ value: each, text }))
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <Select id={id} name={label.toLowerCase()} value={value} options={[{ value: '', text: all }, ...named]} onChange={onChange} />
    </div>
  )
}
