/** The words of the usage page. Pure. */
import type { Usage, UsageRow } from '../../server/page-data/usage.ts'
import { highestColumn, type Stacks, totalOf, type Units } from '../charts/stacks.ts'
import { shortCount } from '../counts.ts'
import { type DayRange, longDay, momentText, monthName, rangeText } from '../days.ts'
import { listed } from '../listed.ts'
import type { Money } from '../micros.ts'
import { whole } from '../money.ts'
import type { Filters } from './filters.ts'
import { coveredRange, isOfMonth, type Unit } from './periods.ts'
import type { Parts } from './usage-sums.ts'

export const LATE_NOTE = 'Newer calls are missing, because their counts cannot be read now.'
const SHOW: Readonly<Record<Filters['show'], string>> = { spend: 'Spend', tokens: 'Tokens', requests: 'Requests' }
const PARTS: Readonly<Record<Parts, string>> = { model: ', by model', key: ', by key', kind: '', outcome: ', by outcome' }
const COLUMN: Readonly<Record<Unit, string>> = { day: 'Day', week: 'Week', month: 'Month' }

/** `Spend per day` */
export function chartName(show: Filters['show'], unit: Unit): string {
  return `${SHOW[show]} per ${unit}`
}

/** `Spend per day, by model` */
export function chartTitle(show: Filters['show'], unit: Unit, parts: Parts): string {
  return `${chartName(show, unit)}${PARTS[parts]}`
}

/** Head of the first column of the table. */
export function columnTitle(unit: Unit): string {
  return COLUMN[unit]
}

/** `Spend per day, 26 October to 24 November: €120.61 in all, most on Thu 12 Nov. The table below has the figures.` */
export function chartSummary(name: string, stacks: Stacks, { units, range }: { readonly units: Units; readonly range: string }): string {
  const most = highestColumn(stacks)
  const peak = most === undefined ? '' : `, most on ${most.name}`
  return `${name}, ${range}: ${units.text(totalOf(stacks))} in all${peak}. The table below has the figures.`
}

export function unitsOf(show: Filters['show'], money: Money): Units {
  if (show === 'spend') return { name: money.currency, text: money.text, cell: money.cell, mark: money.exact }
  const count = (value: bigint): string => whole(String(value))
  const text = show === 'tokens' ? shortCount : count
  return { name: SHOW[show], text, cell: count, mark: shortCount }
}

/** The days that the figures stand for. */
export function coveredText(rows: readonly UsageRow[], range: DayRange): string {
  return rangeText(coveredRange(rows, range), range.to)
}

/** Why a range may have more days than were asked for. @returns '' if it has not */
export function monthsNote(rows: readonly UsageRow[]): string {
  const first = rows
    .filter(isOfMonth)
    .map(({ day }) => day)
    .toSorted()[0]
  return first === undefined ? '' : `Days older than five weeks are kept by month, so ${monthName(first)} counts from its first day.`
}

/** Says how old the figures are. @returns '' for an account that was never used */
export function asOfNote({ asOf, isLate = false }: Pick<Usage, 'asOf' | 'isLate'>, today: string): string {
  const moment = asOf === undefined ? '' : `As of ${momentText(asOf, today)}`
  if (isLate) return `${moment === '' ? '' : `${moment}. `}${LATE_NOTE}`
  return moment === '' ? '' : `${moment}; a call shows up within ten seconds.`
}

/** Names the days of which counts are lost. @returns '' if there is none */
export function incompleteNote(days: readonly string[]): string {
  if (days.length === 0) return ''
  return `Up to ten seconds of calls are missing on ${listed(days.map(longDay))}, because counts were lost before they were kept.`
}

/** What a row of models is called. */
export function modelName(model: string): string {
  return model === '' ? 'Other' : model
}
