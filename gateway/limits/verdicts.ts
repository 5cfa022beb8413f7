import type { LimitOwner, Limits, LimitSubject, Need, RateState, RateStates, Refused, RefusedLimit, Unavailable } from './ledger.ts'
import type { Shortage } from './refusals.ts'
import type { SubjectBooks } from './subject-books.ts'

export interface NamedShortage {
  readonly subject: LimitSubject
  readonly shortage: Shortage
}

const RETRY_MS = 1_000

export function unavailable(reason: Unavailable['reason']): Unavailable {
  return { outcome: 'unavailable', reason, waitMs: RETRY_MS }
}

/** Refusals that neither time nor the store can change: no price for a budget in money, or more tokens than a whole minute allows. */
export function foreverRefused(subjects: readonly LimitSubject[], need: Need): Refused | undefined {
  for (const subject of subjects) {
    const unpriced = need.holdByUnit.Currency === undefined ? subject.budgets.find(isBlockingMoney) : undefined
    if (unpriced) return { ...never('unpriced', unpriced.whose ?? subject.whose), budget: unpriced.name }
  }
  const tooLarge = subjects.find(({ limits }) => (need.certainTokens ?? 0) > (limits.tokensPerMinute ?? Infinity))
  return tooLarge && never('tooLarge', ownerOf(tooLarge, 'tooLarge'))
}

function never(limit: RefusedLimit, whose: LimitOwner): Refused {
  return { outcome: 'refused', limit, whose, waitMs: 'never', rates: {} }
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
export function refusal(short: readonly NamedShortage[], rates: RateStates, now: number): Refused {
  const [first] = short.toSorted(
    (a, b) => RANK[a.shortage.limit] - RANK[b.shortage.limit] || compare(b.shortage.passesAt, a.shortage.passesAt),
  )
  if (!first) return { outcome: 'refused', limit: 'requests', whose: 'key', waitMs: 'never', rates }
  const { subject, shortage } = first
  const { limit, budget, passesAt } = shortage
  const waitMs = Number.isFinite(passesAt) ? Math.max(1, Math.ceil(passesAt - now)) : 'never'
  return { outcome: 'refused', limit, whose: ownerOf(subject, limit, budget), budget, waitMs, rates }
}

function compare(a: number, b: number): number {
  return a === b ? 0 : a - b
}

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

/** For headers: per kind, the limit nearest to exhaustion over all subjects. */
export function ratesOf(all: ReadonlyArray<{ readonly entry: { readonly books: SubjectBooks } }>, now: number): RateStates {
  let requests: RateState | undefined
  let tokens: RateState | undefined
  for (const { entry } of all) {
    const { books } = entry
    requests = nearer(requests, books.requests.state(now))
    tokens = nearer(tokens, books.tokens.state(now))
  }
  return { requests, tokens }
}

function nearer(a: RateState | undefined, b: RateState | undefined): RateState | undefined {
  if (!a || !b) return a ?? b
  return b.remaining < a.remaining ? b : a
}
