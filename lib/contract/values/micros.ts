/**
 * Money as integers: amounts, prices and costs in millionths of the currency. Only this file turns text into money and casts to `Micros`,
 * so that no product, quotient or parsed float can become an amount.
 */

declare const MICROS: unique symbol

/** Micro-units of a currency: an integer from 0 to `MAX_MICROS`. Readers use it as a plain number. */
export type Micros = number & { readonly [MICROS]: true }

/** Tokens of one kind and their price. */
export interface PricedTokens {
  /** Integer from 0 to 2^53 − 1. */
  readonly tokens: number
  /** Price of a million of them. */
  readonly perMillion: Micros
}

const DECIMALS = 6
const MICROS_PER_UNIT = 10 ** DECIMALS
const TOKENS_PER_PRICE = 1_000_000
/** Up to nine digits before the point: 10^9 units are 10^15 micro-units, which a double holds exactly. */
const AMOUNT = /^(0|[1-9]\d{0,8})(?:\.(\d{1,6}))?$/

/** One micro-unit below 10^9 units. No amount is larger, so a sum or a cost that stops here exceeds or uses up every budget. */
export const MAX_MICROS = (10 ** 15 - 1) as Micros

/**
 * Reads a decimal amount such as `25`, `25.00` or `0.000125`.
 * @returns undefined for anything else: signs, exponents, leading zeros, spaces, more than six decimals, 10^9 units and more, `NaN`
 */
export function parseMicros(text: string): Micros | undefined {
  const [, units, decimals = ''] = AMOUNT.exec(text) ?? []
  if (units === undefined) return undefined
  return (Number(units) * MICROS_PER_UNIT + Number(decimals.padEnd(DECIMALS, '0'))) as Micros
}

/** Formats an amount so that `parseMicros` reads the same one: with two decimals (`25.00`), and more if they are not zero. */
export function formatMicros(micros: Micros): string {
  const decimals = String(micros % MICROS_PER_UNIT).padStart(DECIMALS, '0')
  return `${Math.floor(micros / MICROS_PER_UNIT)}.${decimals.slice(0, 2)}${decimals.slice(2).replace(/0+$/, '')}`
}

/** Formats an amount of a budget: money as `formatMicros` does, tokens as a number. */
export function formatAmount(amount: number, unit: 'Currency' | 'Tokens'): string {
  return unit === 'Currency' ? formatMicros(microsOf(amount) ?? MAX_MICROS) : String(amount)
}

/** Checks a stored count of micro-units. @returns undefined unless `value` is an integer from 0 to `MAX_MICROS` */
export function microsOf(value: unknown): Micros | undefined {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_MICROS ? (value as Micros) : undefined
}

/**
 * Computes the cost of tokens of several kinds: the exact sum, rounded up once to the next micro-unit, at most `MAX_MICROS`.
 * @throws RangeError for a count that is negative or not an integer
 */
export function costOf(...parts: readonly PricedTokens[]): Micros {
  let sum = 0
  for (const { tokens, perMillion } of parts) {
    if (!Number.isInteger(tokens) || tokens < 0) throw new RangeError(`a count of tokens is negative or not an integer: ${tokens}`)
    sum += tokens * perMillion
  }
  if (!Number.isSafeInteger(sum)) return largeCostOf(parts)
  const rest = sum % TOKENS_PER_PRICE // exact: a rounded product or sum would have made this sum exceed 2^53
  return ((sum - rest) / TOKENS_PER_PRICE + (rest > 0 ? 1 : 0)) as Micros
}

/** As `costOf`, for sums above 2^53. It takes ten times as long; no request with real prices needs it. */
function largeCostOf(parts: readonly PricedTokens[]): Micros {
  const product = parts.reduce((sum, { tokens, perMillion }) => sum + BigInt(tokens) * BigInt(perMillion), 0n)
  const millions = BigInt(TOKENS_PER_PRICE)
  return Math.min(Number((product + millions - 1n) / millions), MAX_MICROS) as Micros
}
