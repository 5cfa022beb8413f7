import { describe, expect, it } from 'vitest'
import { daysOf, limitRows } from './limit-rows.ts'
import { KEY, PLAN } from './sample.ts'

const row = (title: string, key = KEY, plan = PLAN) => limitRows(key, plan).find((one) => one.title === title)

describe('a limit in force', () => {
  it('of the key says what the plan would allow', () => {
    expect(row('Requests per minute')).toEqual({
      title: 'Requests per minute',
      value: '60',
      owner: 'key',
      why: 'Plan: 60 if not set, at most 120',
    })
  })

  it('above the ceiling is the ceiling, and says what the key asks for', () => {
    expect(row('Tokens per minute')).toMatchObject({
      value: '100,000',
      owner: 'plan',
      why: 'This key asks for 200,000; the plan’s ceiling is 100,000',
    })
  })

  it('that the key does not set is never called unlimited while the keys share one', () => {
    expect(row('Calls at a time')).toMatchObject({ value: '8', owner: 'plan', why: 'For all keys together' })
  })

  it('names the limit of all keys beside its own', () => {
    const limits = PLAN.limits.map((one) => ({ ...one, shared: 600, sharedOwner: 'account' as const }))
    expect(row('Requests per minute', KEY, { ...PLAN, limits })?.why).toBe('Plan: 60 if not set, at most 120; all keys together have 600')
  })

  it('that nobody sets has no owner', () => {
    expect(row('Calls at a time', { ...KEY, limits: [] }, { ...PLAN, limits: [] })).toEqual({
      title: 'Calls at a time',
      value: 'Not limited',
      why: 'Neither key nor plan nor account sets one',
    })
  })
})

describe('the models in force', () => {
  it('are those of the key that the plan has', () => {
    expect(row('Models')).toMatchObject({ value: 'llama-3.1-8b, llama-3.3-70b', owner: 'key', why: 'All are in the plan' })
  })

  it('leave out a name that the plan does not have, and say so', () => {
    const key = { ...KEY, models: ['llama-3.1-8b', 'gone'] }
    expect(row('Models', key)).toMatchObject({
      value: 'llama-3.1-8b',
      why: 'This key asks for llama-3.1-8b, gone; the plan has fewer by these names',
    })
  })

  it('of a key for all models are the plan’s', () => {
    expect(row('Models', { ...KEY, models: ['*'] })).toMatchObject({ value: 'bge-m3, llama-3.1-8b, llama-3.3-70b', owner: 'plan' })
  })
})

describe('the end of a key', () => {
  const plan = { ...PLAN, ttl: { ceiling: 365 * 86_400 } }

  it('that the plan sets is the plan’s', () => {
    expect(row('Expires', { ...KEY, expiresAt: '2027-08-04T10:00:00Z' }, plan)).toMatchObject({
      value: '4 Aug 2027, 10:00 UTC',
      owner: 'plan',
      why: 'The plan allows 365 days',
    })
  })

  it('before that is the key’s', () => {
    expect(row('Expires', { ...KEY, expiresAt: '2027-02-22T10:00:00Z' }, plan)?.owner).toBe('key')
  })
})

it('a page without the plan shows what it knows, and claims nothing about the plan', () => {
  expect(limitRows(KEY, undefined).map(({ value, why }) => [value, why])).toEqual([
    ['llama-3.3-70b, llama-3.1-8b', ''],
    ['60', ''],
    ['100,000', 'This key asks for 200,000; the plan’s ceiling is 100,000'],
    ['Not known', ''],
    ['Never', ''],
  ])
})

it.each([
  [3600, '1 h'],
  [86_400, '1 day'],
  [31_536_000, '365 days'],
])('%i seconds are %s', (seconds, words) => {
  expect(daysOf(seconds)).toBe(words)
})
