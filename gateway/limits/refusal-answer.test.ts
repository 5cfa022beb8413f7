import { expect, test } from 'vitest'
import type { Refused } from './ledger.ts'
import { refusalAnswer } from './refusal-answer.ts'

const MIDNIGHT = Date.UTC(2026, 10, 29)
const REQUEST = { format: 'openai', model: 'llama' } as const
const budgetSpent: Refused = {
  ...{ outcome: 'refused', limit: 'budgetSpent', whose: 'key', waitMs: 'never', resetMs: 5_000, rates: {}, needed: 1, left: 0 },
  budget: { name: 'day', unit: 'Tokens' },
}

test.each([-400, 0, 3, 400])(
  'a window of a budget ends at its second, also if the answer is made %d ms later than the verdict',
  (lateMs) => {
    const { message } = refusalAnswer(budgetSpent, REQUEST, MIDNIGHT - 5_000 + lateMs)
    expect(message).toMatch(/next window begins at 2026-11-29T00:00:00Z$/)
  },
)

test('the end of a rate limit is rounded up, because an earlier retry is refused', () => {
  const requests: Refused = {
    outcome: 'refused',
    limit: 'requests',
    whose: 'key',
    waitMs: 5_000,
    resetMs: 5_000,
    rates: {},
    needed: 1,
    left: 0,
  }
  const { metadata } = refusalAnswer(requests, REQUEST, MIDNIGHT - 5_000 + 3)
  expect(metadata?.resetsAt).toBe('2026-11-29T00:00:01Z')
})
