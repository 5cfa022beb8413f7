import { describe, expect, it } from 'vitest'
import type { BudgetView, KeyView } from '../../server/page-data/keys.ts'
import { concernsOf } from './attention.ts'

const NOW = new Date('2026-11-24T12:00:00Z')
const budget = (more: Partial<BudgetView> = {}): BudgetView => ({
  ...{ name: 'b', owner: 'key', unit: 'Currency', window: 'Month', amount: '50.00', timeZone: 'UTC', isAudit: false, isShared: false },
  ...{ resetsAt: '2026-12-01T00:00:00Z' },
  ...more,
})
const key = (more: Partial<KeyView> = {}): KeyView => ({
  ...{
    id: 'k-1',
    name: 'docs-search',
    hint: '',
    state: 'Active',
    wanted: 'Active',
    isManaged: false,
    models: ['*'],
    limits: [],
    budgets: [],
  },
  createdAt: '2026-11-01T00:00:00Z',
  ...more,
})
const concerns = (keys: readonly KeyView[], shared: readonly BudgetView[] = []) =>
  concernsOf(keys, { budgets: shared, currency: 'EUR' }, NOW)

describe('a budget', () => {
  it('that is used up says until when calls are refused, and offers to raise it', () => {
    const used = budget({ amount: '20.00', used: '20', percent: 100 })
    expect(concerns([key({ budgets: [used] })])).toEqual([
      {
        ...{ id: 'k-1/key/b', name: 'docs-search', path: '/keys/k-1', action: 'Raise budget' },
        text: '€20.00 of €20.00 this month. Calls answer 402 until 1 Dec 00:00 UTC.',
        state: { look: 'danger', word: 'Budget used up' },
      },
    ])
  })

  it('from 80 % on says on which day it is used up at this pace', () => {
    const [concern] = concerns([key({ budgets: [budget({ used: '43.78', percent: 88 })] })])
    expect(concern).toMatchObject({
      text: '€43.78 of €50.00 this month. At this pace it is used up on 27 November.',
      state: { look: 'warn', word: 'Budget at 88 %' },
    })
  })

  it('that lasts until its reset has no such day', () => {
    const today = budget({ window: 'Day', resetsAt: '2026-11-25T00:00:00Z', used: '41', percent: 82 })
    const atEnd = concernsOf([key({ budgets: [today] })], { budgets: [], currency: 'EUR' }, new Date('2026-11-24T23:00:00Z'))
    expect(atEnd[0]?.text).toBe('€41.00 of €50.00 today.')
  })

  it('in all says that only a higher one helps', () => {
    const used = budget({ window: 'Lifetime', resetsAt: undefined as never, used: '50', percent: 100 })
    expect(concerns([key({ budgets: [used] })])[0]?.text).toContain('until the budget is raised')
  })

  it.each([
    ['below 80 %', budget({ percent: 79 })],
    ['that is only watched', budget({ percent: 100, isAudit: true })],
    ['of which nothing is known yet', budget()],
  ])('%s is not a concern', (_name, each) => {
    expect(concerns([key({ budgets: [each] })])).toEqual([])
  })

  it('that all keys share is named once, with who can change it', () => {
    const shared = budget({ owner: 'account', isShared: true, used: '300', amount: '300', percent: 100 })
    const found = concerns([key({ budgets: [shared] }), key({ id: 'k-2', budgets: [shared] })], [shared])
    expect(found.map(({ name, path, action, text }) => [name, path, action, text])).toEqual([
      ['All keys', '', '', '€300.00 of €300.00 this month. Calls answer 402 until 1 Dec 00:00 UTC. Your administrator sets this budget.'],
    ])
  })
})

describe('a key', () => {
  it('that ends within a week says when, and offers to extend it', () => {
    expect(concerns([key({ expiresAt: '2026-11-29T00:00:00Z' })])[0]).toMatchObject({
      text: 'On 29 November, 00:00 UTC. Then calls answer 401.',
      state: { look: 'warn', word: 'Expires in 5 days' },
      action: 'Extend',
    })
    expect(concerns([key({ expiresAt: '2026-12-02T00:00:00Z' }), key({ expiresAt: '2026-11-24T11:00:00Z' })])).toEqual([])
  })

  it('that is not accepted says why', () => {
    expect(concerns([key({ state: 'NotAccepted', problem: { reason: 'PlanNotFound', message: 'The plan is missing' } })])[0]).toMatchObject(
      {
        text: 'The plan is missing.',
        state: { word: 'Not accepted' },
        action: 'Open',
      },
    )
  })

  it.each(['Revoked', 'Revoking', 'Expired', 'Suspended', 'Suspending'] as const)('that is %s needs nothing', (state) => {
    expect(concerns([key({ state, expiresAt: '2026-11-25T00:00:00Z', budgets: [budget({ percent: 100 })] })])).toEqual([])
  })

  it('that is stopped stands before one that will be', () => {
    const soon = key({ id: 'a', expiresAt: '2026-11-25T00:00:00Z' })
    const stopped = key({ id: 'b', budgets: [budget({ percent: 100, used: '50' })] })
    expect(concerns([soon, stopped]).map(({ id }) => id)).toEqual(['b/key/b', 'a/expiry'])
  })
})
