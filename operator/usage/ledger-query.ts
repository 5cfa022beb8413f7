/**
 * The ledger of one account: every movement of its balance, as JSON and CSV. Pure. The books know the Credits and the whole spend; usage knows
 * the spend of days and months. One row has the difference, so the amounts of all rows add up to the balance exactly.
 */
import { USAGE_COLUMNS } from '#contract/usage/usage-report.ts'
import { formatSumAmount } from '#contract/values/signed-micros.ts'
import { totalSpent } from '../shards/account-book.ts'
import type { UsageRows } from '../shards/usage-entry.ts'
import type { AccountLedger } from './ledger-reader.ts'
import { cell, dayText, incompleteDays, usagePeriods } from './usage-query.ts'

/** Type of the rows that no Credit is. */
const SPEND = 'Spend'
/** Reference of the row whose spend belongs to no day or month that is kept. */
export const NOT_ITEMISED = 'earlier or not itemised'

/** One movement. */
export interface LedgerRow {
  /** Of a Credit RFC 3339; of spend a UTC day or month such as `2026-11-26` and `2026-10`; '' for spend that is not itemised. */
  readonly time: string
  /** Of a Credit its type, else Spend. */
  readonly type: string
  /** Name of the Credit; '' for spend. */
  readonly id: string
  readonly reference: string
  /** Decimal, with a sign if negative: what the movement adds to the balance. */
  readonly amount: string
}

export interface LedgerAnswer {
  readonly account: string
  readonly currency: string
  /** When the Secrets were read, RFC 3339. */
  readonly asOf: string
  /** Sum of all rows. */
  readonly balance: string
  /** Sum of the Credits, negative ones included. */
  readonly credits: string
  readonly spent: string
  /** UTC days whose spend is itemised in part, because Redis lost up to 10 s of counts. */
  readonly incomplete: readonly string[]
  readonly rows: readonly LedgerRow[]
}

interface Movement extends Omit<LedgerRow, 'amount'> {
  /** ms since 1970, for the order. */
  readonly atMs: number
  /** Micro-units. */
  readonly micros: bigint
}

const COST = USAGE_COLUMNS.indexOf('costMicros')
const COLUMNS = ['time', 'type', 'id', 'reference', 'amount'] as const

export interface LedgerFacts {
  readonly currency: string
  /** When the Secrets were read, ms since 1970. */
  readonly nowMs: number
}

/** @returns rows with the oldest first, and spend that is not itemised before them */
export function ledgerOf(account: string, ledger: AccountLedger, { currency, nowMs }: LedgerFacts): LedgerAnswer {
  const credits = creditsOf(ledger)
  const days = spendByPeriod(ledger)
  const spent = totalSpent(ledger.book)
  const rest = { time: '', type: SPEND, id: '', reference: NOT_ITEMISED, atMs: Number.NEGATIVE_INFINITY, micros: -spent - sumOf(days) }
  const movements = [...credits, ...days, rest].filter(({ micros }) => micros !== 0n).toSorted(byTime)
  return {
    account,
    currency,
    asOf: new Date(nowMs).toISOString(),
    balance: formatSumAmount(sumOf(credits) - spent),
    credits: formatSumAmount(sumOf(credits)),
    spent: formatSumAmount(spent),
    incomplete: incompleteDays(ledger.usage.open, ledger.usage.closed).map(dayText),
    rows: movements.map(({ time, type, id, reference, micros }) => ({ time, type, id, reference, amount: formatSumAmount(micros) })),
  }
}

/** @returns why a question cannot be answered; undefined: it can */
export function ledgerRefusal(search: URLSearchParams): string | undefined {
  const unknown = [...search.keys()].find((name) => name !== 'format')
  return unknown === undefined
    ? undefined
    : `${JSON.stringify(unknown.slice(0, 40))} is not a parameter of the ledger, which always has all movements`
}

/** RFC 4180, with a header. Amounts are numbers; other text that a spreadsheet would run as a formula gets an apostrophe in front. */
export function ledgerCsvOf({ rows }: LedgerAnswer): string {
  const lines = rows.map((row) => COLUMNS.map((column) => (column === 'amount' ? row.amount : cell(row[column]))))
  return [[...COLUMNS], ...lines].map((line) => `${line.join(',')}\r\n`).join('')
}

function creditsOf({ credits }: AccountLedger): readonly Movement[] {
  return credits.map(({ id, micros, type, time, reference }) => ({
    ...{ time, type, id, reference },
    atMs: msOf(time),
    micros: BigInt(micros),
  }))
}

/** Spend as negative amounts. */
function spendByPeriod({ usage: { open, closed } }: AccountLedger): readonly Movement[] {
  return usagePeriods(open, closed).map(({ label, rows }) => ({
    ...{ time: label, type: SPEND, id: '', reference: '' },
    atMs: msOf(label),
    micros: -costOf(rows),
  }))
}

function costOf(rows: UsageRows): bigint {
  let sum = 0n
  for (const models of rows.values()) for (const counts of models.values()) sum += BigInt(counts[COST] ?? 0)
  return sum
}

function sumOf(movements: readonly Movement[]): bigint {
  return movements.reduce((sum, { micros }) => sum + micros, 0n)
}

function byTime(a: Movement, b: Movement): number {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs ? -1 : 1
  if (a.id !== b.id) return a.id < b.id ? -1 : 1
  return a.time < b.time ? -1 : Number(a.time > b.time) // a month and its first day
}

/** A time that cannot be read sorts first: the amount counts all the same. */
function msOf(time: string): number {
  const ms = Date.parse(time)
  return Number.isNaN(ms) ? 0 : ms
}
