import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MAX_MICROS } from './micros.ts'
import {
  formatSignedAmount,
  formatSum,
  formatSumAmount,
  parseSumAmount,
  halvesOf,
  parseSignedAmount,
  parseSum,
  type SignedMicros,
  signedMicrosOf,
  sumOfHalves,
} from './signed-micros.ts'

const SEED = Number(process.env.MICROS_SEED ?? Date.now() % 2 ** 31)
const RUNS = Number(process.env.MICROS_RUNS ?? 5_000)
const SETTINGS = { seed: SEED, numRuns: RUNS }
process.stdout.write(`signed micros: seed ${SEED}, ${RUNS} runs\n`)

const count = fc.oneof(
  fc.integer({ min: -1_000_000, max: 1_000_000 }),
  fc.integer({ min: -Number(MAX_MICROS), max: MAX_MICROS }),
  fc.constantFrom(0, 1, -1, MAX_MICROS, -Number(MAX_MICROS)),
)
const LARGEST_SUM = 10n ** 30n - 1n
const sum = fc.oneof(
  fc.bigInt({ min: -LARGEST_SUM, max: LARGEST_SUM }),
  fc.bigInt({ min: -(2n ** 55n), max: 2n ** 55n }),
  fc.tuple(fc.bigInt({ min: -9n, max: 9n }), fc.bigInt({ min: -3n, max: 3n })).map(([high, low]) => high * 10n ** 15n + low),
)

/** An amount in micro-units, read digit by digit. */
function microsIn(text: string): bigint {
  const [whole = '', decimals = ''] = text.replace('-', '').split('.')
  const micros = BigInt(whole) * 1_000_000n + BigInt(decimals.padEnd(6, '0'))
  return text.startsWith('-') ? -micros : micros
}

test('any signed amount survives being written and read, and is the same decimal', () => {
  fc.assert(
    fc.property(count, (value) => {
      const text = formatSignedAmount(value as SignedMicros)
      expect(parseSignedAmount(text)).toBe(value)
      expect(microsIn(text)).toBe(BigInt(value))
      expect(text).not.toMatch(/^-0$|\.$|\.\d*0$/) // nothing shorter says the same
    }),
    SETTINGS,
  )
})

test('an amount is read as exactly the written decimal, whatever its digits and its sign', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^-?(0|[1-9]\d{0,8})(\.\d{1,6})?$/), (text) => {
      const micros = parseSignedAmount(text)
      expect(micros === undefined).toBe(/^-[0.]+$/.test(text)) // a sign before zero
      if (micros !== undefined) expect([BigInt(micros), signedMicrosOf(micros)]).toEqual([microsIn(text), micros])
    }),
    SETTINGS,
  )
})

test('any sum survives being written and read, and is the same decimal for people', () => {
  fc.assert(
    fc.property(sum, (value) => {
      expect(parseSum(formatSum(value))).toBe(value)
      expect(microsIn(formatSumAmount(value))).toBe(value)
      expect(parseSumAmount(formatSumAmount(value))).toBe(value)
      expect(formatSumAmount(value)).toMatch(/^-?\d+\.\d{2,6}$/)
    }),
    SETTINGS,
  )
})

test('any sum is two numbers without a rounding, and the same sum again', () => {
  fc.assert(
    fc.property(sum, (value) => {
      const { high, low } = halvesOf(value)
      expect([Number.isSafeInteger(high), Number.isSafeInteger(low), low >= 0 && low < 10 ** 15]).toEqual([true, true, true])
      expect(sumOfHalves({ high, low })).toBe(value)
    }),
    SETTINGS,
  )
})

test('two sums compare as their halves do, so a script without bigints decides like exact integers', () => {
  fc.assert(
    fc.property(sum, sum, (one, other) => {
      const [a, b] = [halvesOf(one), halvesOf(other)]
      expect(a.high === b.high ? a.low < b.low : a.high < b.high).toBe(one < other)
    }),
    SETTINGS,
  )
})
