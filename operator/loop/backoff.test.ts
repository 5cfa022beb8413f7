import { expect, test } from 'vitest'
import { Backoff } from './backoff.ts'

test('failures wait 1 s, doubling to 5 minutes', () => {
  const backoff = new Backoff(() => 0.5)
  const waits = Array.from({ length: 12 }, () => backoff.next('a', false) / 1000)
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300])
  expect(backoff.next('b', false)).toBe(1000)
})

test('the wait is spread by 20 % to both sides', () => {
  expect(new Backoff(() => 0).next('a', false)).toBeCloseTo(800)
  expect(new Backoff(() => 0.9999).next('a', false)).toBeCloseTo(1200, 0)
})

test('conflicts do not wait, five times in a row at most', () => {
  const backoff = new Backoff(() => 0.5)
  expect(Array.from({ length: 7 }, () => backoff.next('a', true))).toEqual([0, 0, 0, 0, 0, 1000, 2000])
  backoff.forget('a')
  expect(backoff.next('a', true)).toBe(0)
})
