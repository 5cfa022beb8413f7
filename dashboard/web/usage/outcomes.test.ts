import { expect, it } from 'vitest'
import type { UsageCountsView } from '../../server/page-data/usage.ts'
import { sumOf } from '../micros.ts'
import { outcomesOf } from './outcomes.ts'
import { totalsOf } from './usage-sums.ts'

const NOTHING = { requests: 0, failed: 0, refused: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, cost: '0.00', estimated: 0 }
const outcomes = (...rows: Partial<UsageCountsView>[]) => {
  const all = rows.map((row): UsageCountsView => ({ ...NOTHING, ...row }))
  return { listed: outcomesOf(all, totalsOf(all)), calls: totalsOf(all).calls }
}

it('refusals are listed by reason, with the status that the caller got', () => {
  const { listed } = outcomes(
    { requests: 10, failed: 1, refused: 6, refusals: { model: 1, rate: 2, budget: 3, other: 0 } },
    { refused: 1, refusals: { model: 0, rate: 1, budget: 0, other: 0 } },
  )
  expect(listed).toEqual([
    { name: 'Answered', count: 9n },
    { name: 'Over a rate limit, 429', count: 3n },
    { name: 'Budget or balance used up, 402', count: 3n },
    { name: 'Model not allowed, 403', count: 1n },
    { name: 'Failed, 5xx', count: 1n },
  ])
})

it('refusals without a reason are listed too', () => {
  expect(outcomes({ requests: 1, refused: 4 }).listed.map(({ name, count }) => [name, count])).toEqual([
    ['Answered', 1n],
    ['Refused', 4n],
    ['Failed, 5xx', 0n],
  ])
})

it('all outcomes add up to all calls', () => {
  const { listed, calls } = outcomes(
    { requests: 7, failed: 9, refused: 5, refusals: { model: 2, rate: 0, budget: 0, other: 3 } },
    { requests: 8, failed: 2, refused: 4 },
  )
  expect(sumOf(listed.map(({ count }) => count))).toBe(calls)
})
