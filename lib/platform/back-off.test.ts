import { expect, test } from 'vitest'
import { BackOff, SPREAD } from './back-off.ts'

const times = (count: number, next: () => number): number[] => Array.from({ length: count }, next)

test('the delay doubles up to its bound and starts again after a success', () => {
  const backOff = new BackOff({ firstMs: 1_000, maxMs: 300_000, ...SPREAD, random: () => 0.5 })
  const seconds = times(11, () => backOff.next() / 1_000)
  expect(seconds).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
  backOff.reset()
  expect(backOff.next()).toBe(1_000)
})

test('another factor grows at another pace', () => {
  const backOff = new BackOff({ firstMs: 4, maxMs: 100, factor: 1.5 })
  expect(times(4, () => backOff.next())).toEqual([4, 6, 9, 14])
})

test.each([
  [SPREAD, 800, 1200],
  [{ below: 0.5 }, 500, 1000],
  [{}, 1000, 1000],
])('the jitter %j takes away and adds no more than its parts, so that many do not try together', (jitter, least, most) => {
  const of = (random: number): number => new BackOff({ firstMs: 1_000, maxMs: 9_000, random: () => random, ...jitter }).next()
  expect([of(0), of(0.9999)]).toEqual([least, most])
})

test('after a time of health the next failure counts as the first', () => {
  const backOff = new BackOff({ firstMs: 1_000, maxMs: 60_000, resetAfterMs: 120_000 })
  expect([0, 1_000, 3_000].map((nowMs) => backOff.next({ nowMs }))).toEqual([1_000, 2_000, 4_000])
  expect(backOff.next({ nowMs: 7_000 + 120_000 })).toBe(8_000)
  expect(backOff.next({ nowMs: 127_000 + 8_000 + 120_001 })).toBe(1_000)
})

test('the wait runs out by itself, and ends with a success', () => {
  const backOff = new BackOff({ firstMs: 1_000, maxMs: 9_000 })
  expect(backOff.waitMs(5)).toBe(0)
  backOff.next({ nowMs: 100 })
  expect([100, 500, 9_999].map((nowMs) => backOff.waitMs(nowMs))).toEqual([1_000, 600, 0])
  backOff.reset()
  expect(backOff.waitMs(100)).toBe(0)
})

test('a failure that another try soon solves waits briefly, at most five times in a row', () => {
  const backOff = new BackOff({ firstMs: 1_000, maxMs: 9_000, quickMs: 20 })
  expect(times(7, () => backOff.next({ isQuick: true }))).toEqual([20, 20, 20, 20, 20, 1_000, 2_000])
})

test('no wait is shorter than the server asks for', () => {
  const backOff = new BackOff({ firstMs: 1_000, maxMs: 9_000, quickMs: 20 })
  expect([backOff.next({ atLeastMs: 7_000 }), backOff.next({ isQuick: true, atLeastMs: 500 }), backOff.next()]).toEqual([7_000, 500, 2_000])
})
