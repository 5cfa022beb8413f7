/** The words of the plan, as a browser gets them. */
import { createElement } from 'react'
import { expect, it } from 'vitest'
import type { PlanView } from '../../server/page-data/keys.ts'
import { htmlOf, wordsOf } from '../static-page.ts'
import { PlanPage } from './plan.tsx'

const PLAN: PlanView = {
  ...{ name: 'team', displayName: 'Team', most: 20, budgets: [], ttl: undefined, currency: 'EUR' },
  limits: [{ limit: 'requestsPerMinute', ceiling: 120, default: 60, shared: 600, sharedOwner: 'account' }],
  models: [{ name: 'llama', price: { input: '0.55', output: '0.8' }, contextTokens: 131_072 }, { name: 'qwen' }],
}
const shown = (plan: PlanView): string =>
  wordsOf(
    htmlOf(createElement(PlanPage), {
      path: '/billing/plan',
      data: [
        [['plan'], plan],
        [['keys'], { keys: [], used: 7 }],
      ],
    }),
  )

it('the plan says what a key may have, what all keys share, and who set that', () => {
  const text = shown(PLAN)
  expect(text).toContain('Team Set by your administrator')
  expect(text).toContain('Requests per minute For each key at most 120 If not set 60 All keys together 600 account')
  expect(text).toContain('7 of 20')
})

it('models have their prices; one without a cheaper price for the cache costs the same from it', () => {
  const text = shown(PLAN)
  expect(text).toContain('EUR per million tokens')
  expect(text).toContain('llama 128k 0.55 0.55 0.80')
  expect(text).toContain('qwen – – – – A model without prices cannot be called with a key that pays in advance.')
})

it('prices for writing to a cache and for each call have columns only where a model has one', () => {
  const whisper = { name: 'whisper', price: { input: '0', output: '0', perRequest: '0.002' } }
  const claude = { name: 'claude', price: { input: '3', cachedInput: '0.3', cacheWrite: '3.75', output: '15' } }
  expect(shown({ ...PLAN, models: [whisper, claude] })).toContain(
    'Model In Cached Cache write Out Per call whisper 0.00 0.00 0.00 0.00 0.002 claude 3.00 0.30 3.75 15.00 –',
  )
  expect(shown({ ...PLAN, models: [whisper] })).toContain('Model In Cached Out Per call whisper 0.00 0.00 0.00 0.002')
})

it('the context of models has a column only where one is known', () => {
  const text = shown({ ...PLAN, models: [{ name: 'llama', price: { input: '0.55', output: '0.8' } }] })
  expect(text).toContain('Model In Cached Out llama 0.55 0.55 0.80')
})

it('a plan that does not exist says whom to ask, and shows no limits', () => {
  const text = shown({ ...PLAN, most: undefined, models: [], limits: [] })
  expect(text).toContain('The plan team does not exist')
  expect(text).not.toContain('For each key')
})

it('a plan without a model says whom to ask', () => {
  expect(shown({ ...PLAN, models: [] })).toContain('This plan has no model that your keys may call. Ask your administrator.')
})
