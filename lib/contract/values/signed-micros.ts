/**
 * Signed money: amounts of credits in millionths of the currency, and their sums. Only this file turns text into signed money and casts to
 * `SignedMicros`, so that no product, quotient or parsed float can become an amount. A sum grows for years, so it is a bigint of micro-units,
 * and a decimal integer where it is stored.
 */
import { MAX_MICROS } from './micros.ts'

declare const SIGNED_MICROS: unique symbol

/** Micro-units of a currency with a sign: an integer from -`MAX_MICROS` to `MAX_MICROS`. Readers use it as a plain number. */
export type SignedMicros = number & { readonly [SIGNED_MICROS]: true }

/** A sum as two integers that a double holds exactly: `high` · 10^15 + `low`. A script without bigints decides with them. */
export interface SumHalves {
  /** The sum divided by 10^15, rounded down: a safe integer. */
  readonly high: number
  /** From 0 to 10^15 − 1. */
  readonly low: number
}

const DECIMALS = 6
const MICROS_PER_UNIT = 10 ** DECIMALS
const HALF = 10n ** 15n
/** No plus sign, no exponent, no leading zeros, no spaces. */
const AMOUNT = /^(-?)(0|[1-9]\d{0,8})(?:\.(\d{1,6}))?$/

const SUM_AMOUNT = /^(-?)(0|[1-9]\d{0,23})\.(\d{2,6})$/

/** Form of a stored sum: at most 30 digits, so that both of its halves are exact. 10^15 credits of the largest amount fit. */
export const SUM_TEXT = /^(?:0|-?[1-9]\d{0,29})$/

/**
 * Reads a decimal amount such as `25.00`, `-12.5` or `-0.000001`.
 * @returns undefined for anything else: a plus sign, a sign before zero, exponents, leading zeros, spaces, more than six decimals, 10^9 units
 * and more, `NaN`
 */
export function parseSignedAmount(text: string): SignedMicros | undefined {
  const [, sign, units, decimals = ''] = AMOUNT.exec(text) ?? []
  if (units === undefined) return undefined
  const micros = Number(units) * MICROS_PER_UNIT + Number(decimals.padEnd(DECIMALS, '0'))
  if (sign === '') return micros as SignedMicros
  return micros === 0 ? undefined : (-micros as SignedMicros)
}

/** Formats an amount so that `parseSignedAmount` reads the same one, in its shortest form: `25`, `-12.5`, `-0.000001`. */
export function formatSignedAmount(micros: SignedMicros): string {
  return formatUnits(BigInt(micros), 0)
}

/** Checks a stored count of micro-units. @returns undefined unless `value` is an integer from -`MAX_MICROS` to `MAX_MICROS` */
export function signedMicrosOf(value: unknown): SignedMicros | undefined {
  return Number.isInteger(value) && Math.abs(Number(value)) <= MAX_MICROS && !Object.is(value, -0) ? (value as SignedMicros) : undefined
}

/** Reads a stored sum. @returns micro-units; undefined for text that is not of the form `SUM_TEXT` */
export function parseSum(text: string): bigint | undefined {
  return SUM_TEXT.test(text) ? BigInt(text) : undefined
}

/** Formats a sum so that `parseSum` reads the same one: micro-units as a decimal integer. */
export function formatSum(sum: bigint): string {
  return sum.toString()
}

/** Formats a sum for people, in units of the currency: with two decimals (`-1234.50`), and more if they are not zero. */
export function formatSumAmount(sum: bigint): string {
  return formatUnits(sum, 2)
}

/** Reads what `formatSumAmount` writes. @returns micro-units; undefined for text of another form */
export function parseSumAmount(text: string): bigint | undefined {
  const [, sign = '', units, decimals = ''] = SUM_AMOUNT.exec(text) ?? []
  return units === undefined ? undefined : BigInt(`${sign}${units}${decimals.padEnd(DECIMALS, '0')}`)
}

/** Splits a sum into two exact numbers. @throws RangeError for a sum that `parseSum` would not read */
export function halvesOf(sum: bigint): SumHalves {
  if (!SUM_TEXT.test(sum.toString())) throw new RangeError('a sum of money has more than 30 digits')
  const low = ((sum % HALF) + HALF) % HALF
  return { high: Number((sum - low) / HALF), low: Number(low) }
}

/** Joins the halves of a sum. @throws RangeError for a half that is not an integer */
export function sumOfHalves({ high, low }: SumHalves): bigint {
  return BigInt(high) * HALF + BigInt(low)
}

/** @param decimals least number of decimals */
function formatUnits(micros: bigint, decimals: number): string {
  const digits = (micros < 0n ? -micros : micros).toString().padStart(DECIMALS + 1, '0')
  const fraction = digits.slice(-DECIMALS)
  const shown = fraction.slice(0, decimals) + fraction.slice(decimals).replace(/0+$/, '')
  return `${micros < 0n ? '-' : ''}${digits.slice(0, -DECIMALS)}${shown === '' ? '' : `.${shown}`}`
}
