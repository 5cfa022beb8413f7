/**
 * The columns of a chart of usage: days, or for 90 days weeks. The operator keeps the last 35 days apart and older ones as whole months, so an
 * answer about 90 days may have rows of months; then every column is a month, because a month beside a week would look like more use. Pure.
 */
import type { Column } from '../charts/stacks.ts'
import { type DayRange, dayName, daysAfter, daysOf, monthName, monthRange, monthsOf, shortDay, withYear } from '../days.ts'

export interface Period extends DayRange, Column {}

export type Unit = 'day' | 'week' | 'month'

/** A range of more days than this is shown by week. */
const MAX_DAYS = 31
const WEEK = 7
const MONTH_LENGTH = '2026-10'.length

/** Whether the row is of a whole month, and not of a day. */
export function isOfMonth({ day }: { readonly day: string }): boolean {
  return day.length === MONTH_LENGTH
}

/**
 * The rows that belong to a range. A month's row has only days that are older than what is kept by day, so no row of a month belongs to a
 * range that is shown by day.
 */
export function rowsIn<R extends { readonly day: string }>(rows: readonly R[], range: DayRange): readonly R[] {
  return daysOf(range).length > MAX_DAYS ? rows : rows.filter((row) => !isOfMonth(row))
}

export function unitOf(rows: ReadonlyArray<{ readonly day: string }>, range: DayRange): Unit {
  if (daysOf(range).length <= MAX_DAYS) return 'day'
  return rows.some(isOfMonth) ? 'month' : 'week'
}

/** Every period of the range, the oldest first. @param rows those of `rowsIn` */
export function periodsOf(rows: ReadonlyArray<{ readonly day: string }>, range: DayRange): readonly Period[] {
  switch (unitOf(rows, range)) {
    case 'day':
      return daysOf(range).map((day) => ({ from: day, to: day, label: shortDay(day), name: dayName(day) }))
    case 'week':
      return weeksOf(range)
    case 'month':
      return monthsOf(coveredRange(rows, range)).map((month) => monthPeriod(month, range.to))
  }
}

/** The days that the rows stand for: a month that is kept as a whole begins with its first day. */
export function coveredRange(rows: ReadonlyArray<{ readonly day: string }>, range: DayRange): DayRange {
  const first = rows.filter(isOfMonth).map(({ day }) => `${day}-01`)
  return { from: [range.from, ...first].toSorted()[0] ?? range.from, to: range.to }
}

/** In which period a row counts. @returns -1: in none */
export function periodIndex(periods: readonly Period[], row: { readonly day: string }): number {
  const day = isOfMonth(row) ? `${row.day}-01` : row.day
  return periods.findIndex(({ from, to }) => from <= day && day <= to)
}

/** Weeks that end with the last day, so that no last week is short; the first one may be. */
function weeksOf({ from, to }: DayRange): readonly Period[] {
  const weeks: Period[] = []
  for (let last = to; last >= from; last = daysAfter(last, -WEEK)) {
    const first = daysAfter(last, 1 - WEEK)
    const start = first < from ? from : first
    weeks.unshift({ from: start, to: last, label: shortDay(start), name: `${shortDay(start)} to ${shortDay(last)}` })
  }
  return weeks
}

function monthPeriod(month: string, last: string): Period {
  const { from, to } = monthRange(month)
  const name = withYear(monthName(month), month, last)
  return {
    from,
    to: to < last ? to : last,
    label: monthName(month).slice(0, 3),
    name: to <= last ? name : `${name} until ${shortDay(last)}`,
  }
}
