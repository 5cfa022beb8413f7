import { expect, test } from 'vitest'
import { decodeUsage, decodeUsageDay, encodeUsage, usageKey } from './ledger-usage.ts'

test('a day of usage has a key of its own', () => {
  expect(usageKey('hg', 'uid-1', Date.UTC(2026, 0, 14, 23, 59))).toBe('hg:l:{uid-1}:use:20467')
})

test('the field of a model holds seven counters', () => {
  expect(decodeUsage('m', '3 100 20 40 900 1 0')).toEqual({
    ...{ model: 'm', requests: 3, input: 100, output: 20, cached: 40 },
    ...{ cost: 900, estimated: 1, unpriced: 0 },
  })
})

test.each(['', '1 2 3', '1 2 3 4 5 6 7 8', '1 2 3 4 5 6 x', '-1 0 0 0 0 0 0', '9'.repeat(200), '1 2 3 4 5 6 99999999999999999'])(
  'a text that the library has not written is not read as usage: %s',
  (text) => {
    expect(decodeUsage('m', text)).toBeUndefined()
  },
)

test('a field is written as it was read', () => {
  const text = '3 100 20 40 900 1 9007199254740991'
  expect(encodeUsage(decodeUsage('m', text)!)).toBe(text)
})

test('a day is read by model, without fields that the library does not write', () => {
  const good = '1 2 3 0 4 0 0'
  const fields = { 'uid-2': good, other: good, 'uid-1': good, forged: '1e9', 'two words': good, ['x'.repeat(65)]: good }
  expect(decodeUsageDay(fields).map(({ model, requests, cost }) => [model, requests, cost])).toEqual([
    ['other', 1, 4],
    ['uid-1', 1, 4],
    ['uid-2', 1, 4],
  ])
})
