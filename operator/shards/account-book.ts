/**
 * Encodes the books of one account as one text in a sharded Secret. They belong to the name of the account, and outlive the object. Whose they
 * are and what was spent only grows, so two states are merged, and it does not matter how late, how often or in which order.
 */
import { z } from 'zod'
import { type AccountSpend, periodOf } from '#contract/ledger/account-spend.ts'
import { BALANCES_FEATURE, FORMAT, formatHead, parseFormat } from '#contract/records/format.ts'
import { formatSum, parseSum } from '#contract/values/signed-micros.ts'
import { recordCodec, type ShardCodec } from './shard-codec.ts'

/** The books of one account. Entries are shared: never change an entry, commit a new one. */
export interface AccountBook extends AccountSpend {
  /** Name of the account. */
  readonly name: string
  /** uid of the Account that the books belong to. */
  readonly owner: string
  /** How often the owner has changed. */
  readonly changes: number
}

/** Key of a part of the spend. Processes name themselves. */
export const SPENT_KEY = /^(?:0|[1-9]\d{0,14}):[\w./-]{1,128}$/

export const NO_SPEND: AccountSpend = { openFrom: 0, closedSpend: 0n, spent: new Map() }

const period = z.int().nonnegative()
const withName = z.object({ name: z.string().min(1).max(253) })
/** Books without spend have neither `T`, the first open period, nor `base`, the spend before, nor `c`, the spend by period and process. */
const wireBook = withName.extend({
  owner: z.string().min(1).max(128),
  k: z.int().nonnegative(),
  T: period.optional(),
  base: z
    .string()
    .regex(/^(?:0|[1-9]\d{0,29})$/)
    .optional(),
  c: z.record(z.string().regex(SPENT_KEY), z.int().positive()).optional(),
})

/** The codec of the Secrets `hg-balances-*`. Only operators read them, so the header needs only the operator's version. */
export function bookCodec(): ShardCodec<AccountBook> {
  return recordCodec<AccountBook>(
    { read: readBook, write: writeBook, merge: mergeBooks, idOf: ({ name }) => name, idIn: nameIn },
    () => FORMAT.writes,
  )
}

/** The books of two leaders are merged, never compared: the later owner counts, and everything that either knows of the spend. */
export function mergeBooks(mine: AccountBook, theirs: AccountBook): AccountBook {
  const { name, owner, changes } = mine.changes > theirs.changes ? mine : theirs
  return { name, owner, changes, ...mergeSpend(mine, theirs) }
}

/**
 * The later first open period counts, with its sum; of the open periods each part counts with its highest amount. What either side has for
 * an earlier period is in the sum.
 */
export function mergeSpend(mine: AccountSpend, theirs: AccountSpend): AccountSpend {
  const { openFrom, closedSpend } = isLater(mine, theirs) ? mine : theirs
  const spent = new Map<string, number>()
  for (const [key, amount] of [...mine.spent, ...theirs.spent])
    if (periodOf(key) >= openFrom) spent.set(key, Math.max(amount, spent.get(key) ?? 0))
  return { openFrom, closedSpend, spent: new Map([...spent].toSorted(([a], [b]) => (a < b ? -1 : 1))) }
}

function isLater(mine: AccountSpend, theirs: AccountSpend): boolean {
  return mine.openFrom > theirs.openFrom || (mine.openFrom === theirs.openFrom && mine.closedSpend > theirs.closedSpend)
}

/** Closes all periods before another first open one: their spend joins the sum. */
export function closePeriods({ openFrom, closedSpend, spent }: AccountSpend, before: number): AccountSpend {
  const closed = [...spent].filter(([key]) => periodOf(key) < before)
  const open = [...spent].filter(([key]) => periodOf(key) >= before)
  return { openFrom: Math.max(openFrom, before), closedSpend: closedSpend + sumOf(closed), spent: new Map(open) }
}

/** Micro-units. */
export function totalSpent({ closedSpend, spent }: AccountSpend): bigint {
  return closedSpend + sumOf(spent)
}

export function isSameSpend(a: AccountSpend, b: AccountSpend): boolean {
  const isSameSum = a.openFrom === b.openFrom && a.closedSpend === b.closedSpend && a.spent.size === b.spent.size
  return isSameSum && [...a.spent].every(([key, amount]) => b.spent.get(key) === amount)
}

/** Whether `some` lacks a part of what `all` knows. */
export function lacksSpend(some: AccountSpend, all: AccountSpend): boolean {
  return !isSameSpend(mergeSpend(some, all), mergeSpend(some, some))
}

/** @throws UnknownVersion for a text of another build; any other error means damage */
export function readBook(text: string): AccountBook {
  const { name, owner, k, T = 0, base = '0', c = {} } = wireBook.parse(parseFormat(text))
  return { name, owner, changes: k, openFrom: T, closedSpend: parseSum(base) ?? 0n, spent: new Map(Object.entries(c)) }
}

/**
 * Books with spend need a build that knows spend: an older one would drop it with the next change of the owner.
 * @returns text without a line break @throws ZodError for books that no reader could read
 */
export function writeBook({ name, owner, changes, openFrom, closedSpend, spent }: AccountBook): string {
  const spend = {
    ...(openFrom > 0 && { T: openFrom }),
    ...(closedSpend !== 0n && { base: formatSum(closedSpend) }),
    ...(spent.size > 0 && { c: Object.fromEntries(spent) }),
  }
  const needs = Object.keys(spend).length > 0 ? [BALANCES_FEATURE] : []
  return JSON.stringify({ ...formatHead(FORMAT.writes, needs), ...wireBook.parse({ name, owner, k: changes, ...spend }) })
}

function sumOf(parts: Iterable<readonly [key: string, amount: number]>): bigint {
  let sum = 0n
  for (const [, amount] of parts) sum += BigInt(amount)
  return sum
}

function nameIn(text: string): string | undefined {
  try {
    return withName.safeParse(JSON.parse(text)).data?.name
  } catch {
    return undefined // damage, which the caller reports
  }
}
