import { expect, test } from 'vitest'
import { amountOf, countOf } from './limits.ts'
import { parseExactJson } from './read-keys.ts'

test.each([
  ['12.5', '12.50'],
  ['100', '100.00'],
  ['100.0', '100.00'],
  ['0', '0.00'],
  ['1e-05', '0.00001'],
  ['2.5E2', '250.00'],
  ['0.1', '0.10'],
  ['007.5', '7.50'],
])('the amount %s is written as %s', (text, amount) => {
  expect(amountOf(text)).toEqual({ text: amount })
})

test.each([
  ['0.0000019', '0.000001', 'rounded down'],
  ['1e-9', '0.00', 'rounded down'],
  ['1000000000', '999999999.999999', 'lowered to the largest amount'],
  ['1e300', '999999999.999999', 'lowered to the largest amount'],
  ['-1', '0.00', 'raised to zero'],
])('the amount %s becomes %s, and the report calls it %s', (text, amount, change) => {
  expect(amountOf(text)).toEqual({ text: amount, change })
})

test.each(['', 'abc', 'NaN', 'Infinity', '1,5', '0x10', '1e99999'])('%j is not a number', (text) => {
  expect([amountOf(text), countOf(text)]).toEqual([undefined, undefined])
})

test('a number of a JSON file is its text: 0.1 + 0.2 is not computed, and 20 digits stay 20 digits', () => {
  expect(parseExactJson('{"a":12345678901234567890,"b":0.30000000000000000001,"c":[1e-7,true,null,"x"]}')).toEqual({
    a: '12345678901234567890',
    b: '0.30000000000000000001',
    c: ['1e-7', true, null, 'x'],
  })
  expect(countOf('12345678901234567890')).toBe(Infinity)
})
