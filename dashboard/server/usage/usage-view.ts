/** The usage of an account as the page shows it: the question in a URL, and the answer as JSON and CSV. Pure. */
import { Refused } from '../http/refused.ts'
import type { Usage, UsageRow } from '../page-data/usage.ts'
import { csvOf } from './csv.ts'
import type { OperatorUsageAnswer } from './operator-usage.ts'

export interface UsageQuestion {
  /** First and last UTC day, `2026-11-24`. */
  readonly from: string
  readonly to: string
  /** Rows of this key alone; undefined: all. */
  readonly key: string | undefined
  readonly model: string | undefined
}

/** How the keys of rows are named. */
export interface KeyNaming {
  /** Namespace of the keys that people make: their id is the name alone. */
  readonly namespace: string
  /** The name that the person gave; undefined for a key that is gone. */
  readonly keyName: (id: string) => string | undefined
}

const DAY_MS = 86_400_000
const USUAL_DAYS = 30
const MAX_DAYS = 90
const DAY = /^(?!0000)\d{4}-\d{2}-\d{2}$/
const MAX_FILTER = 512

/** @param nowMs ms since 1970 @throws Refused for days that are none, in the wrong order, or too many */
export function usageQuestion(query: URLSearchParams, nowMs: number): UsageQuestion {
  const to = dayIn(query, 'to') ?? Math.floor(nowMs / DAY_MS)
  const from = dayIn(query, 'from') ?? to - USUAL_DAYS + 1
  if (from > to) throw invalid('from', 'The first day is after the last one.')
  if (to - from >= MAX_DAYS) throw invalid('from', `Choose at most ${MAX_DAYS} days.`)
  return { from: textOf(from), to: textOf(to), key: filterIn(query, 'key'), model: filterIn(query, 'model') }
}

/** @returns days since 1970 */
function dayIn(query: URLSearchParams, name: 'from' | 'to'): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  const ms = DAY.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms) || textOf(ms / DAY_MS) !== text) throw invalid(name, 'Write a day as 2026-11-24.')
  return ms / DAY_MS
}

function filterIn(query: URLSearchParams, name: 'key' | 'model'): string | undefined {
  const text = query.get(name) ?? undefined
  if (text !== undefined && text.length > MAX_FILTER) throw invalid(name, 'This name is too long.')
  return text === '' ? undefined : text
}

function invalid(field: string, message: string): Refused {
  return new Refused('invalid', message, { fields: { [field]: message } })
}

function textOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}

export function usageOf(
  answer: OperatorUsageAnswer,
  { key, model }: Pick<UsageQuestion, 'key' | 'model'>,
  { currency, ...naming }: KeyNaming & { readonly currency: string },
): Usage {
  const { from, to, asOf, incomplete, isLate = false } = answer
  const rows = answer.rows.map((row) => rowOf(row, naming))
  return {
    from,
    to,
    ...(asOf === null ? {} : { asOf }),
    incomplete,
    ...(isLate ? { isLate } : {}),
    currency,
    rows: rows.filter((row) => (key === undefined || row.key === key) && (model === undefined || row.model === model)),
  }
}

function rowOf(row: OperatorUsageAnswer['rows'][number], { namespace, keyName }: KeyNaming): UsageRow {
  const { day, model, requests, failed, inputTokens, cachedInputTokens, outputTokens, cost, estimated } = row
  const isOwn = row.key.startsWith(`${namespace}/`)
  const key = isOwn ? row.key.slice(namespace.length + 1) : row.key
  const refusals = { model: row.refusedModel, rate: row.refusedRate, budget: row.refusedBudget, other: row.refusedOther }
  const refused = refusals.model + refusals.rate + refusals.budget + refusals.other
  const counts = { requests, failed, refused, refusals, inputTokens, cachedInputTokens, outputTokens, cost, estimated }
  return { day, model, key, keyName: (isOwn ? keyName(key) : undefined) ?? key, ...counts }
}

const COUNTS = ['requests', 'failed', 'refused', 'inputTokens', 'cachedInputTokens', 'outputTokens', 'cost', 'estimated'] as const

export function usageCsvOf({ rows, currency }: Usage): string {
  const lines = rows.map((row) => [row.day, row.model, row.key, row.keyName, ...COUNTS.map((count) => row[count]), currency])
  return csvOf(['day', 'model', 'key', 'keyName', ...COUNTS, 'currency'], lines)
}
