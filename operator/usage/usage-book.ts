/**
 * The usage of one account: the days that are open, and those that are closed. Pure. Days and months are counted since 1970, UTC. Two days
 * are open, today and yesterday, since a report may be late; both change every few seconds while the account is in use. A closed day changes
 * no more, so it moves to the history, which is written once a day.
 */
import { addCounts, type DatedUsageRow, NO_USAGE, type TakenUsage, type UsageCounts } from '#contract/usage/usage-report.ts'
import type { ClosedUsage, KeyNames, OpenUsage, UsagePeriods, UsageRows } from '../shards/usage-entry.ts'

const DAY_MS = 86_400_000
/** Days that stay apart, today included. */
const KEPT_DAYS = 35
/** Months stay for this many days. */
const KEPT_MONTHS_DAYS = 400
/** Largest number of models of one key on one day. */
const MAX_MODELS = 32
/** Name under which further models are counted. No ServedModel has this name: it has a capital. */
export const OTHER_MODELS = 'Other'
/** Largest number of rows by key, model and day of one account. */
const MAX_ROWS = 20_000

export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

/** Month of a day. */
export function monthOf(day: number): number {
  const date = new Date(day * DAY_MS)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

/** First day of a month. */
export function firstDayOf(month: number): number {
  return dayOf(Date.UTC(1970 + Math.floor(month / 12), month % 12, 1))
}

export function noOpenUsage(name: string): OpenUsage {
  return { name, takes: 0, readMs: 0, incomplete: [], keys: new Map(), days: new Map() }
}

export function noClosedUsage(name: string): ClosedUsage {
  return { name, through: -1, incomplete: [], keys: new Map(), days: new Map(), months: new Map() }
}

/**
 * Adds what was taken from the store, or marks the day on which the store lost data. Clients other than gateways may have written the rows. A day
 * that has not begun would never close, so its rows count on today. Invented keys would fill the Secret, so rows of unknown keys count without a key.
 * @param closed the last closed day: later rows of it count on the day after
 * @param nameOf `namespace/name` of a key; undefined if the key is unknown
 */
export function withTaken(open: OpenUsage, taken: TakenUsage, closed: number, nameOf: (uid: string) => string | undefined): OpenUsage {
  const readMs = taken.nowMs
  if (taken.state !== 'rows') return { ...open, readMs, incomplete: [...new Set([...open.incomplete, dayOf(taken.nowMs)])] }
  const days = new Map([...open.days].map(([day, rows]) => [day, copied(rows)]))
  const keys = new Map(open.keys)
  const today = dayOf(taken.nowMs)
  let count = [...days.values()].reduce((sum, rows) => sum + sizeOf(rows), 0)
  for (const row of taken.rows) {
    const day = Math.max(Math.min(row.day, today), closed + 1)
    const rows = days.get(day) ?? new Map<string, Map<string, UsageCounts>>()
    days.set(day, rows)
    const name = row.key === '' ? undefined : (nameOf(row.key) ?? keys.get(row.key))
    if (name !== undefined) keys.set(row.key, name)
    if (add(rows, row, name !== undefined && count < MAX_ROWS)) count += 1
  }
  return { ...open, takes: taken.number, readMs, keys, days }
}

/** The days that may close. @param today by the clock of the store */
export function closableDays({ days }: OpenUsage, today: number): readonly number[] {
  return [...days.keys()].filter((day) => day < today - 1).toSorted((a, b) => a - b)
}

/** The history with these days. Days older than 35 days become part of their month; months older than 400 days are dropped. */
export function withClosed(history: ClosedUsage, open: OpenUsage, closing: readonly number[], today: number): ClosedUsage {
  const days = new Map(history.days)
  for (const day of closing) days.set(day, open.days.get(day) ?? new Map())
  const months = new Map([...history.months].filter(([month]) => firstDayOf(month + 1) > today - KEPT_MONTHS_DAYS))
  for (const [day, rows] of [...days]) {
    if (day > today - KEPT_DAYS) continue
    days.delete(day)
    const month = monthOf(day)
    months.set(month, merged(months.get(month), rows))
  }
  const incomplete = [...new Set([...history.incomplete, ...open.incomplete])].filter((day) => day > today - KEPT_MONTHS_DAYS)
  const through = Math.max(history.through, ...closing)
  const keys = used(new Map([...history.keys, ...open.keys]), [...days.values(), ...months.values()])
  return bounded({ name: history.name, through, incomplete, keys, days, months })
}

/** The open usage without the days that the history has. */
export function withoutClosed(open: OpenUsage, through: number): OpenUsage {
  const days = new Map([...open.days].filter(([day]) => day > through))
  return { ...open, days, keys: used(open.keys, [...days.values()]), incomplete: open.incomplete.filter((day) => day > through) }
}

/** The history with sums by day and month alone, for an account whose rows find no room. */
export function sumsOnly(history: ClosedUsage): ClosedUsage {
  const summed = (periods: UsagePeriods): UsagePeriods => new Map([...periods].map(([period, rows]) => [period, sumOf(rows)]))
  return { ...history, keys: new Map(), days: summed(history.days), months: summed(history.months) }
}

type Rows = Map<string, Map<string, UsageCounts>>

/** @returns whether the row is a new one */
function add(rows: Rows, { key, model, counts }: Omit<DatedUsageRow, 'day'>, hasRoom: boolean): boolean {
  const [ofKey, name] = placeOf(rows, key, model, hasRoom)
  const former = rows.get(ofKey) ?? new Map<string, UsageCounts>()
  rows.set(ofKey, former)
  const isNew = !former.has(name)
  former.set(name, addCounts(former.get(name) ?? NO_USAGE, counts))
  return isNew
}

function placeOf(rows: Rows, key: string, model: string, hasRoom: boolean): readonly [key: string, model: string] {
  const models = rows.get(key)
  if (models?.has(model)) return [key, model]
  if (models !== undefined && models.size >= MAX_MODELS) return [key, OTHER_MODELS]
  return hasRoom ? [key, model] : ['', '']
}

function merged(former: UsageRows | undefined, rows: UsageRows): UsageRows {
  const sum = copied(former ?? new Map<string, Map<string, UsageCounts>>())
  for (const [key, models] of rows) for (const [model, counts] of models) add(sum, { key, model, counts }, true)
  return sum
}

function copied(rows: UsageRows): Rows {
  return new Map([...rows].map(([key, models]) => [key, new Map(models)]))
}

function sumOf(rows: UsageRows): UsageRows {
  const sum: Rows = new Map()
  for (const models of rows.values()) for (const counts of models.values()) add(sum, { key: '', model: '', counts }, true)
  return sum
}

export function sizeOf(rows: UsageRows): number {
  return [...rows.values()].reduce((sum, models) => sum + models.size, 0)
}

/** Sums the oldest months and days until the rest is within the bound. */
function bounded(history: ClosedUsage): ClosedUsage {
  let size = [...history.days.values(), ...history.months.values()].reduce((sum, rows) => sum + sizeOf(rows), 0)
  if (size <= MAX_ROWS) return history
  const summed = (periods: UsagePeriods): UsagePeriods =>
    new Map(
      [...periods]
        .toSorted(([a], [b]) => a - b)
        .map(([period, rows]) => {
          if (size <= MAX_ROWS) return [period, rows]
          size -= sizeOf(rows) - 1
          return [period, sumOf(rows)]
        }),
    )
  return { ...history, months: summed(history.months), days: summed(history.days) }
}

/** The names of keys that have rows. */
function used(keys: KeyNames, periods: readonly UsageRows[]): KeyNames {
  return new Map([...keys].filter(([uid]) => periods.some((rows) => rows.has(uid))))
}
