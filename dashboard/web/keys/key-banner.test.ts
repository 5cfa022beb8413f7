import { describe, expect, it } from 'vitest'
import type { BudgetView, KeyView } from '../../server/page-data/keys.ts'
import { bannerOf } from './key-banner.ts'
import { KEY } from './sample.ts'

const key = (more: Partial<KeyView>): KeyView => ({ ...KEY, ...more })
const full = (more: Partial<BudgetView>): BudgetView[] => KEY.budgets.map((budget) => ({ ...budget, percent: 100, ...more }))

describe('a key whose budget is used up', () => {
  it('says when it starts again, and that the person can raise the budget', () => {
    expect(bannerOf(key({ state: 'BudgetUsedUp', budgets: full({}) }))).toEqual({
      look: 'danger',
      title: 'Calls answer 402: this key’s budget is used up',
      text: 'It starts again on 1 Dec 00:00 UTC. To go on now, raise the budget.',
    })
  })

  it('by a budget of the plan says whom to ask', () => {
    const { title, text } = bannerOf(key({ state: 'BudgetUsedUp', budgets: full({ owner: 'plan', isShared: true }) })) ?? {}
    expect([title, text]).toEqual([
      'Calls answer 402: the budget of all keys is used up',
      'It starts again on 1 Dec 00:00 UTC. Your plan sets it: ask your administrator.',
    ])
  })

  it('does not blame a budget that is only watched', () => {
    const budgets = [...full({ isAudit: true }), ...full({ owner: 'account', isShared: true })]
    expect(bannerOf(key({ state: 'BudgetUsedUp', budgets }))?.text).toContain('Your account sets it')
  })
})

it('a key without balance leads to the top-up', () => {
  expect(bannerOf(key({ state: 'BalanceUsedUp' }))?.link).toEqual({ to: '/billing', words: 'Top up' })
})

it.each([
  [
    { reason: 'TooManyKeys', message: 'internal words' },
    'Your plan allows no more keys. Revoke one that is not used, or ask your administrator.',
  ],
  [{ reason: 'Other', message: 'The time zone X/Y does not exist' }, 'The time zone X/Y does not exist.'],
  [{ reason: 'Other', message: '' }, 'Other.'],
  [undefined, 'The cluster gives no reason. Ask your administrator.'],
])('a key that is not accepted for %j says why', (problem, text) => {
  expect(bannerOf(key({ state: 'NotAccepted', problem }))?.text).toBe(text)
})

it.each(['Active', 'Activating', 'Suspended', 'Revoking', 'Revoked'] as const)('a key that is %s has no such banner', (state) => {
  expect(bannerOf(key({ state }))).toBeUndefined()
})
