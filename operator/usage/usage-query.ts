/** Answers about the usage of one account: the question as a URL asks it, and the rows of the answer as JSON, CSV or a table. Pure. */
import { z } from 'zod'
import { formatMicros, MAX_MICROS, microsOf } from '#contract/values/micros.ts'
import { addCounts, NO_USAGE, USAGE_COLUMNS, type UsageCounts } from '#contract/usage/usage-report.ts'
import type { ClosedUsage, KeyNames, OpenUsage, UsageRows } from '../shards/usage-entry.ts'
import { dayOf, firstDayOf } from './usage-book.ts'

const GROUPS = ['day', 'model', 'key'] as const
export type UsageGroup = (typeof GROUPS)[number]

export interface UsageQuestion {
  /** First and last day, since 1970. */
  readonly from: number
  readonly to: number
  /** Rows with equal values of these are one row. */
  readonly by: readonly UsageGroup[]
}

/** One row. A month that is kept as a whole has its name as `day`, for example `2026-10`. */
export interface UsageLine {
  readonly day?: string
  /** `namespace/name` of the key, or its uid; '' for what found no room. */
  readonly key?: string
  readonly keyUID?: string
  /** '' for calls that were refused before their model was known, and for what found no room. */
  readonly model?: string
  readonly counts: UsageCounts
}

export interface UsageAnswer {
  readonly account: string
  readonly from: string
  readonly to: string
  /** When the counts were last read, RFC 3339; null: the account was never used. */
  readonly asOf: string | null
  /** Days of which up to 10 s of counts are lost, because Redis lost data. */
  readonly incomplete: readonly string[]
  /** Redis does not answer now, so newer counts are missing until it does. */
  readonly isLate?: true
  readonly rows: readonly Readonly<Record<string, string | number>>[]
}

const DAYS = 30
const DATE = /^\d{4}-\d{2}-\d{2}$/

const date = z
  .string()
  .refine((text) => DATE.test(text) && !Number.isNaN(Date.parse(text)), 'is not a day; write YYYY-MM-DD')
  .transform((text) => dayOf(Date.parse(text)))
const groups = z
  .string()
  .transform((text) => text.split(',').flatMap((each) => each.trim() || []))
  .pipe(z.array(z.enum(GROUPS, { error: 'lists something else than day, model and key' })))

/** @param nowMs ms since 1970 @returns the question, or why there is none */
export function questionOf(search: URLSearchParams, nowMs: number): UsageQuestion | string {
  const today = dayOf(nowMs)
  const read = z
    .strictObject({
      from: date.optional(),
      to: date.default(today),
      by: groups.default(['day', 'model', 'key']),
      format: z.string().optional(),
    })
    .safeParse(Object.fromEntries(search))
  if (!read.success) return read.error.issues.map(({ path, message }) => `${path.join('.') || 'a parameter'}: ${message}`).join('; ')
  const { to, by, from = to - DAYS + 1 } = read.data
  return from > to ? 'from: is after to' : { from, to, by }
}

export function answerOf(
  account: string,
  open: OpenUsage | undefined,
  closed: ClosedUsage | undefined,
  question: UsageQuestion,
): UsageAnswer {
  const { from, to } = question
  const incomplete = incompleteDays(open, closed).filter((day) => day >= from && day <= to)
  return {
    account,
    from: dayText(from),
    to: dayText(to),
    asOf: open === undefined || open.readMs === 0 ? null : new Date(open.readMs).toISOString(),
    incomplete: incomplete.map(dayText),
    rows: linesOf(open, closed, question).map(rowOf),
  }
}

/** Days for which the store has lost data, in order. */
export function incompleteDays(open: OpenUsage | undefined, closed: ClosedUsage | undefined): readonly number[] {
  return [...new Set([...(closed?.incomplete ?? []), ...(open?.incomplete ?? [])])].toSorted((a, b) => a - b)
}

/** Rows of one day or month; `label` is its name. */
export interface LabelledRows {
  readonly label: string
  readonly rows: UsageRows
}

function linesOf(open: OpenUsage | undefined, closed: ClosedUsage | undefined, question: UsageQuestion): readonly UsageLine[] {
  const names: KeyNames = new Map([...(closed?.keys ?? []), ...(open?.keys ?? [])])
  const lines = new Map<string, UsageLine>()
  for (const { label: day, rows } of askedPeriods(open, closed, question)) {
    for (const [keyUID, models] of rows) {
      const key = names.get(keyUID) ?? keyUID
      for (const [model, counts] of models) addLine(lines, { day, model, key, keyUID, counts }, question.by)
    }
  }
  return [...lines.values()]
}

function addLine(lines: Map<string, UsageLine>, { day, model, key, keyUID, counts }: Required<UsageLine>, by: readonly UsageGroup[]): void {
  const shown = {
    ...(by.includes('day') && { day }),
    ...(by.includes('model') && { model }),
    ...(by.includes('key') && { key, keyUID }),
  }
  const id = JSON.stringify(shown)
  lines.set(id, { ...shown, counts: addCounts(lines.get(id)?.counts ?? NO_USAGE, counts) })
}

/** Every day and month that is kept, in order. */
export function usagePeriods(open: OpenUsage | undefined, closed: ClosedUsage | undefined): readonly LabelledRows[] {
  return askedPeriods(open, closed, { from: 0, to: Infinity })
}

/** A month that is kept as a whole counts if a day of it is asked for. */
function askedPeriods(
  open: OpenUsage | undefined,
  closed: ClosedUsage | undefined,
  { from, to }: Pick<UsageQuestion, 'from' | 'to'>,
): readonly LabelledRows[] {
  const isAsked = (first: number, last: number): boolean => last >= from && first <= to
  const through = closed?.through ?? -1
  const openDays = sorted(open?.days).filter(([day]) => day > through)
  return [
    ...sorted(closed?.months)
      .filter(([month]) => isAsked(firstDayOf(month), firstDayOf(month + 1) - 1))
      .map(([month, rows]) => ({ label: monthText(month), rows })),
    ...[...sorted(closed?.days), ...openDays].filter(([day]) => isAsked(day, day)).map(([day, rows]) => ({ label: dayText(day), rows })),
  ]
}

function sorted(periods: ReadonlyMap<number, UsageRows> = new Map()): readonly (readonly [number, UsageRows])[] {
  return [...periods].toSorted(([a], [b]) => a - b)
}

/** One row of the answer. Money is a decimal number as text. */
function rowOf({ counts, ...shown }: UsageLine): Readonly<Record<string, string | number>> {
  const counted = USAGE_COLUMNS.map((column, at): readonly [string, string | number] => {
    const count = counts[at] ?? 0
    return column === 'costMicros' ? ['cost', formatMicros(microsOf(count) ?? MAX_MICROS)] : [column, count]
  })
  return { ...shown, ...Object.fromEntries(counted) }
}

/** Columns of an answer, in order. */
export function columnsOf(by: readonly UsageGroup[]): readonly string[] {
  const shown = GROUPS.filter((group) => by.includes(group)).flatMap((group) => (group === 'key' ? ['key', 'keyUID'] : [group]))
  return [...shown, ...USAGE_COLUMNS.map((column) => (column === 'costMicros' ? 'cost' : column))]
}

/** RFC 4180, with a header. A text that a spreadsheet would run as a formula gets an apostrophe in front. */
export function csvOf({ rows }: UsageAnswer, by: readonly UsageGroup[]): string {
  const columns = columnsOf(by)
  return [columns, ...rows.map((row) => columns.map((column) => cell(row[column])))].map((line) => `${line.join(',')}\r\n`).join('')
}

/** Writes a CSV cell: quotes the text where needed, and keeps spreadsheets from running the text as a formula. */
export function cell(value: string | number | undefined): string {
  const text = String(value ?? '')
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export function dayText(day: number): string {
  return new Date(day * 86_400_000).toISOString().slice(0, 10)
}

function monthText(month: number): string {
  return dayText(firstDayOf(month)).slice(0, 7)
}
