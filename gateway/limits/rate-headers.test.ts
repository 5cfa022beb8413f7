import { expect, test } from 'vitest'
import { goDuration, rateHeaders } from './rate-headers.ts'

const NOW = Date.UTC(2026, 10, 21, 9, 0, 0, 1)
const requests = { limit: 60, remaining: 59, resetMs: 7_400 }
const tokens = { limit: 40_000, remaining: 0, resetMs: 60_000 }

test.each([
  [0, '0ms'],
  [12, '12ms'],
  [999.2, '1s'],
  [7_400, '7.4s'],
  [60_000, '1m0s'],
  [61_111, '1m1.111s'],
  [360_000, '6m0s'],
])('L7 %d ms are written as Go writes them: %s', (ms, text) => {
  expect(goDuration(ms)).toBe(text)
})

test('OpenAI SDKs read limit, remaining and reset of each kind', () => {
  expect(rateHeaders({ requests, tokens }, 'openai', NOW)).toEqual([
    ...['x-ratelimit-limit-requests', '60', 'x-ratelimit-remaining-requests', '59', 'x-ratelimit-reset-requests', '7.4s'],
    ...['x-ratelimit-limit-tokens', '40000', 'x-ratelimit-remaining-tokens', '0', 'x-ratelimit-reset-tokens', '1m0s'],
  ])
})

test('L7 Anthropic SDKs read the same under other names, and an instant in UTC that is rounded up', () => {
  expect(rateHeaders({ requests }, 'anthropic', NOW)).toEqual([
    ...['anthropic-ratelimit-requests-limit', '60', 'anthropic-ratelimit-requests-remaining', '59'],
    ...['anthropic-ratelimit-requests-reset', '2026-11-21T09:00:08Z'],
  ])
})

test('a kind without a limit has no header', () => {
  expect(rateHeaders({}, 'openai', NOW)).toEqual([])
})
