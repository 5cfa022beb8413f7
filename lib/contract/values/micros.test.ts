import { describe, expect, test } from 'vitest'
import { costOf, formatMicros, MAX_MICROS, type Micros, microsOf, parseMicros } from './micros.ts'

const micros = (text: string): Micros => parseMicros(text)!

describe('an amount of money', () => {
  test.each([
    ['0', 0, '0.00'],
    ['0.000001', 1, '0.000001'],
    ['25', 25_000_000, '25.00'],
    ['25.00', 25_000_000, '25.00'],
    ['0.45', 450_000, '0.45'],
    ['1.2345', 1_234_500, '1.2345'],
    ['999999999.999999', MAX_MICROS, '999999999.999999'],
    ['4503599.627371', 4_503_599_627_371, '4503599.627371'],
  ])('%s is %i micro-units, written as %s', (text, count, written) => {
    expect(parseMicros(text)).toBe(count)
    expect(formatMicros(micros(text))).toBe(written)
  })

  test.each([
    ['NaN'],
    ['Infinity'],
    ['1e309'],
    ['1e3'],
    ['-1'],
    ['+1'],
    ['-0'],
    ['12345678901234567890'],
    ['1000000000'],
    ['0.0000001'],
    ['1.'],
    ['.5'],
    ['01'],
    ['1,5'],
    ['1_000'],
    ['0x10'],
    [' 1'],
    ['1\n'],
    ['١'],
    [''],
  ])('litellm-rs#711 %j is not an amount', (text) => {
    expect(parseMicros(text)).toBeUndefined()
  })

  test.each([[-1], [0.5], [Number.NaN], [Infinity], [MAX_MICROS + 1], ['1'], [null], [1n]])('a stored %s is not an amount', (value) => {
    expect(microsOf(value)).toBeUndefined()
  })

  test('a stored integer in range is one', () => {
    expect([microsOf(0), microsOf(MAX_MICROS)]).toEqual([0, MAX_MICROS])
  })
})

describe('the cost of tokens', () => {
  const perMillion = micros('3.00')

  test.each([
    [0, '0.00'],
    [1, '0.000003'],
    [1_000_000, '3.00'],
    [300_000, '0.90'],
  ])('%i tokens at 3.00 a million cost %s', (tokens, cost) => {
    expect(formatMicros(costOf({ tokens, perMillion }))).toBe(cost)
  })

  test('is rounded up once, over all kinds of tokens', () => {
    const third = { tokens: 1, perMillion: micros('0.333333') }
    expect(costOf(third)).toBe(1)
    expect(costOf(third, third, third)).toBe(1)
    expect(costOf({ tokens: 1_000_001, perMillion: micros('0.000001') })).toBe(2)
  })

  test('is 0 at a price of 0', () => {
    expect(costOf({ tokens: 1_000_000, perMillion: micros('0') })).toBe(0)
  })

  test('stops at the largest amount', () => {
    expect(costOf({ tokens: Number.MAX_SAFE_INTEGER, perMillion: MAX_MICROS })).toBe(MAX_MICROS)
  })

  test.each([[-1], [0.5], [Number.NaN], [Infinity]])('%s is not a count of tokens', (tokens) => {
    expect(() => costOf({ tokens, perMillion })).toThrow(RangeError)
  })
})
