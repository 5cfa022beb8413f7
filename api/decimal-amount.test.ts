import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseSignedAmount } from '#contract/values/signed-micros.ts'
import { DECIMAL_AMOUNT, SIGNED_AMOUNT, toMicros } from './decimal-amount.ts'

const REFUSED = ['NaN', '1e309', '-1', '+1', '', '.5', '1.', '01', '1,5', '1.0000001', '1000000000', '1'.repeat(20), ' 1', 'Infinity']

describe('amounts of money', () => {
  test.each(REFUSED)('%j is none, and no number is guessed for it', (text) => {
    expect(() => toMicros(text)).toThrow(RangeError)
  })

  test('the schema admits exactly the texts that can be read', () => {
    const form = new RegExp(DECIMAL_AMOUNT)
    const decimals = fc.stringMatching(/^[0-9.]{1,12}$/)
    fc.assert(fc.property(fc.oneof(decimals, fc.constantFrom(...REFUSED), fc.string()), (text) => form.test(text) === canRead(text)))
  })

  test('the form of a signed amount admits exactly the texts that can be read, and a sign before zero, which no Credit may have', () => {
    const form = new RegExp(SIGNED_AMOUNT)
    const decimals = fc.stringMatching(/^[-+]?[0-9.]{1,12}$/)
    fc.assert(
      fc.property(fc.oneof(decimals, fc.constantFrom(...REFUSED, '-0', '-0.00', '-25.00'), fc.string()), (text) => {
        const isNoZeroWithSign = !/^-[0.]*$/.test(text)
        return (form.test(text) && isNoZeroWithSign) === (parseSignedAmount(text) !== undefined)
      }),
    )
  })
})

function canRead(text: string): boolean {
  try {
    toMicros(text)
    return true
  } catch {
    return false
  }
}
