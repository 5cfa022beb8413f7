/** Limits that are used up, as the store has answered, and the refusal of a request that needs more of them. */
import { NEVER, type BudgetReply, type LedgerAnswer, type LedgerCall } from '#contract/ledger/ledger-call.ts'
import { longestLeaseMs, MAX_AMOUNT, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import type { BudgetBook } from './budget-book.ts'
import type { LimitOwner, Limits, LimitSubject, Need, RateStates, Refused, RefusedLimit, Unavailable } from './ledger.ts'

/** A limit of which a request needs more than is left. */
export interface Shortage {
  readonly limit: RefusedLimit
  readonly whose: LimitOwner
  /** Name of the budget; absent for rates and permits. */
  readonly budget?: string
  readonly rest: number
  /** Monotonic ms at which the refused request would pass if it were alone; Infinity for never. */
  readonly passesAt: number
  /** Monotonic ms until which more than `rest` is refused without a call. */
  readonly cachedUntil: number
}

/** Others may return units of such a limit at any time. */
const SHORT_CACHE_MS = 250
const HELD_WAIT_MS = 1_000
const RETRY_MS = 1_000

interface Answered {
  readonly subject: LimitSubject
  readonly parts: Pick<LedgerCall, 'rates' | 'permits' | 'budgets'>
  /** Budgets of the rows of `parts.budgets`. */
  readonly books: readonly BudgetBook[]
  readonly answer: LedgerAnswer
  readonly timing: LedgerTiming
}

/** `r`, `t`, `permits`, or the id of a budget, and its shortage. */
type Named = readonly [limit: string, shortage: Shortage]

/** The shortages in an answer, by limit. @param now monotonic ms of the answer */
export function shortagesIn(answered: Answered, now: number): Named[] {
  return [...rateShortages(answered, now), ...permitShortage(answered, now), ...budgetShortages(answered, now)]
}

/** Requests come back after their minute, or with the unused lease of another process, after as long as a lease can live. */
function rateShortages({ subject, parts, answer, timing }: Answered, now: number): Named[] {
  return parts.rates.flatMap(({ kind }, index): Named[] => {
    const reply = answer.rates[index]
    if (!reply || reply.waitMs === 0) return []
    const isRequests = kind === 'r'
    const whose = ownerOf(subject, isRequests ? 'requestsPerMinute' : 'tokensPerMinute')
    const passesAt = reply.waitMs === NEVER ? Infinity : now + reply.waitMs
    const cachedUntil = Math.min(passesAt, now + (isRequests ? longestLeaseMs(timing) : SHORT_CACHE_MS))
    return [[kind, { limit: isRequests ? 'requests' : 'tokens', whose, rest: Math.max(0, reply.rest), passesAt, cachedUntil }]]
  })
}

function permitShortage({ subject, answer: { permits } }: Answered, now: number): Named[] {
  if (!permits || permits.waitMs === 0) return []
  const whose = ownerOf(subject, 'maxConcurrentRequests')
  const [rest, passesAt] = [Math.max(0, permits.rest), now + permits.waitMs]
  return [['permits', { limit: 'concurrency', whose, rest, passesAt, cachedUntil: now + SHORT_CACHE_MS }]]
}

function budgetShortages({ subject, parts, books, answer }: Answered, now: number): Named[] {
  return books.flatMap(({ id, spec }, index): Named[] => {
    const request = parts.budgets[index]
    const reply = answer.budgets[index]
    if (!request || !reply || reply.short === 'No') return []
    const endMs = request.windows.find(({ startMs }) => startMs === reply.startMs)?.endMs ?? 0
    const windowEnd = endMs === MAX_AMOUNT ? Infinity : now + endMs - answer.nowMs
    const rest = Math.max(0, spec.amount - reply.spent - reply.unsettled - reply.held)
    return [[id, { whose: spec.whose ?? subject.whose, budget: spec.name, rest, ...budgetTimes(reply, spec.amount, now, windowEnd) }]]
  })
}

/**
 * Only the end of the window restores a spent budget. A part of a held one may come back with a running request, and holds of a process
 * that seemed dead with the process.
 */
function budgetTimes(
  { short, spent }: BudgetReply,
  amount: number,
  now: number,
  windowEnd: number,
): Pick<Shortage, 'limit' | 'passesAt' | 'cachedUntil'> {
  const cachedUntil = Math.min(windowEnd, now + SHORT_CACHE_MS)
  if (short === 'Held') return { limit: 'budgetHeld', passesAt: now + HELD_WAIT_MS, cachedUntil }
  return { limit: 'budgetSpent', passesAt: windowEnd, cachedUntil: spent >= amount ? windowEnd : cachedUntil }
}

export function ownerOf({ limitedBy, whose }: LimitSubject, limit: keyof Limits): LimitOwner {
  return limitedBy?.[limit] ?? whose
}

export function unavailable(reason: Unavailable['reason']): Unavailable {
  return { outcome: 'unavailable', reason, waitMs: RETRY_MS }
}

/** Refusals that neither time nor the store can change: no price for a budget in money, or more tokens than a whole minute allows. */
export function foreverRefused(subjects: readonly LimitSubject[], need: Need, rates: () => RateStates): Refused | undefined {
  const never = { outcome: 'refused', waitMs: 'never' } as const
  for (const { budgets, whose } of subjects) {
    if (need.holdByUnit.Currency !== undefined) break
    const unpriced = budgets.find(({ unit, onExceeded }) => unit === 'Currency' && onExceeded === 'Block')
    if (unpriced) return { ...never, limit: 'unpriced', whose: unpriced.whose ?? whose, budget: unpriced.name, rates: rates() }
  }
  const short = subjects.find(({ limits }) => (need.certainTokens ?? 0) > (limits.tokensPerMinute ?? Infinity))
  return short && { ...never, limit: 'tooLarge', whose: ownerOf(short, 'tokensPerMinute'), rates: rates() }
}

/** One refusal for all shortages, of which there is at least one: a spent budget first, then the one with the longest wait. */
export function refusal(short: readonly Shortage[], rates: RateStates, now: number): Refused {
  const { limit, whose, budget, passesAt } = short.reduce((worst, one) => (isWorse(one, worst) ? one : worst))
  const waitMs = Number.isFinite(passesAt) ? Math.max(1, Math.ceil(passesAt - now)) : 'never'
  return { outcome: 'refused', limit, whose, budget, waitMs, rates }
}

/** No retry helps against a spent budget; every other shortage passes with time. */
function isWorse(one: Shortage, other: Shortage): boolean {
  const [isSpent, isOtherSpent] = [one.limit === 'budgetSpent', other.limit === 'budgetSpent']
  return isSpent === isOtherSpent ? one.passesAt > other.passesAt : isSpent
}
