import { expect, it } from 'vitest'
import { countdown } from './countdown.ts'

it.each([
  [65_000, '1:05'],
  [60_000, '1:00'],
  [59_999, '1:00'],
  [1, '0:01'],
  [0, undefined],
  [-5, undefined],
  [Number.NaN, undefined],
])('%d ms left are %s', (left, text) => {
  expect(countdown(left)).toBe(text)
})
