/** Admission without the store: up to this process's part of every limit, as far as this process knows the limit's state. */
import type { Times } from './budget-book.ts'
import type { NamedShortage } from './verdicts.ts'
import type { Demand, SubjectBooks } from './subject-books.ts'
import type { RateLease } from './rate-lease.ts'
import type { Shortage } from './refusals.ts'

/** Retry time of a client while permits or budgets are short, ms. */
const RETRY_MS = 1_000

/** The present time, and the inputs of this process's share of a limit. */
export interface LocalTerms extends Times {
  readonly live: number
  readonly windowMs: number
}

/** Limits whose part is used up. `unknown`: this process does not know the rest of a budget. */
export function localShortages(books: SubjectBooks, demand: Demand, terms: LocalTerms): NamedShortage[] | 'unknown' {
  if (books.canTake(demand, terms.now)) return []
  const { now, live, storeNow, windowMs } = terms
  if (books.budgets.some((book, at) => !book.canTakeLocal(demand.budgets[at] ?? 0, live, storeNow))) return 'unknown'
  const found = [rate(books.requests, demand.requests, terms), rate(books.tokens, demand.tokens, terms)]
  if (demand.permits > 0 && !books.permits.canTakeLocal(live, windowMs)) found.push(short('concurrency', now, RETRY_MS))
  return found.filter((shortage) => shortage !== undefined).map((shortage) => ({ subject: books.subject, shortage }))
}

function rate(lease: RateLease, amount: number, terms: LocalTerms): Shortage | undefined {
  if (amount === 0) return undefined
  const waitMs = lease.localWaitMs(amount, terms.now, terms)
  return waitMs > 0 ? short(lease.kind === 'r' ? 'requests' : 'tokens', terms.now, waitMs) : undefined
}

function short(limit: Shortage['limit'], now: number, waitMs: number): Shortage {
  return { limit, rest: 0, passesAt: now + waitMs, cachedUntil: now }
}
