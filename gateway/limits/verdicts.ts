import type { LimitOwner, Limits, LimitSubject, Need, RateStates, Refused, RefusedLimit, Unavailable } from './ledger.ts'
import type { Shortage } from './refusals.ts'
import type { SubjectBooks } from './subject-books.ts'

const RETRY_MS = 1_000

/** The limits cannot be checked. */
export function unavailable(reason: Unavailable['reason']): Unavailable {
  return { outcome: 'unavailable', reason, waitMs: RETRY_MS }
}

/** Refusals that neither time nor the store can change: no price for a budget in money, or more tokens than a whole minute allows. */
export function foreverRefused(books: SubjectBooks, need: Need, now: number): Refused | undefined {
  const { budgets, limits } = books.subject
  const unpriced = need.holdByUnit.Currency === undefined ? budgets.find(isBlockingMoney)?.name : undefined
  if (unpriced !== undefined) return refused(books, { limit: 'unpriced', budget: unpriced, passesAt: Infinity }, now)
  if ((need.certainTokens ?? 0) <= (limits.tokensPerMinute ?? Infinity)) return undefined
  return refused(books, { limit: 'tooLarge', passesAt: Infinity }, now)
}

function isBlockingMoney({ unit, onExceeded }: LimitSubject['budgets'][number]): boolean {
  return unit === 'Currency' && onExceeded === 'Block'
}

/** Order of refusals: those that no retry helps against come before those that pass with time. */
const RANK: Readonly<Record<RefusedLimit, number>> = {
  unpriced: 0,
  tooLarge: 0,
  budgetSpent: 1,
  budgetHeld: 2,
  requests: 2,
  tokens: 2,
  concurrency: 2,
}

/** One refusal for all shortages: the first by rank, and among equals the one with the longest wait. */
export function refusal(books: SubjectBooks, short: readonly Shortage[], now: number): Refused {
  const [first] = short.toSorted((a, b) => RANK[a.limit] - RANK[b.limit] || compare(b.passesAt, a.passesAt))
  return refused(books, first ?? { limit: 'requests', passesAt: Infinity }, now)
}

function refused(books: SubjectBooks, { limit, budget, passesAt }: Pick<Shortage, 'limit' | 'budget' | 'passesAt'>, now: number): Refused {
  const waitMs = Number.isFinite(passesAt) ? Math.max(1, Math.ceil(passesAt - now)) : 'never'
  return { outcome: 'refused', limit, whose: ownerOf(books.subject, limit, budget), budget, waitMs, rates: ratesOf(books, now) }
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a - b
}

/** The limit of the subject that each refusal is about. */
const LIMIT_OF: Readonly<Partial<Record<RefusedLimit, keyof Limits>>> = {
  requests: 'requestsPerMinute',
  tokens: 'tokensPerMinute',
  tooLarge: 'tokensPerMinute',
  concurrency: 'maxConcurrentRequests',
}

function ownerOf(subject: LimitSubject, refused: RefusedLimit, budget?: string): LimitOwner {
  const limit = LIMIT_OF[refused]
  const ofLimit = limit === undefined ? undefined : subject.limitedBy?.[limit]
  return subject.budgets.find(({ name }) => name === budget)?.whose ?? ofLimit ?? subject.whose
}

/** The rates for headers. */
export function ratesOf({ requests, tokens }: SubjectBooks, now: number): RateStates {
  return { requests: requests.state(now), tokens: tokens.state(now) }
}
