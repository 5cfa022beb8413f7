/** What a chart of stacked bars shows: columns of time, each with a part of every series. Pure. */
import { sumOf } from '../micros.ts'

/** A bar: one day, week or month. */
export interface Column {
  /** Below the chart: `24 Nov`. */
  readonly label: string
  /** In the table and beside the pointer: `Tue 24 Nov`. */
  readonly name: string
}

export interface Series {
  readonly name: string
  /** The colour by number, from 1 to 7; `other` for what has no colour of its own. */
  readonly look: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 'other'
  /** One for each column; never negative. */
  readonly values: readonly bigint[]
}

export interface Stacks {
  /** The oldest first. */
  readonly columns: readonly Column[]
  /** From the bottom up. */
  readonly series: readonly Series[]
}

/** How the values are written. */
export interface Units {
  /** Head of the column of sums: `EUR`, `Tokens`. */
  readonly name: string
  /** In a legend: `€48.87`. */
  readonly text: (value: bigint) => string
  /** In the table: `48.87`. */
  readonly cell: (value: bigint) => string
  /** Beside the scale: `€2.50`. */
  readonly mark: (value: bigint) => string
}

const LOOKS = [1, 2, 3, 4, 5, 6, 7] as const

export function columnTotals({ columns, series }: Stacks): readonly bigint[] {
  return columns.map((_, index) => sumOf(series.map(({ values }) => values[index] ?? 0n)))
}

export function totalOf({ series }: Stacks): bigint {
  return sumOf(series.map(({ values }) => sumOf(values)))
}

/** The column with most in it. @returns undefined if all are empty */
export function highestColumn(stacks: Stacks): Column | undefined {
  const totals = columnTotals(stacks)
  const most = totals.reduce((found, total) => (total > found ? total : found), 0n)
  return most === 0n ? undefined : stacks.columns[totals.indexOf(most)]
}

/**
 * Series in their order by total, the largest first, so that colours stay while a column changes. From the eighth on they are one series.
 * @param values by id; '' for what belongs to no series of its own
 */
export function bySize(values: ReadonlyMap<string, readonly bigint[]>, nameOf: (id: string) => string): readonly Series[] {
  const own = [...values].filter(([id, amounts]) => id !== '' && sumOf(amounts) > 0n).toSorted(largestFirst)
  const rest = columnSums([values.get('') ?? [], ...own.slice(LOOKS.length).map(([, amounts]) => amounts)])
  return [
    ...own
      .slice(0, LOOKS.length)
      .map(([id, amounts], index): Series => ({ name: nameOf(id), values: amounts, look: LOOKS[index] ?? 'other' })),
    ...(sumOf(rest) > 0n ? [{ name: nameOf(''), values: rest, look: 'other' } as const] : []),
  ]
}

function largestFirst([id, amounts]: [string, readonly bigint[]], [otherID, others]: [string, readonly bigint[]]): number {
  const difference = sumOf(others) - sumOf(amounts)
  if (difference !== 0n) return difference > 0n ? 1 : -1
  return id < otherID ? -1 : 1
}

function columnSums(all: ReadonlyArray<readonly bigint[]>): readonly bigint[] {
  const length = Math.max(0, ...all.map((amounts) => amounts.length))
  return Array.from({ length }, (_, index) => sumOf(all.map((amounts) => amounts[index] ?? 0n)))
}
