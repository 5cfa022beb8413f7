import { describe, expect, test } from 'vitest'
import { fromMicros, toMicros } from './decimal-amount.ts'

describe('amounts of money', () => {
  test.each([
    ['0', 0],
    ['0.000000', 0],
    ['0.000001', 1],
    ['0.15', 150_000],
    ['25', 25_000_000],
    ['25.50', 25_500_000],
    ['999999999.999999', 999_999_999_999_999],
  ])('%s is %i micro-units, exactly', (text, micros) => {
    expect(toMicros(text)).toBe(micros)
  })

  test.each(['NaN', '1e309', '-1', '+1', '', '.5', '1.', '01', '1,5', '1.0000001', '1000000000', '1'.repeat(20), ' 1', 'Infinity'])(
    '%j is none, and no number is guessed for it',
    (text) => {
      expect(() => toMicros(text)).toThrow(RangeError)
    },
  )

  test.each([
    [0, '0'],
    [1, '0.000001'],
    [150_000, '0.15'],
    [25_000_000, '25'],
    [999_999_999_999_999, '999999999.999999'],
  ])('%i micro-units are written as %s', (micros, text) => {
    expect(fromMicros(micros)).toBe(text)
  })
})
