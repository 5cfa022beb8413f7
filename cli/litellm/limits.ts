/** Converts limits and the budget of a LiteLLM key, whose numbers are text: no decimal passes through a float. Pure. */
import type { z } from 'zod'
import type { apiKeySpec } from '#api/apikey.ts'
import { toMicros } from '#api/decimal-amount.ts'
import { formatMicros, MAX_MICROS, microsOf } from '#contract/values/micros.ts'
import { type LimitFields, Refusal } from './read-keys.ts'

/** The part of a spec that says how much a key may use. */
export type LimitSpec = Pick<z.input<typeof apiKeySpec>, 'state' | 'limits' | 'budgets'>
type Budget = NonNullable<LimitSpec['budgets']>[number]
type Window = Budget['window']

/** Receives what the user should know about the key. */
export type Warn = (text: string) => void

const LIMITS = [
  ['rpm_limit', 'requestsPerMinute', 1_000_000_000],
  ['tpm_limit', 'tokensPerMinute', 1_000_000_000_000],
  ['max_parallel_requests', 'maxConcurrentRequests', 1_000_000],
] as const

/**
 * @param subtractSpend whether a budget that never resets gets only its rest
 * @throws Refusal for a limit that cannot be read: without the limit the key would be unlimited
 */
export function limitsOf(key: LimitFields, subtractSpend: boolean, warn: Warn): LimitSpec {
  const given = LIMITS.flatMap(([field, name, max]) => (key[field] === undefined ? [] : [{ field, name, max, count: countIn(key, field) }]))
  for (const { field, max, count } of given) if (count > max) warn(`${field} is above ${max}, the largest limit, and is lowered to it`)
  const { budget, zero } = moneyOf(key, subtractSpend, warn)
  const zeros = [...given.filter(({ count }) => count === 0).map(({ field }) => field), ...zero]
  const limits = given.filter(({ count }) => count > 0).map(({ name, max, count }) => [name, Math.min(count, max)] as const)
  return {
    state: isSuspended(key, zeros, warn) ? 'Suspended' : undefined,
    limits: limits.length > 0 ? Object.fromEntries(limits) : undefined,
    budgets: budget && [budget],
  }
}

/** The budget of a key. A budget of zero is none, since an ApiKey cannot have one: `zero` names it. */
function moneyOf(key: LimitFields, subtractSpend: boolean, warn: Warn): { readonly budget?: Budget; readonly zero: readonly string[] } {
  if (key.max_budget === undefined) return { zero: [] }
  const whole = amountOf(key.max_budget) ?? unusable('max_budget')
  const budget = budgetOf(key, whole, subtractSpend, warn)
  if (/[1-9]/.test(budget.amount)) return { budget, zero: [] }
  return { zero: [/[1-9]/.test(whole.text) ? 'the rest of max_budget' : 'max_budget'] }
}

/** @param zeros limits that let no request through */
function isSuspended({ blocked }: LimitFields, zeros: readonly string[], warn: Warn): boolean {
  if (blocked) warn('blocked in LiteLLM: the ApiKey is Suspended; set state: Active to let it work')
  for (const field of zeros) warn(`${field} is 0, which lets no request through: the ApiKey is Suspended`)
  return blocked || zeros.length > 0
}

function countIn(key: LimitFields, field: (typeof LIMITS)[number][0]): number {
  return countOf(key[field] ?? '') ?? unusable(field)
}

function unusable(field: string): never {
  throw new Refusal(`${field} is not a number that a limit can have`, 'correct the file, or create the ApiKey by hand')
}

function budgetOf(key: LimitFields, whole: Amount, subtractSpend: boolean, warn: Warn): Budget {
  const { window, note } = windowOf(key.budget_duration)
  const spent = amountOf(key.spend ?? '')?.text ?? '0'
  const isReduced = window === 'Lifetime' && subtractSpend && spent !== '0'
  const { text, change } = isReduced ? rest(whole.text, spent) : whole
  if (change !== undefined) warn(`max_budget cannot be written exactly and was ${change}`)
  if (note !== undefined) warn(note)
  if (/[1-9]/.test(spent)) warn(`spend: ${spent} ${spendNote(window, isReduced)}`)
  return { name: window.toLowerCase(), amount: text, unit: 'Currency', window }
}

function spendNote(window: Window, isReduced: boolean): string {
  if (window !== 'Lifetime')
    return 'of this window were spent in LiteLLM; the budget starts at zero now, and again at the end of the window'
  return isReduced
    ? 'were subtracted from the budget, which never resets'
    : 'were spent in LiteLLM, and the budget starts at zero; --subtract-spend writes the rest'
}

function rest(whole: string, spent: string): Amount {
  return { text: formatMicros(microsOf(toMicros(whole) - toMicros(spent)) ?? toMicros('0')) }
}

/** `_BUDGET_DURATION_WORD_ALIASES` in litellm/litellm_core_utils/duration_parser.py */
const WORDS: Readonly<Record<string, string>> = { hourly: '1h', daily: '24h', weekly: '7d', monthly: '30d' }
/** Durations that LiteLLM resets at midnight, on Monday and on the first (`get_next_standardized_reset_time` there). */
const CALENDAR: Readonly<Record<string, Window>> = { '1d': 'Day', '24h': 'Day', '7d': 'Week', '1w': 'Week', '30d': 'Month', '1mo': 'Month' }
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, mo: 2_592_000 }
/** In rising order. */
const LENGTHS: ReadonlyArray<readonly [Window, number]> = [
  ['Day', 86_400],
  ['Week', 604_800],
  ['Month', 2_419_200], // the shortest month: a window must not be shorter than the duration
]

/**
 * The calendar window of a `budget_duration`. A duration without its own window gets the next longer one: the key may then spend less than
 * before, never more. Without a `note`, LiteLLM resets at the same moments.
 */
function windowOf(duration: string | undefined): { readonly window: Window; readonly note?: string } {
  if (duration === undefined) return { window: 'Lifetime' }
  const text = WORDS[duration.trim().toLowerCase()] ?? duration.trim()
  const calendar = CALENDAR[text]
  if (calendar !== undefined) return { window: calendar }
  const seconds = secondsOf(text)
  if (seconds === undefined)
    return { window: 'Lifetime', note: `budget_duration ${JSON.stringify(text.slice(0, 16))} is not a duration; the budget never resets` }
  const window = LENGTHS.find(([, length]) => seconds <= length)?.[0] ?? 'Lifetime'
  const when = window === 'Lifetime' ? 'the budget never resets' : `the budget is per ${window.toLowerCase()}`
  return { window, note: `budget_duration ${text} has no calendar window, so ${when}: the key may spend less than before` }
}

function secondsOf(text: string): number | undefined {
  const [, count, unit = ''] = /^(\d+)(mo|[smhdw])$/.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * (SECONDS[unit] ?? 0)
}

const NUMBER = /^([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?$/
/** Decimals of an amount of money. */
const DECIMALS = 6

/** An amount of money as a manifest writes it. */
interface Amount {
  readonly text: string
  /** Undefined: exact. */
  readonly change?: 'rounded down' | 'lowered to the largest amount' | 'raised to zero'
}

/**
 * @param text a number as JSON, Python or PostgreSQL write it: `12.5`, `1e-05`, `100`
 * @returns undefined if it is not a number
 */
export function amountOf(text: string): Amount | undefined {
  const scaled = scaledBy(DECIMALS, text)
  if (scaled === undefined) return undefined
  if (scaled.isNegative) return { text: '0.00', change: 'raised to zero' }
  const micros = microsOf(Number(scaled.whole))
  if (micros === undefined) return { text: formatMicros(MAX_MICROS), change: 'lowered to the largest amount' }
  return { text: formatMicros(micros), ...(scaled.isExact ? {} : { change: 'rounded down' }) }
}

/** @returns a whole number of at least 0; undefined for any other text, and Infinity if the number is too large for JavaScript */
export function countOf(text: string): number | undefined {
  const scaled = scaledBy(0, text)
  if (scaled === undefined || scaled.isNegative || !scaled.isExact) return undefined
  return scaled.whole > Number.MAX_SAFE_INTEGER ? Infinity : Number(scaled.whole)
}

/** The absolute value, with so many decimals before the point and the others cut off. */
function scaledBy(
  decimals: number,
  text: string,
): { readonly isNegative: boolean; readonly whole: bigint; readonly isExact: boolean } | undefined {
  const [, sign, whole, fraction = '', exponent = '0'] = NUMBER.exec(text.trim()) ?? []
  if (whole === undefined) return undefined
  const digits = BigInt(whole + fraction)
  const shift = decimals + Number(exponent) - fraction.length
  const factor = 10n ** BigInt(Math.abs(shift))
  const isNegative = sign === '-' && digits > 0n
  return shift < 0
    ? { isNegative, whole: digits / factor, isExact: digits % factor === 0n }
    : { isNegative, whole: digits * factor, isExact: true }
}
