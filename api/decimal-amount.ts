/**
 * Amounts of money and of tokens as manifests write them. The programs hold money as `Micros`: millionths of the currency, and for a price
 * millionths per million tokens.
 */
import { type Micros, parseMicros } from '#contract/values/micros.ts'

/** The form that `parseMicros` reads: at most 9 digits before the point and 6 after it. */
export const DECIMAL_AMOUNT = '^(0|[1-9][0-9]{0,8})([.][0-9]{1,6})?$'

/** Amounts of this form that are zero. */
export const ZERO_AMOUNT = '^0([.]0+)?$'

/** Pattern of a signed amount. `parseSignedAmount` reads the same texts, except zero with a sign. */
export const SIGNED_AMOUNT = '^-?(0|[1-9][0-9]{0,8})([.][0-9]{1,6})?$'

/** Whole tokens, at least 1, at most 15 digits. */
export const TOKEN_AMOUNT = '^[1-9][0-9]{0,14}$'

/**
 * Reads an amount whose form the schema has checked.
 * @throws RangeError for text that is not of the form `DECIMAL_AMOUNT`
 */
export function toMicros(text: string): Micros {
  const micros = parseMicros(text)
  if (micros === undefined) throw new RangeError(`${JSON.stringify(text.slice(0, 32))} is not an amount of money`)
  return micros
}
