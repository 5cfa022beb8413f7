/**
 * Amounts of money as manifests and statuses write them. Inside, money is an integer of micro-units: millionths of the currency, and for a
 * price millionths per million tokens.
 */

/** At most 9 digits before the point and 6 behind it: below 10^15 micro-units, which doubles and Redis hold exactly. */
export const DECIMAL_AMOUNT = '^(0|[1-9][0-9]{0,8})([.][0-9]{1,6})?$'

/** Whole tokens, at least 1, at most 15 digits. */
export const TOKEN_AMOUNT = '^[1-9][0-9]{0,14}$'

const DECIMALS = 6

/**
 * Parses a decimal string into micro-units: `25.5` is 25500000.
 * @throws RangeError for text that is not of the form `DECIMAL_AMOUNT`
 */
export function toMicros(text: string): number {
  if (!new RegExp(DECIMAL_AMOUNT).test(text)) throw new RangeError(`${JSON.stringify(text.slice(0, 32))} is no amount of money`)
  const [whole = '', fraction = ''] = text.split('.')
  return Number(whole + fraction.padEnd(DECIMALS, '0'))
}

/** Writes micro-units (an integer, at least 0) as the shortest decimal string: 25500000 is `25.5`. */
export function fromMicros(micros: number): string {
  const digits = String(micros).padStart(DECIMALS + 1, '0')
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, '')
  return `${digits.slice(0, -DECIMALS)}${fraction === '' ? '' : `.${fraction}`}`
}
