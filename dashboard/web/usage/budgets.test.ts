import { expect, it } from 'vitest'
import type { BudgetView, KeyState, KeyView } from '../../server/page-data/keys.ts'
import { budgetsOf } from './budgets.ts'

const budget = (name: string, more: Partial<BudgetView> = {}): BudgetView => ({
  ...{ name, owner: 'key', unit: 'Currency', window: 'Month', amount: '10.00', timeZone: 'UTC', isAudit: false, isShared: false },
  ...more,
})
const key = (id: string, budgets: readonly BudgetView[], state: KeyState = 'Active'): KeyView => ({
  ...{
    id,
    name: `name of ${id}`,
    hint: '',
    state,
    wanted: 'Active',
    isManaged: false,
    models: ['*'],
    limits: [],
    budgets,
    createdAt: '2026-11-01T00:00:00Z',
  },
})
const ALL = budget('all', { owner: 'account', isShared: true })
const KEYS = [
  key('a', [budget('own', { percent: 20 }), ALL]),
  key('b', [budget('own', { percent: 90 }), budget('plan', { owner: 'plan' })]),
  key('c', [budget('own', { percent: 100 })], 'Revoked'),
]
const shown = (picked: string) => budgetsOf(KEYS, { budgets: [ALL, budget('each', { owner: 'plan' })] }, picked).map(({ id }) => id)

it('a budget that all keys share is shown once, before those of keys, the fullest first', () => {
  expect(shown('')).toEqual(['/all', 'b/key/own', 'a/key/own', 'b/plan/plan'])
})

it('the budgets of the picked key are shown alone, also of a revoked one, with those that count for it too', () => {
  expect(shown('a')).toEqual(['/all', 'a/key/own'])
  expect(shown('c')).toEqual(['/all', 'c/key/own'])
})
