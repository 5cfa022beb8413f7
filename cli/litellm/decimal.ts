/** Decimal numbers as text, without floats. Pure. */

const NUMBER = /^([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?$/
/** Decimals of an amount of money. */
const DECIMALS = 6
/** The largest amount that a budget can have. */
const LARGEST = '999999999.999999'

/** An amount of money as a manifest writes it. */
export interface Amount {
  readonly text: string
  /** Undefined: exact. */
  readonly change?: 'rounded down' | 'lowered to the largest amount' | 'raised to zero'
}

/** Digits before and after the point, without leading zeros. */
interface Digits {
  readonly isNegative: boolean
  readonly whole: string
  readonly decimals: string
}

/**
 * @param text a number as JSON, Python or PostgreSQL write it: `12.5`, `1e-05`, `100`
 * @returns undefined if it is not a number
 */
export function amountOf(text: string): Amount | undefined {
  const digits = digitsOf(text)
  if (digits === undefined) return undefined
  const { isNegative, whole, decimals } = digits
  if (isNegative && /[1-9]/.test(whole + decimals)) return { text: '0.00', change: 'raised to zero' }
  if (whole.length > 9) return { text: LARGEST, change: 'lowered to the largest amount' }
  const kept = decimals.slice(0, DECIMALS)
  const isExact = !/[1-9]/.test(decimals.slice(DECIMALS))
  const amount = `${whole}.${kept.slice(0, 2).padEnd(2, '0')}${kept.slice(2).replace(/0+$/, '')}`
  return isExact ? { text: amount } : { text: amount, change: 'rounded down' }
}

/** @returns a whole number of at least 0; undefined for any other text, and Infinity if the number is too large for JavaScript */
export function countOf(text: string): number | undefined {
  const digits = digitsOf(text)
  if (digits === undefined || digits.isNegative || /[1-9]/.test(digits.decimals)) return undefined
  return digits.whole.length > 15 ? Infinity : Number(digits.whole)
}

function digitsOf(text: string): Digits | undefined {
  const [, sign, whole, decimals = '', exponent = '0'] = NUMBER.exec(text.trim()) ?? []
  if (whole === undefined) return undefined
  const shift = Number(exponent)
  const all = whole + decimals
  const point = whole.length + shift
  const padded = all.padStart(all.length + Math.max(0, 1 - point), '0').padEnd(Math.max(all.length, point), '0')
  const at = Math.max(1, point)
  return { isNegative: sign === '-', whole: padded.slice(0, at).replace(/^0+(?=\d)/, ''), decimals: padded.slice(at) }
}
