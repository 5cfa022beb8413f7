import { describe, expect, it } from 'vitest'
import type { BudgetView, PlanView } from '../../server/page-data/keys.ts'
import { contextWords, durationWords, keysWords, planRows, priceWords } from './plan-words.ts'

const budget = (more: Partial<BudgetView>): BudgetView => ({
  ...{ name: 'b', owner: 'plan', unit: 'Currency', window: 'Day', amount: '5', timeZone: 'UTC', isAudit: false, isShared: false },
  ...more,
})
const PLAN: PlanView = {
  ...{ name: 'team', most: 20, models: [], ttl: {}, currency: 'EUR' },
  limits: [
    { limit: 'requestsPerMinute', ceiling: 120, default: 60, shared: 600, sharedOwner: 'account' },
    { limit: 'tokensPerMinute' },
    { limit: 'maxConcurrentRequests', ceiling: 16 },
  ],
  budgets: [
    budget({}),
    budget({ window: 'Month', amount: '50.00' }),
    budget({ window: 'Month', amount: '300.00', isShared: true, owner: 'account' }),
    budget({ unit: 'Tokens', amount: '1000000', isShared: true, isAudit: true }),
  ],
}

describe('a plan', () => {
  it('says for each limit what a key may have, what it has unset, and what all keys share', () => {
    const texts = planRows(PLAN, 7).map(({ name, each, unset, shared }) => [name, each, unset, shared])
    expect(texts).toEqual([
      ['Requests per minute', 'at most 120', '60', '600'],
      ['Tokens per minute', 'no ceiling', 'no limit', '–'],
      ['Calls at a time', 'at most 16', 'no limit', '–'],
      [
        ...['Budgets, beside a key’s own', '€5.00 a day and €50.00 a month', '–'],
        '€300.00 a month and 1,000,000 tokens a day (only watched)',
      ],
      ['Expiry', 'no ceiling', 'never', '–'],
      ['Keys', '–', '–', '7 of 20'],
    ])
  })

  it('names who sets what all keys share', () => {
    expect(planRows(PLAN, 7).map(({ sharedOwner }) => sharedOwner)).toEqual([
      'account',
      undefined,
      undefined,
      'account',
      undefined,
      undefined,
    ])
  })

  it('without budgets and with a ceiling for expiry says so', () => {
    const rows = planRows({ ...PLAN, budgets: [], ttl: { default: 2_592_000, ceiling: 31_536_000 } }, undefined)
    expect(rows.slice(3).map(({ each, unset, shared }) => [each, unset, shared])).toEqual([
      ['–', '–', '–'],
      ['at most 365 days', '30 days', '–'],
      ['–', '–', 'at most 20'],
    ])
  })
})

it('numbers of keys are said as far as they are known', () => {
  expect([keysWords(0, 20), keysWords(7, undefined), keysWords(undefined, undefined)]).toEqual(['0 of 20', '7', '–'])
})

it.each([
  [86_400, '1 day'],
  [5400, '90 minutes'],
  [7200, '2 hours'],
  [61, '61 seconds'],
])('%i seconds are %s', (seconds, words) => {
  expect(durationWords(seconds)).toBe(words)
})

it.each([
  [131_072, '128k'],
  [128_000, '128k'],
  [40_960, '40k'],
  [32_500, '32k'],
  [512, '512'],
  [undefined, '–'],
])('a context of %s tokens is %s', (tokens, words) => {
  expect(contextWords(tokens)).toBe(words)
})

it('a price is exact, with at least two decimals', () => {
  expect(['0.55', '1', '0.000125', '0.1500', undefined].map(priceWords)).toEqual(['0.55', '1.00', '0.000125', '0.15', '–'])
})
