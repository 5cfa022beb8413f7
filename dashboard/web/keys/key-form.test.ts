import { describe, expect, it } from 'vitest'
import {
  expiryHint,
  expiryNotice,
  formOf,
  keyChecks,
  type KeyField,
  type KeyValues,
  neverWords,
  NEW_KEY,
  rateHint,
  rateNotice,
  valuesOf,
} from './key-form.ts'
import { KEY, PLAN } from './sample.ts'

const NOW = new Date('2026-11-24T12:03:04.567Z')
const values = (more: Partial<KeyValues>): KeyValues => ({ ...NEW_KEY, name: 'bot', ...more })
const errorOf = (field: KeyField, more: Partial<KeyValues>): string | undefined => {
  const all = values(more)
  return keyChecks(() => NOW)[field]?.(all[field], all)
}

describe('what is sent', () => {
  it('has no field that was left empty, so that the plan decides', () => {
    expect(formOf(values({}), NOW)).toEqual({ name: 'bot', models: ['*'] })
  })

  it('has what was typed, without spaces and commas between thousands', () => {
    const typed = values({
      name: ' bot ',
      models: 'a\nb',
      budget: ' 1,250.5 '.replace('.5', ''),
      window: 'Week',
      requestsPerMinute: '60',
      tokensPerMinute: '40,000',
    })
    expect(formOf(typed, NOW)).toEqual({
      name: 'bot',
      models: ['a', 'b'],
      budget: { amount: '1250', window: 'Week' },
      requestsPerMinute: 60,
      tokensPerMinute: 40_000,
    })
  })

  it.each([
    [{ expires: '30' }, '2026-12-24T12:03:04Z'],
    [{ expires: 'date', expiresAt: '2027-02-22' }, '2027-02-22T23:59:59Z'],
    [{ expires: 'never', expiresAt: '2027-02-22' }, undefined],
  ])('for %j ends at %s', (more, end) => {
    expect(formOf(values(more), NOW).expiresAt).toBe(end)
  })

  it('of an edit that changes nothing is what the key has already', () => {
    const key = { ...KEY, ownExpiresAt: '2027-02-22T10:00:00Z' }
    expect(formOf(valuesOf(key), NOW, key)).toEqual({
      name: KEY.name,
      models: KEY.models,
      budget: { amount: '25', window: 'Month' },
      requestsPerMinute: 60,
      tokensPerMinute: 200_000,
      expiresAt: '2027-02-22T10:00:00Z',
    })
  })

  it('of an edit leaves numbers and budgets of the plan to the plan', () => {
    const budgets = KEY.budgets.map((budget) => ({ ...budget, owner: 'plan' as const }))
    const key = { ...KEY, limits: [{ limit: 'requestsPerMinute', value: 60, owner: 'plan' } as const], budgets }
    expect(formOf(valuesOf(key), NOW, key)).toEqual({ name: KEY.name, models: KEY.models })
  })
})

describe('the form refuses', () => {
  it.each<[KeyField, Partial<KeyValues>, string]>([
    ['name', { name: '  ' }, 'Give the key a name.'],
    ['name', { name: 'x'.repeat(64) }, 'Use at most 63 characters.'],
    ['models', { models: '' }, 'Tick at least one model, or choose all of the plan.'],
    ['budget', { budget: '25,0' }, 'Write an amount like 25.00.'],
    ['budget', { budget: '-1' }, 'Write an amount like 25.00.'],
    ['budget', { budget: '1e9' }, 'Write an amount like 25.00.'],
    ['budget', { budget: '0.0000001' }, 'Write an amount like 25.00.'],
    ['budget', { budget: '0.00' }, 'Write an amount above 0, or nothing for no budget.'],
    ['requestsPerMinute', { requestsPerMinute: '12.5' }, 'A whole number, 1 or more.'],
    ['requestsPerMinute', { requestsPerMinute: '0' }, 'A whole number, 1 or more.'],
    ['requestsPerMinute', { requestsPerMinute: '1000000001' }, 'At most 1,000,000,000.'],
    ['tokensPerMinute', { tokensPerMinute: 'many' }, 'A whole number, 1 or more.'],
    ['expiresAt', { expires: 'date', expiresAt: '' }, 'Choose a day.'],
    ['expiresAt', { expires: 'date', expiresAt: '2026-11-23' }, 'Choose a day in the future.'],
  ])('%s of %j: %s', (field, more, error) => {
    expect(errorOf(field, more)).toBe(error)
  })

  it.each<[KeyField, Partial<KeyValues>]>([
    ['budget', { budget: '' }],
    ['budget', { budget: '25.00' }],
    ['budget', { budget: '1,000' }],
    ['tokensPerMinute', { tokensPerMinute: '200000' }],
    ['expiresAt', { expires: 'date', expiresAt: '2026-11-24' }],
    ['expiresAt', { expires: 'never', expiresAt: '2020-01-01' }],
  ])('%s of %j is accepted', (field, more) => {
    expect(errorOf(field, more)).toBeUndefined()
  })
})

describe('beside a rate the form says', () => {
  it('what holds where it is left empty, and the ceiling with its owner', () => {
    expect(rateHint('requestsPerMinute', PLAN)).toEqual([{ text: 'Empty: 60. Ceiling 120', owner: 'plan' }])
  })

  it('what all keys share', () => {
    const plan = { ...PLAN, limits: [{ limit: 'requestsPerMinute', shared: 600, sharedOwner: 'account' } as const] }
    expect(rateHint('requestsPerMinute', plan)).toEqual([
      { text: 'Empty: no limit of its own.' },
      { text: 'All keys together 600', owner: 'account' },
    ])
  })

  it('that the ceiling will hold above the ceiling, and nothing up to it', () => {
    expect(rateNotice('tokensPerMinute', '200,000', PLAN)).toEqual({ text: 'Above the ceiling: 100,000 will hold.', owner: 'plan' })
    expect(['100000', '', 'many'].map((text) => rateNotice('tokensPerMinute', text, PLAN))).toEqual([undefined, undefined, undefined])
  })
})

describe('beside the end of the key the form says', () => {
  const plan = { ...PLAN, ttl: { ceiling: 365 * 86_400 } }

  it('what never means in a plan with a ceiling or a default', () => {
    expect([neverWords(PLAN), neverWords(plan), neverWords({ ttl: { default: 90 * 86_400, ceiling: 365 * 86_400 } })]).toEqual([
      'Never',
      'As long as the plan allows (365 days)',
      'As the plan sets (90 days)',
    ])
  })

  it('the day and time that were chosen', () => {
    expect(expiryHint(values({ expires: '90' }), PLAN, NOW)).toBe('On 22 Feb 2027, 12:03 UTC. The plan sets no ceiling.')
    expect(expiryHint(values({ expires: 'date', expiresAt: '2027-02-22' }), plan, NOW)).toBe(
      'At the end of 22 Feb 2027, UTC. The plan allows 365 days.',
    )
  })

  it('that the plan’s end will hold before a later one', () => {
    const facts = { now: NOW, createdAt: NOW }
    expect(expiryNotice(values({ expires: 'date', expiresAt: '2028-01-01' }), plan, facts)).toEqual({
      text: 'Behind what the plan allows: 24 Nov 2027, 12:03 UTC will hold.',
      owner: 'plan',
    })
    expect(expiryNotice(values({ expires: '90' }), plan, facts)).toBeUndefined()
  })
})
