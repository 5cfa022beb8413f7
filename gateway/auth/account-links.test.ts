import { describe, expect, test } from 'vitest'
import { encodeAccountRecord, type AccountRecord } from '#contract/records/account-record.ts'
import type { PlanRecord } from '#contract/records/plan-record.ts'
import { issuedKey } from '../../test/support/records.ts'
import { GatewayError } from '../errors.ts'
import { limitSubjects } from '../limits/call-limits.ts'
import { AccountLinks } from './account-links.ts'
import { type Caller, callersOf } from './key-table.ts'

const PLAN: PlanRecord = { kind: 'plan', version: 1, revision: 1, uid: 'p1', name: 'pro', generation: 1, models: ['a', 'b'] }
const ACCOUNT: AccountRecord = {
  kind: 'account',
  version: 1,
  revision: 1,
  uid: 'a1',
  name: 'acme',
  generation: 1,
  state: 'Active',
  plan: 'p1',
  ledger: 'spend-of-acme',
}

function callerWith(change: Parameters<typeof issuedKey>[1]): Caller {
  return [...callersOf(issuedKey('k1', { account: 'a1', ...change }).record)][0]![1]
}

function world() {
  const accounts = new Map([['a1', ACCOUNT]])
  const plans = new Map([['p1', PLAN]])
  const links = new AccountLinks(accounts, plans)
  const linked = (caller: Caller): Caller => {
    const answer = links.link(caller)
    if (answer instanceof GatewayError) throw answer
    return answer
  }
  return { accounts, plans, links, linked }
}

describe('a key with an account', () => {
  test('may use the models that its own list and the plan admit', () => {
    expect(world().linked(callerWith({ models: [['b', 'c']] })).record.models).toEqual([
      ['b', 'c'],
      ['a', 'b'],
    ])
  })

  test('is limited by itself and by its account, and the keys of an account share one subject', () => {
    const { accounts, linked } = world()
    accounts.set('a1', { ...ACCOUNT, limits: { requestsPerMinute: 60 } })
    const [own, shared] = limitSubjects(linked(callerWith({ limits: { requestsPerMinute: 5 } })))
    expect([own?.uid, own?.whose, own?.limits]).toEqual(['k1', 'key', { requestsPerMinute: 5 }])
    expect([shared?.uid, shared?.whose, shared?.limits]).toEqual(['spend-of-acme', 'account', { requestsPerMinute: 60 }])
    expect(limitSubjects(linked(callerWith({ uid: 'k2' })))).toEqual([shared])
  })

  test('takes from the balance of its account, which has a subject even without any limit', () => {
    const { accounts, linked } = world()
    expect(limitSubjects(linked(callerWith({})))).toEqual([])
    accounts.set('a1', { ...ACCOUNT, balance: { credits: '-1', billing: 'Prepaid' } })
    const [prepaid] = limitSubjects(linked(callerWith({})))
    expect([prepaid?.uid, prepaid?.limits, prepaid?.balance]).toEqual(['spend-of-acme', {}, { credits: { high: -1, low: 10 ** 15 - 1 } }])
    accounts.set('a1', { ...ACCOUNT, balance: { credits: '-1', billing: 'Unmetered' } })
    const [unmetered] = limitSubjects(linked(callerWith({})))
    expect([unmetered?.uid, unmetered?.balance]).toEqual(['spend-of-acme', { credits: undefined }])
  })

  test('has more to spend with its next request after a credit', () => {
    const { accounts, linked } = world()
    const caller = callerWith({})
    accounts.set('a1', { ...ACCOUNT, balance: { credits: '0', billing: 'Prepaid' } })
    expect(limitSubjects(linked(caller))[0]?.balance).toEqual({ credits: { high: 0, low: 0 } })
    accounts.set('a1', { ...ACCOUNT, balance: { credits: '25000000', billing: 'Prepaid' } })
    expect(limitSubjects(linked(caller))[0]?.balance).toEqual({ credits: { high: 0, low: 25_000_000 } })
  })

  test('follows an edit of the plan with its next request, and is linked once until then', () => {
    const { plans, linked } = world()
    const caller = callerWith({})
    const before = linked(caller)
    expect(linked(caller)).toBe(before)
    plans.set('p1', { ...PLAN, models: ['a'], keyCeiling: { requestsPerMinute: 3 } })
    expect(linked(caller).record.models.at(-1)).toEqual(['a'])
    expect(limitSubjects(linked(caller))[0]).toMatchObject({ limits: { requestsPerMinute: 3 }, limitedBy: { requestsPerMinute: 'plan' } })
  })

  test('shares its compiled lists with keys of equal lists, whatever else differs', () => {
    const { linked } = world()
    const models = [['*']]
    expect(linked(callerWith({ models })).record.models).toBe(linked(callerWith({ uid: 'k2', models })).record.models)
  })

  test.each([
    ['Suspended', 'API key suspended; its account is suspended'],
    ['Deleted', 'API key revoked; its account was deleted'],
  ] as const)('is refused with 401 while its account is %s', (state, text) => {
    const { accounts, links } = world()
    accounts.set('a1', { ...ACCOUNT, state })
    const refusal = links.link(callerWith({}))
    expect(refusal instanceof GatewayError && [refusal.row.number, refusal.message]).toEqual([4, expect.stringContaining(text)])
    accounts.set('a1', ACCOUNT)
    expect(links.link(callerWith({}))).not.toBeInstanceOf(GatewayError)
  })

  test('is refused with 401 while its account never had a plan', () => {
    const { accounts, links } = world()
    accounts.set('a1', { ...ACCOUNT, plan: null })
    expect(links.link(callerWith({}))).toMatchObject({ row: { number: 4 } })
  })

  test('gets 503, and is neither admitted nor refused for good, while the record of its account or plan is missing', () => {
    const { accounts, plans, links } = world()
    plans.clear()
    expect(links.link(callerWith({}))).toMatchObject({ row: { number: 24 } })
    accounts.clear()
    expect(links.link(callerWith({}))).toMatchObject({ row: { number: 24 } })
  })
})

test('a key without an account is itself', () => {
  const caller = callerWith({ account: undefined })
  expect(world().links.link(caller)).toBe(caller)
})

test('the text of an account has no address, and no money but the sum of its credits', () => {
  const text = encodeAccountRecord({ ...ACCOUNT, balance: { credits: '25000000', billing: 'Unmetered' } })
  expect(Object.keys(JSON.parse(text) as object)).toEqual([
    'v',
    'rev',
    'kind',
    'uid',
    'name',
    'generation',
    'state',
    'plan',
    'ledger',
    'balance',
  ])
})
