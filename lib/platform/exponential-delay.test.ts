import { expect, test } from 'vitest'
import { ExponentialDelay } from './exponential-delay.ts'

const times = (count: number, next: () => number): number[] => Array.from({ length: count }, next)

test('the delay doubles up to its bound and starts again after a success', () => {
  const delay = new ExponentialDelay({ firstMs: 1_000, maxMs: 300_000, random: () => 0.5 })
  const seconds = times(11, () => delay.next() / 1_000)
  expect(seconds).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
  delay.reset()
  expect(delay.next()).toBe(1_000)
})

test('chance takes away and adds no more than the parts asked for', () => {
  const of = (random: number, below?: number, above?: number): number =>
    new ExponentialDelay({
      firstMs: 1_000,
      maxMs: 9_000,
      random: () => random,
      ...(below === undefined ? {} : { below }),
      ...(above === undefined ? {} : { above }),
    }).next()
  expect([of(0), of(0.9999)].map(Math.round)).toEqual([800, 1200])
  expect([of(0, 0.5, 0), of(0.9999, 0.5, 0)].map(Math.round)).toEqual([500, 1000])
  expect([of(0, 1, 0), of(0.9999, 1, 0)].map(Math.round)).toEqual([0, 1000])
})

test('after a time of health the next failure counts as the first', () => {
  const delay = new ExponentialDelay({ firstMs: 1_000, maxMs: 60_000, below: 0, above: 0, resetAfterMs: 120_000, random: () => 0 })
  expect([delay.next(0), delay.next(1_000), delay.next(3_000)]).toEqual([1_000, 2_000, 4_000])
  expect(delay.next(7_000 + 120_000)).toBe(8_000)
  expect(delay.next(127_000 + 8_000 + 120_001)).toBe(1_000)
})

test('another factor grows at another pace', () => {
  const delay = new ExponentialDelay({ firstMs: 4, maxMs: 100, factor: 1.5, below: 0, above: 0, random: () => 0 })
  expect(times(4, () => delay.next())).toEqual([4, 6, 9, 13.5])
})
