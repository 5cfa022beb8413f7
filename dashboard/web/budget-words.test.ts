import { expect, it } from 'vitest'
import { budgetAmount, presentWindow, resetTime } from './budget-words.ts'

it('the month of a budget is the month in its own time zone', () => {
  const now = new Date('2026-11-30T23:30:00Z')
  expect(presentWindow({ window: 'Month', timeZone: 'UTC' }, now)).toBe('November')
  expect(presentWindow({ window: 'Month', timeZone: 'Europe/Berlin' }, now)).toBe('December')
})

it('a reset is written in the time zone of the budget, with the zone', () => {
  expect(resetTime({ resetsAt: '2026-12-01T00:00:00Z', timeZone: 'UTC' })).toBe('1 Dec 00:00 UTC')
  expect(resetTime({ resetsAt: '2026-11-30T23:00:00Z', timeZone: 'Europe/Berlin' })).toBe('1 Dec 00:00 Europe/Berlin')
})

it('a budget in all has no reset', () => {
  expect(resetTime({ timeZone: 'UTC' })).toBeUndefined()
})

it('a budget of tokens is no money', () => {
  expect(budgetAmount({ unit: 'Tokens' }, '40000', 'EUR')).toBe('40,000 tokens')
  expect(budgetAmount({ unit: 'Currency' }, '25', 'EUR')).toBe('€25.00')
})
