/** The error that a client reads when a limit refuses its call: row, words, `error.metadata` and rate headers. Pure. */
import { formatAmount } from '#contract/values/micros.ts'
import { type ErrorFormat, GatewayError, type RefusedLimitDetails, type RowID } from '../errors.ts'
import type { Refused, RefusedLimit } from './ledger.ts'
import { instant, rateHeaders } from './rate-headers.ts'

export interface RefusedRequest {
  readonly format: ErrorFormat
  /** As the client wrote it; undefined if the body was not read. */
  readonly model: string | undefined
}

interface Answer {
  readonly row: RowID
  readonly limit: RefusedLimitDetails['limit']
  /** Text for `<reason>` in the message of the row. */
  readonly reason?: (verdict: Refused, resetsAt: string | null) => string
}

const ANSWERS: Readonly<Record<RefusedLimit, Answer>> = {
  requests: { row: 'requestsLimited', limit: 'requests_per_minute' },
  tokens: { row: 'tokensLimited', limit: 'tokens_per_minute' },
  concurrency: { row: 'concurrencyLimited', limit: 'concurrent_requests' },
  budgetSpent: { row: 'budgetSpent', limit: 'budget', reason: renewal },
  budgetTooSmall: { row: 'budgetTooSmall', limit: 'budget', reason: rest },
  budgetHeld: { row: 'budgetHeld', limit: 'budget', reason: ({ whose, budget }) => `budget "${budget?.name}" of this ${whose}` },
  balanceExhausted: { row: 'balanceExhausted', limit: 'balance' },
  balanceTooSmall: { row: 'balanceTooSmall', limit: 'balance' },
  balanceHeld: { row: 'budgetHeld', limit: 'balance', reason: () => 'the balance of the account of this key' },
  unpriced: { row: 'noPrice', limit: 'budget' },
  tooLarge: { row: 'requestTooLarge', limit: 'tokens_per_minute' },
}

/** A balance also needs a price. */
const UNPRICED_BALANCE: Answer = { row: 'noPrice', limit: 'balance' }

/** Refusals without rate headers, because no wait ends them soon. */
const WITHOUT_RATES: ReadonlySet<RefusedLimit> = new Set<RefusedLimit>([
  'budgetSpent',
  'budgetTooSmall',
  'balanceExhausted',
  'balanceTooSmall',
  'unpriced',
])

/** @param nowMs ms since 1970 */
export function refusalAnswer(verdict: Refused, { model, format }: RefusedRequest, nowMs: number): GatewayError {
  const { limit, whose, budget, waitMs, resetMs = Infinity, rates } = verdict
  const { row, limit: kind, reason } = answerTo(verdict)
  const resetsAt = Number.isFinite(resetMs) ? endOf(nowMs + resetMs, budget !== undefined) : null
  const ms = waitMs === 'never' ? undefined : waitMs
  const wait = ms === undefined ? undefined : String(Math.ceil(ms / 100) / 10)
  const params = { model, whose, budget: budget?.name, wait, reason: reason?.(verdict, resetsAt) }
  const metadata: RefusedLimitDetails = {
    ...{ limit: kind, budget: budget?.name, unit: budget?.unit, owner: whose },
    ...{ needed: shown(verdict.needed, verdict), left: shown(verdict.left, verdict), resetsAt },
  }
  const headers = WITHOUT_RATES.has(limit) ? undefined : rateHeaders(rates, format, nowMs)
  return new GatewayError(row, params, { retryAfterMs: ms, metadata, headers })
}

/** A window of a budget ends at a whole second, from which the time between verdict and answer differs by a few ms. */
function endOf(ms: number, isWindow: boolean): string {
  return instant(isWindow ? Math.round(ms / 1_000) * 1_000 : ms)
}

function answerTo({ limit, budget }: Refused): Answer {
  return limit === 'unpriced' && !budget ? UNPRICED_BALANCE : ANSWERS[limit]
}

/** Money shows only where it is the key's own: several keys share the money of an account. */
function shown(units: number | undefined, { whose, budget }: Refused): number | string | null {
  if (units === undefined) return null
  if (budget?.unit !== 'Currency') return units
  return whose === 'key' ? formatAmount(units, 'Currency') : null
}

function renewal(_: Refused, resetsAt: string | null): string {
  return resetsAt === null ? '; this budget never resets; its amount must be raised' : `; its next window begins at ${resetsAt}`
}

function rest(verdict: Refused, resetsAt: string | null): string {
  const { whose, budget, needed = 0, left = 0 } = verdict
  const until = resetsAt === null ? '' : ` until ${resetsAt}`
  const remedy = '; lower max_tokens or shorten the prompt'
  const named = `budget "${budget?.name}" of this ${whose} has`
  if (budget?.unit !== 'Currency') return `${named} ${grouped(left)} tokens left${until}, and this call may use ${grouped(needed)}${remedy}`
  if (whose !== 'key') return `${named} less left${until} than this call may cost${remedy}`
  const [money, cost] = [left, needed].map((units) => formatAmount(units, 'Currency'))
  return `${named} ${money} left${until}, and this call may cost ${cost}${remedy}`
}

function grouped(amount: number): string {
  return amount.toLocaleString('en-US')
}
