/** Limits that are used up, as the store has answered, and the refusal of a request that needs more of them. */
import { NEVER, type LedgerAnswer, type LedgerCall } from '#contract/ledger/ledger-call.ts'
import { longestLeaseMs, MAX_AMOUNT, type LedgerTiming } from '#contract/ledger/ledger-layout.ts'
import type { BudgetBook } from './budget-book.ts'
import type {
  BudgetSpec,
  LimitOwner,
  Limits,
  LimitSubject,
  Need,
  RateStates,
  Refused,
  RefusedLimit,
  Shortage,
  Unavailable,
} from './ledger.ts'

/** A limit of which the store has had too little for a request. */
export interface KnownShortage {
  readonly limit: 'requests' | 'tokens' | 'concurrency' | 'budget' | 'balance'
  readonly whose: LimitOwner
  readonly budget?: BudgetSpec
  readonly rest: number
  /** `rest` and what running requests hold. */
  readonly unspent: number
  /** Monotonic ms at which the refused request would pass if it were alone, unless it needs more than `unspent`; Infinity for never. */
  readonly passesAt: number
  /** Monotonic ms at which the window of a budget ends; Infinity for never. */
  readonly endsAt?: number
  /** Monotonic ms until which more than `rest` is refused without a call. */
  readonly cachedUntil: number
}

/** A shortage, with its times in monotonic ms. */
export interface TimedShortage extends Shortage {
  /** When the request would pass if it were alone; Infinity for never. */
  readonly passesAt: number
  /** When the limit is whole again; undefined if that time is not known. */
  readonly resetsAt: number | undefined
}

/** Others may return units of such a limit at any time. */
const SHORT_CACHE_MS = 250
/** Only a credit restores a used-up balance, and a changed record ends this time at once. The operator may repair a damaged balance. */
const EXHAUSTED_CACHE_MS = 10_000
/** Retry time where only the end of other requests helps, or where Redis has to recover, ms. Clients give up after few short waits. */
export const RETRY_MS = 5_000

interface Answered {
  /** Monotonic ms. The store has answered between these times. */
  readonly sentAt: number
  readonly now: number
  readonly subject: LimitSubject
  readonly parts: Pick<LedgerCall, 'rates' | 'permits' | 'budgets' | 'balance'>
  /** Budgets of the rows of `parts.budgets`. */
  readonly books: readonly BudgetBook[]
  readonly answer: LedgerAnswer
  readonly timing: LedgerTiming
}

/** `r`, `t`, `permits`, `balance`, or the id of a budget, and its shortage. The id of a budget has colons. */
type Named = readonly [limit: string, shortage: KnownShortage]

/** The shortages in an answer, by limit. */
export function shortagesIn(answered: Answered): Named[] {
  const ofMoney = [...budgetShortages(answered), ...balanceShortage(answered)]
  return [...rateShortages(answered), ...permitShortage(answered), ...ofMoney]
}

/**
 * Requests come back after their minute, or with the unused lease of another process, after as long as a lease can live. The announced wait counts from
 * the answer. The cached refusal ends that wait after the call was sent: after a slow answer, a later end would refuse a retry at the announced time.
 */
function rateShortages({ subject, parts, answer, timing, sentAt, now }: Answered): Named[] {
  return parts.rates.flatMap(({ kind }, index): Named[] => {
    const reply = answer.rates[index]
    if (!reply || reply.waitMs === 0) return []
    const isRequests = kind === 'r'
    const whose = ownerOf(subject, isRequests ? 'requestsPerMinute' : 'tokensPerMinute')
    const waitMs = reply.waitMs === NEVER ? Infinity : reply.waitMs
    const cachedUntil = Math.min(sentAt + waitMs, now + (isRequests ? longestLeaseMs(timing) : SHORT_CACHE_MS))
    const rest = Math.max(0, reply.rest)
    return [[kind, { limit: isRequests ? 'requests' : 'tokens', whose, rest, unspent: rest, passesAt: now + waitMs, cachedUntil }]]
  })
}

function permitShortage({ subject, answer: { permits }, now }: Answered): Named[] {
  if (!permits || permits.waitMs === 0) return []
  const whose = ownerOf(subject, 'maxConcurrentRequests')
  const rest = Math.max(0, permits.rest)
  return [['permits', { limit: 'concurrency', whose, rest, unspent: rest, passesAt: now + RETRY_MS, cachedUntil: now + SHORT_CACHE_MS }]]
}

function budgetShortages({ subject, parts, books, answer, sentAt, now }: Answered): Named[] {
  return books.flatMap(({ id, spec }, index): Named[] => {
    const request = parts.budgets[index]
    const reply = answer.budgets[index]
    if (!request || !reply || reply.short === 'No') return []
    const endMs = request.windows.find(({ startMs }) => startMs === reply.startMs)?.endMs ?? 0
    const leftMs = endMs === MAX_AMOUNT ? Infinity : endMs - answer.nowMs
    const unspent = Math.max(0, spec.amount - reply.spent - reply.unsettled)
    const shortage: KnownShortage = {
      ...{ limit: 'budget', whose: spec.whose ?? subject.whose, budget: spec },
      ...{ rest: Math.max(0, unspent - reply.held), unspent, passesAt: now + RETRY_MS, endsAt: now + leftMs },
      cachedUntil: Math.min(sentAt + leftMs, reply.spent >= spec.amount ? Infinity : now + SHORT_CACHE_MS),
    }
    return [[id, shortage]]
  })
}

/** A call that has asked under other credits than the present ones shows no shortage: a credit may have arrived since. */
function balanceShortage({ subject: { whose, balance }, parts, answer, now }: Answered): Named[] {
  const reply = answer.balance
  if (!reply || reply.short === 'No' || parts.balance?.credits !== balance?.credits) return []
  const unspent = Math.max(0, reply.unspent)
  const rest = Math.max(0, unspent - reply.held)
  const cachedUntil = now + (reply.short === 'Exhausted' ? EXHAUSTED_CACHE_MS : SHORT_CACHE_MS)
  return [['balance', { limit: 'balance', whose, rest, unspent, passesAt: now + RETRY_MS, cachedUntil }]]
}

/**
 * The shortage of one request. Only the end of the window restores a spent budget. A part of a held one may come back with a running
 * request, and holds of a process that seemed dead with the process.
 * @param own units that this process has beside `rest`
 * @param resetsAt of a rate
 */
export function shortageOf(known: KnownShortage, needed: number, own: number, resetsAt: number | undefined): TimedShortage {
  const { limit, whose, rest, unspent, passesAt, budget, endsAt = Infinity } = known
  if (limit === 'balance') return shortageOfBalance(known, needed)
  if (limit !== 'budget') return { limit, whose, needed, left: rest + own, passesAt, resetsAt }
  const of = { whose, budget, needed, resetsAt: endsAt }
  if (unspent === 0) return { ...of, limit: 'budgetSpent', left: 0, passesAt: endsAt }
  if (needed > unspent) return { ...of, limit: 'budgetTooSmall', left: unspent, passesAt: endsAt }
  return { ...of, limit: 'budgetHeld', left: rest, passesAt: Math.min(passesAt, endsAt) }
}

/** Names no amount: several keys share the balance of an account. */
function shortageOfBalance({ whose, unspent, passesAt }: KnownShortage, needed: number): TimedShortage {
  const of = { whose, needed: undefined, left: undefined, resetsAt: undefined }
  if (unspent === 0) return { ...of, limit: 'balanceExhausted', passesAt: Infinity }
  if (needed > unspent) return { ...of, limit: 'balanceTooSmall', passesAt: Infinity }
  return { ...of, limit: 'balanceHeld', passesAt }
}

export function ownerOf({ limitedBy, whose }: LimitSubject, limit: keyof Limits): LimitOwner {
  return limitedBy?.[limit] ?? whose
}

export function unavailable(reason: Unavailable['reason']): Unavailable {
  return { outcome: 'unavailable', reason, waitMs: RETRY_MS }
}

/** Refusals that neither time nor the store can change: no price for a budget in money or a balance, or more tokens than a minute allows. */
export function foreverRefused(subjects: readonly LimitSubject[], need: Need, rates: () => RateStates): Refused | undefined {
  const never = { outcome: 'refused', waitMs: 'never', resetMs: undefined } as const
  for (const subject of subjects) {
    if (need.holdByUnit.Currency !== undefined) break
    const unpriced = moneyOf(subject)
    if (unpriced) return { ...never, ...unpriced, limit: 'unpriced', needed: undefined, left: undefined, rates: rates() }
  }
  const { certainTokens: needed = 0 } = need
  const short = subjects.find(({ limits }) => needed > (limits.tokensPerMinute ?? Infinity))
  if (!short) return undefined
  const whose = ownerOf(short, 'tokensPerMinute')
  return { ...never, limit: 'tooLarge', whose, needed, left: short.limits.tokensPerMinute, rates: rates() }
}

/** What of a subject needs the price of a model, and its owner. */
function moneyOf({ budgets, whose, balance }: LimitSubject): Pick<Shortage, 'whose' | 'budget'> | undefined {
  const budget = budgets.find(({ unit, onExceeded }) => unit === 'Currency' && onExceeded === 'Block')
  if (budget) return { whose: budget.whose ?? whose, budget }
  return balance?.credits && { whose }
}

/** One refusal for all shortages, of which there is at least one: money that no wait restores first, then the one with the longest wait. */
export function refusal(short: readonly TimedShortage[], rates: RateStates, now: number): Refused {
  const { passesAt, resetsAt, ...worst } = short.reduce((found, one) => (isWorse(one, found) ? one : found))
  const waitMs = Number.isFinite(passesAt) ? Math.max(1, Math.ceil(passesAt - now)) : 'never'
  const resetMs = resetsAt === undefined ? undefined : Math.max(0, resetsAt - now)
  return { outcome: 'refused', ...worst, waitMs, resetMs, rates }
}

/** No retry helps against a budget or a balance that is spent or too small; every other shortage passes with time. */
function isWorse(one: TimedShortage, other: TimedShortage): boolean {
  const [rank, otherRank] = [rankOf(one), rankOf(other)]
  return rank === otherRank ? one.passesAt > other.passesAt : rank > otherRank
}

const RANKS: Readonly<Partial<Record<RefusedLimit, number>>> = {
  ...{ balanceExhausted: 2, budgetSpent: 2 },
  ...{ balanceTooSmall: 1, budgetTooSmall: 1 },
}

function rankOf({ limit }: Shortage): number {
  return RANKS[limit] ?? 0
}
