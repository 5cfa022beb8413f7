import { expect, it } from 'vitest'
import type { Billing } from '../../server/page-data/billing.ts'
import { hasCalled, stepsOf } from './progress.ts'

const NEW = { isPrepaid: true, balance: '0.00', movements: [] as Billing['movements'] }
const topUp = { time: '2026-11-24T10:00:00Z', type: 'TopUp', id: 'x', reference: '', amount: '10.00', balance: '10.00' } as const
const spend = { ...topUp, time: '2026-11-24', type: 'Spend', amount: '-0.000001' } as const
const states = (...[billing, keys]: Parameters<typeof stepsOf>) => stepsOf(billing, keys).map(({ name, state }) => `${name} ${state}`)

it('a new account tops up first, then makes a key, then calls', () => {
  expect(states(NEW, [])).toEqual(['verify done', 'topUp now', 'key later', 'call later'])
  const paid = { ...NEW, balance: '10.00', movements: [topUp] }
  expect(states(paid, [])).toEqual(['verify done', 'topUp done', 'key now', 'call later'])
  expect(states(paid, [{}])).toEqual(['verify done', 'topUp done', 'key done', 'call now'])
})

it('a step that was done before its turn is ticked', () => {
  expect(states(NEW, [{}])).toEqual(['verify done', 'topUp now', 'key done', 'call later'])
})

it('an account that does not pay in advance has nothing to top up', () => {
  expect(states({ ...NEW, isPrepaid: false, balance: '-3.00' }, [])).toEqual(['verify done', 'key now', 'call later'])
})

it('the first call is seen by its cost, and by its key where it cost nothing', () => {
  expect([hasCalled(NEW, [{}]), hasCalled({ movements: [topUp] }, [])]).toEqual([false, false])
  expect([hasCalled({ movements: [spend] }, []), hasCalled(NEW, [{}, { lastUsedAt: '2026-11-24T10:00:00Z' }])]).toEqual([true, true])
})
