import { describe, expect, test } from 'vitest'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import { effective, isLimited } from './effective.ts'

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
