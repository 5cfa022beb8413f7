import { expect, test } from 'vitest'
import { microsOfMinor, minorOf } from './minor-units.ts'

test.each([
  ['10.00', 'eur', 1_000],
  ['0.01', 'USD', 1],
  ['10', 'jpy', 10],
  ['10.000', 'KWD', 10_000],
  ['1.25', 'kwd', 1_250],
  ['10', 'isk', 1_000],
  ['999999999.99', 'eur', 99_999_999_999],
])('%s %s are %i minor units, and back', (amount, currency, minor) => {
  expect(minorOf(amount, currency)).toBe(minor)
  expect(microsOfMinor(minor, currency)).toBe(Math.round(Number(amount) * 1_000_000))
})

test.each([
  ['0.005', 'eur'],
  ['0.5', 'jpy'],
  ['1.255', 'kwd'],
  ['10.50', 'ugx'],
  ['0', 'eur'],
  ['-1', 'eur'],
  ['1e3', 'eur'],
  ['NaN', 'eur'],
  ['', 'eur'],
  [' 1', 'eur'],
])('%j %s is not an amount that can be paid', (amount, currency) => {
  expect(minorOf(amount, currency)).toBeUndefined()
})

test.each([1.5, -1, Number.NaN, Infinity, 2 ** 53])('%d is not a number of minor units', (minor) => {
  expect(microsOfMinor(minor, 'eur')).toBeUndefined()
})
