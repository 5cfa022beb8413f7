import { expect, it } from 'vitest'
import { share, shortCount } from './counts.ts'

it.each([
  [0n, '0'],
  [9_999n, '9,999'],
  [10_000n, '10 k'],
  [344_123_456n, '344 M'],
  [1_230_000_000n, '1.23 B'],
])('%i as a figure is "%s"', (count, text) => {
  expect(shortCount(count).replace('\u00a0', ' ')).toBe(text)
})

it.each([
  [164_920n, 168_412n, 1, '97.9 %'],
  [9_999n, 10_000n, 1, '99.9 %'],
  [10_000n, 10_000n, 1, '100.0 %'],
  [1n, 1_000_000n, 2, '< 0.01 %'],
  [0n, 7n, 2, '0.00 %'],
  [36n, 100n, 0, '36 %'],
  [0n, 0n, 0, '–'],
] as const)('%i of %i is "%s" decimals: %s', (part, whole, decimals, text) => {
  expect(share(part, whole, decimals).replace('\u00a0', ' ')).toBe(text)
})
