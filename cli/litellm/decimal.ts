/** Decimal numbers as text, without floats. Pure. */
import { formatMicros, MAX_MICROS, microsOf } from '#contract/values/micros.ts'

const NUMBER = /^([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?$/
/** Decimals of an amount of money. */
const DECIMALS = 6

/** An amount of money as a manifest writes it. */
export interface Amount {
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
