import { describe, expect, test } from 'vitest'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import { heldKey, issued } from '../../test/support/observed-key.ts'
import { type ApiKeySpec } from '#api/apikey.ts'
import type { Observed } from './apikey/observed.ts'
import { statusOf } from './apikey/status.ts'
import type { BudgetReading, SubjectUsage } from '../books/subject-ledger.ts'
import { usageStatus, weigh } from './usage-status.ts'

const JANUARY = Date.UTC(2026, 0, 1)
const MONTH: BudgetRecord = {
  name: 'month',
  unit: 'Currency',
  amount: 25_000_000,
  window: 'Month',
  timeZone: 'Europe/Berlin',
  onExceeded: 'Block',
}
const EVER: BudgetRecord = { name: 'ever', unit: 'Tokens', amount: 1_000, window: 'Lifetime', timeZone: 'UTC', onExceeded: 'Audit' }
const SPEC: Partial<ApiKeySpec> = {
  budgets: [{ name: 'month', amount: '25', unit: 'Currency', window: 'Month', timeZone: 'Europe/Berlin', onExceeded: 'Block' }],
}

const inMonth = (spent: number, windowStartMs = JANUARY): BudgetReading => ({
  budget: 'month',
  unit: 'Currency',
  window: 'Month',
  spent,
  windowStartMs,
})
const inAll = (spent: number): BudgetReading => ({ budget: 'ever', unit: 'Tokens', window: 'Lifetime', spent, windowStartMs: 0 })
const used = (...budgets: readonly BudgetReading[]): SubjectUsage => ({ budgets, lastUsedMs: undefined })
const shown = (usage: SubjectUsage | undefined, budgets = [EVER, MONTH], status = {}) => usageStatus(status, budgets, usage)
const reason = ({ conditions = [] }: ReturnType<typeof statusOf>, type: string): string | undefined =>
  conditions.find((condition) => condition.type === type)?.reason

describe('the use of a key in its status', () => {
  test('is the exact spend and rest of each budget, and the start of its window', () => {
    expect(shown(used(inMonth(20_000_001), inAll(250)))).toEqual({
      usage: [
        { budget: 'ever', used: '250', remaining: '750', percent: 25, announcedPercent: 0 },
        {
          budget: 'month',
          windowStartTime: '2026-01-01T00:00:00Z',
          used: '20.000001',
          remaining: '4.999999',
          percent: 80,
          announcedPercent: 80,
        },
      ],
    })
  })

  test.each([
    [0, 0, '25.00'],
    [24_999_999, 99, '0.000001'],
    [25_000_000, 100, '0.00'],
    [40_000_000, 160, '0.00'],
    [999_999_999_999_999, 3_999_999_999, '0.00'],
  ])('of %i micro-units of 25 is %i per cent, with %s left, and is never rounded up to 100', (spent, percent, remaining) => {
    expect(shown(used(inMonth(spent))).usage).toEqual([expect.objectContaining({ percent, remaining })])
  })

  test('of a budget of 0 is 100 per cent', () => {
    expect(shown(used(inMonth(0)), [{ ...MONTH, amount: 0 }]).usage).toEqual([expect.objectContaining({ percent: 100, remaining: '0.00' })])
  })

  test('does not count spend in another unit or window under the same name', () => {
    expect(shown(used(inMonth(7)), [{ ...MONTH, unit: 'Tokens' }])).toEqual({})
    expect(shown(used(inMonth(7)), [{ ...MONTH, window: 'Week' }])).toEqual({})
  })

  test('starts at 0 for a renamed budget, and keeps the spend if the amount changes', () => {
    expect(shown(used(inMonth(7)), [{ ...MONTH, name: 'monthly' }])).toEqual({})
    expect(shown(used(inMonth(5_000_000)), [{ ...MONTH, amount: 10_000_000 }]).usage).toEqual([
      expect.objectContaining({ used: '5.00', remaining: '5.00', percent: 50 }),
    ])
  })

  test('stays unchanged until the first reading, as after a start, without removed budgets', () => {
    const status = { ...shown(used(inMonth(7), inAll(250))), lastUsedTime: '2026-01-01T00:00:00Z' }
    expect(shown(undefined, [EVER, MONTH], status)).toEqual(status)
    expect(shown(undefined, [EVER], status).usage?.map(({ budget }) => budget)).toEqual(['ever'])
  })

  test('names the hour of the last use', () => {
    expect(shown({ budgets: [], lastUsedMs: Date.UTC(2026, 0, 1, 9, 59, 59) })).toEqual({ lastUsedTime: '2026-01-01T09:00:00Z' })
  })
})

describe('a budget that is used up', () => {
  const spending = (spent: number, spec = SPEC): Observed => ({ ...issued(heldKey(spec)), usage: used(inMonth(spent)) })

  test('does not exist one micro-unit earlier', () => {
    const status = statusOf(spending(24_999_999))
    expect([reason(status, 'BudgetExhausted'), reason(status, 'Ready')]).toEqual([undefined, 'Ready'])
  })

  test('refuses no request if it only audits', () => {
    const budgets = SPEC.budgets?.map((budget) => ({ ...budget, onExceeded: 'Audit' as const }))
    expect(reason(statusOf(spending(99_000_000, { budgets })), 'Ready')).toBe('Ready')
  })
})

describe('the weight of a new status', () => {
  const blocking = [MONTH]
  const at = (spent: number, windowStartMs = JANUARY) => shown(used(inMonth(spent, windowStartMs)), [MONTH])
  const from = (before: number, after: number) => weigh(at(before), at(after), blocking)

  test('is None for less than a per cent', () => {
    expect(from(1_000_000, 1_249_999)).toEqual({ kind: 'None', size: 0 })
  })

  test('is the largest change of a budget in per cent, up or down', () => {
    expect(from(1_000_000, 6_000_000)).toEqual({ kind: 'Changed', size: 20 })
    expect(from(6_000_000, 1_000_000)).toEqual({ kind: 'Changed', size: 20 })
  })

  test('is Exhausted when the budget is used up, and only once', () => {
    expect(from(24_999_999, 25_000_000).kind).toBe('Exhausted')
    expect(from(25_000_000, 25_100_000).kind).toBe('None')
    expect(weigh(at(0), at(25_000_000), [{ ...MONTH, onExceeded: 'Audit' }]).kind, 'of a budget that only audits').toBe('Changed')
  })

  test('is Changed for a new window and for the first use', () => {
    expect(weigh(at(25_000_000), at(0, Date.UTC(2026, 1, 1)), blocking)).toEqual({ kind: 'Changed', size: 100 })
    expect(weigh({}, at(1), blocking).kind).toBe('Changed')
  })

  test('is Changed for another hour of the last use', () => {
    expect(weigh({ lastUsedTime: '2026-01-01T09:00:00Z' }, { lastUsedTime: '2026-01-01T10:00:00Z' }, blocking)).toEqual({
      kind: 'Changed',
      size: 0,
    })
  })
})
