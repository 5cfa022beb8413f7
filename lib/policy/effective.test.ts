import { describe, expect, test } from 'vitest'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import { balanceOf, effective, isLimited, type PlanPolicy, sharedPolicy } from './effective.ts'

const DAY: BudgetRecord = { name: 'day', unit: 'Tokens', amount: 5, window: 'Day', timeZone: 'UTC', onExceeded: 'Audit' }

describe('the effective policy of a key', () => {
  test('is what its record says, and names the key as the owner of each limit and budget', () => {
    const key = { models: [['llama']], limits: { requestsPerMinute: 5 }, budgets: [DAY], onStoreUnavailable: 'LocalShare' } as const
    expect(effective(key)).toEqual({ ...key, limitedBy: { requestsPerMinute: 'key' }, budgets: [{ ...DAY, whose: 'key' }] })
  })

  test('of a key without limits limits nothing; without a policy for a lost Redis requests are refused', () => {
    const policy = effective({ models: [['*']] })
    expect(policy).toEqual({ models: [['*']], limits: {}, limitedBy: {}, budgets: [], onStoreUnavailable: 'FailClosed' })
    expect(isLimited(policy)).toBe(false)
    expect([isLimited(effective({ limits: { maxConcurrentRequests: 1 } })), isLimited(effective({ budgets: [DAY] }))]).toEqual([true, true])
  })
})

describe('the effective policy of a key with an account', () => {
  const plan: PlanPolicy = {
    models: ['a', 'b'],
    keyDefault: { requestsPerMinute: 10 },
    keyCeiling: { requestsPerMinute: 60, tokensPerMinute: 1_000 },
    keyBudgets: [{ ...DAY, onExceeded: 'Block' }],
  }

  test('admits the models that both lists admit', () => {
    expect(effective({ models: [['b', 'c']] }, plan).models).toEqual([
      ['b', 'c'],
      ['a', 'b'],
    ])
  })

  test.each([
    ['its own value below the ceiling', 30, 30, 'key'],
    ['its own value that equals the ceiling', 60, 60, 'key'],
    ['the ceiling where its own value is above', 100, 60, 'plan'],
    ['the default where it has no value', undefined, 10, 'plan'],
  ] as const)('has %s', (_, own, limit, owner) => {
    const { limits, limitedBy } = effective({ models: [['*']], limits: own === undefined ? {} : { requestsPerMinute: own } }, plan)
    expect([limits.requestsPerMinute, limitedBy.requestsPerMinute]).toEqual([limit, owner])
  })

  test('has the ceiling where there is neither a value nor a default, and no limit without a ceiling', () => {
    const { limits, limitedBy } = effective({ models: [['*']] }, plan)
    expect([limits.tokensPerMinute, limitedBy.tokensPerMinute, limits.maxConcurrentRequests]).toEqual([1_000, 'plan', undefined])
  })

  test('has the ceiling where the default is above the ceiling', () => {
    expect(effective({}, { models: ['*'], keyDefault: { requestsPerMinute: 9 }, keyCeiling: { requestsPerMinute: 4 } }).limits).toEqual({
      requestsPerMinute: 4,
    })
  })

  test('has its own budgets and those of the plan, whose names cannot be the same', () => {
    expect(effective({ budgets: [DAY] }, plan).budgets.map(({ name, whose }) => [name, whose])).toEqual([
      ['day', 'key'],
      ['plan/day', 'plan'],
    ])
  })

  test('refuses requests while Redis is away, whatever the key says', () => {
    expect(effective({ onStoreUnavailable: 'LocalShare' }, plan).onStoreUnavailable).toBe('FailClosed')
  })
})

describe('what all keys of an account share', () => {
  test('is the smallest of account and plan, and the budgets of both', () => {
    const account = { limits: { requestsPerMinute: 50, tokensPerMinute: 9_000 }, budgets: [DAY] }
    const plan = {
      models: ['*'],
      accountLimits: { requestsPerMinute: 100, tokensPerMinute: 500, maxConcurrentRequests: 3 },
      accountBudgets: [DAY],
    }
    expect(sharedPolicy(account, plan)).toEqual({
      limits: { requestsPerMinute: 50, tokensPerMinute: 500, maxConcurrentRequests: 3 },
      limitedBy: { requestsPerMinute: 'account', tokensPerMinute: 'plan', maxConcurrentRequests: 'plan' },
      budgets: [
        { ...DAY, whose: 'account' },
        { ...DAY, name: 'plan/day', whose: 'plan' },
      ],
      onStoreUnavailable: 'FailClosed',
    })
  })

  test('is the part of the account alone where there is no plan', () => {
    expect(isLimited(sharedPolicy({}, undefined))).toBe(false)
    expect(sharedPolicy({ limits: { maxConcurrentRequests: 2 } }, undefined).limitedBy).toEqual({ maxConcurrentRequests: 'account' })
  })
})

describe('the balance of an account', () => {
  const prepaid = (credits: string) => ({ balance: balanceOf({ balance: { credits, billing: 'Prepaid' } }) })
  const unmetered = (credits: string) => ({ balance: balanceOf({ balance: { credits, billing: 'Unmetered' } }) })

  test('is its credits where it is Prepaid, exact also beyond 2^53 micro-units', () => {
    expect(prepaid('9007199254740993')).toEqual({ balance: { credits: { high: 9, low: 7_199_254_740_993 } } })
    expect(prepaid('-1')).toEqual({ balance: { credits: { high: -1, low: 10 ** 15 - 1 } } })
  })

  test('has no credits to refuse by where it is Unmetered, and is none in a record from before balances', () => {
    expect(unmetered('-1')).toEqual({ balance: { credits: undefined } })
    expect(balanceOf({})).toBeUndefined()
  })

  test('is not a limit of a policy: an account without limits limits nothing', () => {
    expect(isLimited({ ...sharedPolicy({}, undefined), ...prepaid('0') })).toBe(false)
  })
})
