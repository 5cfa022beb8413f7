import { describe, expect, test } from 'vitest'
import { MAX_MICROS } from './micros.ts'
import {
  formatSignedAmount,
  formatSum,
  formatSumAmount,
  halvesOf,
  parseSignedAmount,
  parseSum,
  type SignedMicros,
  signedMicrosOf,
  sumOfHalves,
} from './signed-micros.ts'

const signed = (text: string): SignedMicros => parseSignedAmount(text)!

describe('an amount of money with a sign', () => {
  test.each([
    ['0', 0, '0'],
    ['0.00', 0, '0'],
    ['25', 25_000_000, '25'],
    ['25.00', 25_000_000, '25'],
    ['12.50', 12_500_000, '12.5'],
    ['100', 100_000_000, '100'],
    ['0.000001', 1, '0.000001'],
    ['-0.000001', -1, '-0.000001'],
    ['-12.5', -12_500_000, '-12.5'],
    ['-100', -100_000_000, '-100'],
    ['999999999.999999', MAX_MICROS, '999999999.999999'],
    ['-999999999.999999', -Number(MAX_MICROS), '-999999999.999999'],
    ['-4503599.627371', -4_503_599_627_371, '-4503599.627371'],
  ])('%s is %i micro-units, written as %s', (text, count, written) => {
    expect(parseSignedAmount(text)).toBe(count)
    expect(formatSignedAmount(signed(text))).toBe(written)
    expect(parseSignedAmount(written)).toBe(count)
  })

  test.each([
    ['NaN'],
    ['-Infinity'],
    ['1e3'],
    ['-1e309'],
    ['+1'],
    ['--1'],
    ['- 1'],
    ['−1'],
    ['-'],
    ['-0'],
    ['-0.00'],
    ['-01'],
    ['1000000000'],
    ['-1000000000'],
    ['-0.0000001'],
    ['-1.'],
    ['-.5'],
    ['1,5'],
    ['-1_000'],
    ['-0x10'],
    [' -1'],
    ['-1\n'],
    ['١'],
    [''],
  ])('%j is not an amount', (text) => {
    expect(parseSignedAmount(text)).toBeUndefined()
  })

  test('of zero has no sign, whatever equality asks', () => {
    expect(Object.is(parseSignedAmount('0.000000'), 0)).toBe(true)
  })

  test.each([[0.5], [-0.5], [-0], [Number.NaN], [-Infinity], [MAX_MICROS + 1], [-Number(MAX_MICROS) - 1], ['-1'], [null], [-1n]])(
    'a stored %s is not an amount',
    (value) => {
      expect(signedMicrosOf(value)).toBeUndefined()
    },
  )

  test('a stored integer in range is one', () => {
    expect([signedMicrosOf(0), signedMicrosOf(-Number(MAX_MICROS)), signedMicrosOf(MAX_MICROS)]).toEqual([
      0,
      -Number(MAX_MICROS),
      MAX_MICROS,
    ])
  })
})

describe('a sum of money', () => {
  const BEYOND = 2n ** 53n + 1n

  test.each([
    ['0', 0n, '0.00'],
    ['-1', -1n, '-0.000001'],
    ['25000000', 25_000_000n, '25.00'],
    ['-1234560000', -1_234_560_000n, '-1234.56'],
    ['9007199254740993', BEYOND, '9007199254.740993'],
    ['-9007199254740993', -BEYOND, '-9007199254.740993'],
    ['9'.repeat(30), 10n ** 30n - 1n, `${'9'.repeat(24)}.999999`],
  ])('of %s micro-units is exact, also beyond 2^53, and reads %s', (text, sum, shown) => {
    expect(parseSum(text)).toBe(sum)
    expect(formatSum(sum)).toBe(text)
    expect(formatSumAmount(sum)).toBe(shown)
    expect(sumOfHalves(halvesOf(sum))).toBe(sum)
  })

  test.each([['-0'], ['00'], ['01'], ['+1'], ['1.0'], ['1e3'], ['0x10'], [' 1'], ['1\n'], ['1n'], [''], ['-'], ['9'.repeat(31)]])(
    'is not read from %j',
    (text) => {
      expect(parseSum(text)).toBeUndefined()
    },
  )

  test.each([
    [0n, 0, 0],
    [1n, 0, 1],
    [-1n, -1, 10 ** 15 - 1],
    [10n ** 15n, 1, 0],
    [-(10n ** 15n), -1, 0],
    [-(10n ** 15n) - 1n, -2, 10 ** 15 - 1],
    [BEYOND, 9, 7_199_254_740_993],
  ])('%d is split into halves that numbers hold exactly, with a low half that is never negative', (sum, high, low) => {
    expect(halvesOf(sum)).toEqual({ high, low })
  })

  test('of more than 30 digits has no halves, so no script decides with a rounded one', () => {
    expect(() => halvesOf(10n ** 30n)).toThrow(RangeError)
    expect(() => sumOfHalves({ high: 0.5, low: 0 })).toThrow(RangeError)
  })
})
