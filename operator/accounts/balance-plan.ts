/** Decides what one read of the store says about the spend of one account. Pure. */
import type { AccountSpend, LedgerBalance } from '#contract/ledger/account-spend.ts'
import { closePeriods, isSameSpend, lacksSpend, mergeSpend, NO_SPEND, SPENT_KEY, totalSpent } from '../shards/account-book.ts'

/** Maximum number of parts of the spend of one account that are taken over: gateways name themselves, so their number must be bounded. */
const MAX_PARTS = 2_000
/** Maximum length of the names of these parts together, characters. Gateways have names of 20, and the accounts of a Secret share its room. */
const MAX_PART_NAMES = 65_536
/** Highest sum of closed periods, micro-units: with all spend to come, the books can still hold the sum in 30 digits. */
const MAX_CLOSED_SPEND = 10n ** 29n
/** Number of parts from which periods are closed early. Each start of a gateway is another process. */
const EARLY_FOLD_PARTS = 500
/** Sum of the open periods from which they are closed early, micro-units: the store refuses reports above twice as much. */
const EARLY_FOLD_ABOVE = 4_000_000_000_000_000
/** A call is charged at most this multiple of what it has held, so no account can spend more than this multiple of its credits. */
const MAX_BELIEVED = 4n

/**
 * The spend that the store has. A key that is not ready has reports alone: the sum of closed periods counts only with their number.
 * @returns undefined for a key that no Headgate program has written
 */
export function spendIn(read: LedgerBalance): AccountSpend | undefined {
  const { openFrom, closedSpend, spent } = read
  const isSound = [...spent].every(([key, amount]) => SPENT_KEY.test(key) && Number.isSafeInteger(amount) && amount >= 0)
  if (!isSound || closedSpend < 0n || closedSpend > MAX_CLOSED_SPEND) return undefined
  const known = { openFrom: openFrom ?? 0, closedSpend: openFrom === undefined ? 0n : closedSpend }
  return mergeSpend({ ...known, spent: largestParts([...spent].filter(([, amount]) => amount > 0)) }, NO_SPEND)
}

/** Keeps the largest parts if there are too many, or if their names are too long together. */
function largestParts(parts: ReadonlyArray<readonly [key: string, amount: number]>): ReadonlyMap<string, number> {
  if (parts.length <= MAX_PARTS && lengthOf(parts) <= MAX_PART_NAMES) return new Map(parts)
  const kept = parts.toSorted(([, a], [, b]) => b - a).slice(0, MAX_PARTS)
  let room = MAX_PART_NAMES - lengthOf(kept)
  while (room < 0) room += kept.pop()?.[0].length ?? -room
  return new Map(kept)
}

function lengthOf(parts: ReadonlyArray<readonly [key: string, amount: number]>): number {
  return parts.reduce((sum, [key]) => sum + key.length, 0)
}

/** Whether the store has exactly what the books have. */
export function isBooked({ openFrom, closedSpend, spent }: LedgerBalance, book: AccountSpend): boolean {
  return openFrom !== undefined && isSameSpend({ openFrom, closedSpend, spent }, book)
}

/** Whether the store has lost spend that is durable. That the books have closed a period which is open there is no loss. */
export function hasLostSpend(stored: AccountSpend, durable: AccountSpend): boolean {
  return lacksSpend(closePeriods(stored, durable.openFrom), durable)
}

/** The most that an account may have spent, micro-units. @param gross sum of its credits above 0 */
export function mostSpent(gross: bigint): bigint {
  return MAX_BELIEVED * gross
}

export interface Belief {
  /** What the books may know from now on. */
  readonly spend: AccountSpend
  /** Growth that is not believed, micro-units: more than the credits of the account could pay. */
  readonly heldBack: bigint
}

/**
 * What the books believe of the spend in the store. Small growth first: a forged count hides no other one.
 * @param limit the most that the account may have spent; undefined: nothing is held back
 * @returns undefined for a sum of closed periods that lacks spend of the books: no operator has written it
 */
export function believed(mine: AccountSpend, theirs: AccountSpend, limit: bigint | undefined): Belief | undefined {
  const merged = mergeSpend(mine, theirs)
  const [before, after] = [totalSpent(mine), totalSpent(merged)]
  if (after < before) return undefined
  if (limit === undefined || after <= limit || after === before) return { spend: merged, heldBack: 0n }
  const isOfOpenPeriods = merged.openFrom === mine.openFrom && merged.closedSpend === mine.closedSpend
  if (!isOfOpenPeriods) return { spend: mine, heldBack: after - before }
  const grown = [...merged.spent].map(([key, amount]) => ({ key, amount, by: amount - (mine.spent.get(key) ?? 0) }))
  const spent = new Map(mine.spent)
  let total = before
  for (const { key, amount, by } of grown.toSorted((a, b) => a.by - b.by)) {
    if (total + BigInt(by) > limit) break
    total += BigInt(by)
    spent.set(key, amount)
  }
  return { spend: mergeSpend(mine, { ...mine, spent }), heldBack: after - total }
}

/** A step of closing periods. `raise`: processes settle into another period from now on. `close`: no process reports the periods before. */
export type FoldStep = { readonly do: 'raise' | 'close'; readonly period: number } | undefined

/**
 * The order of the two steps loses no spend: reports of a period end in the store before its spend is read for the last time.
 * @param mine the books, with everything that the read has
 * @param isDue whether it is time to raise the period
 */
export function foldStep(mine: AccountSpend, { openFrom, period }: LedgerBalance, isDue: boolean): FoldStep {
  if (openFrom !== mine.openFrom) return undefined
  if (period > openFrom + 1) return { do: 'close', period: period - 1 }
  return isDue && mine.spent.size > 0 ? { do: 'raise', period: openFrom + 2 } : undefined
}

/** Whether the open periods have a sum so large, or so many parts, that they must be closed early. */
export function isNearlyFull({ spent }: AccountSpend): boolean {
  return spent.size > EARLY_FOLD_PARTS || [...spent.values()].reduce((sum, amount) => sum + amount, 0) > EARLY_FOLD_ABOVE
}
