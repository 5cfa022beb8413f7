import { describe, expect, test } from 'vitest'
import type { BudgetRecord } from '#contract/records/limits-record.ts'
import type { SpendEntry } from '../shards/spend-entry.ts'
import { forgettable, hasLostSpend, knownAfter, presentWindows, readingsOf, shownLoss, withLoss } from './spend-plan.ts'

const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 2, 15, 12)
const TODAY = Date.UTC(2026, 2, 15)
const day: BudgetRecord = { name: 'day', unit: 'Tokens', amount: 100, window: 'Day', timeZone: 'UTC', onExceeded: 'Block' }
const ever: BudgetRecord = { ...day, name: 'ever', window: 'Lifetime' }
const spentOf = (spent: number, unsettled = 0) => ({ spent, unsettled, held: 0 })
const entry = (spent: Record<string, number>, more: Partial<SpendEntry> = {}): SpendEntry => ({
  uid: 'u',
  spent: new Map(Object.entries(spent)),
  atMs: 1,
  uncertain: undefined,
  ...more,
})
const after = (known: SpendEntry | undefined, budgets: readonly BudgetRecord[], ...windows: ReturnType<typeof spentOf>[]) =>
  knownAfter(known, { uid: 'u', asked: presentWindows(budgets, NOW), windows, nowMs: NOW })

describe('the known spend of a budget', () => {
  test('is read by the names that gateways use', () => {
    expect(presentWindows([day, { ...day, timeZone: 'Europe/Berlin' }, ever], NOW).map(({ field }) => field)).toEqual([
      `day:Tokens:Day:${TODAY}`,
      `day:Tokens:Day:${TODAY - 3_600_000}`,
      'ever:Tokens:Lifetime:0',
    ])
  })

  test('is not read for a time zone that this build does not know, and other budgets are still read', () => {
    expect(presentWindows([{ ...day, timeZone: 'Mars/Olympus' }, ever], NOW).map(({ field }) => field)).toEqual(['ever:Tokens:Lifetime:0'])
  })

  test('is the highest spend ever seen, and the same entry if nothing has changed', () => {
    const known = entry({ [`day:Tokens:Day:${TODAY}`]: 7 })
    expect(after(undefined, [day], spentOf(0))).toBeUndefined()
    expect(after(known, [day], spentOf(7))).toBe(known)
    expect(after(known, [day], spentOf(3))).toBe(known)
    expect(after(known, [day], spentOf(9))).toMatchObject({ spent: new Map([[`day:Tokens:Day:${TODAY}`, 9]]), atMs: NOW })
  })

  test('loses closed windows, keeps windows of removed budgets, which may return, and has a bound', () => {
    const [yesterday, old] = [TODAY - DAY_MS, TODAY - 3 * DAY_MS]
    const known = entry({
      [`day:Tokens:Day:${yesterday}`]: 5,
      [`removed:Tokens:Day:${TODAY}`]: 3,
      [`removed:Tokens:Day:${old}`]: 2,
      'removed:Tokens:Lifetime:0': 1,
    })
    expect([...(after(known, [day], spentOf(1))?.spent ?? [])]).toEqual(
      [
        [`day:Tokens:Day:${TODAY}`, 1],
        ['removed:Tokens:Lifetime:0', 1],
        [`removed:Tokens:Day:${TODAY}`, 3],
      ].toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
    )
    const many = entry(Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`b${at}:Tokens:Lifetime:0`, 1])))
    const kept = after(many, [day], spentOf(1))?.spent
    expect([kept?.size, kept?.get(`day:Tokens:Day:${TODAY}`)]).toEqual([32, 1])
  })

  test('shows lost spend, and no loss without spend', () => {
    const asked = presentWindows([day, ever], NOW)
    const known = entry({ [`day:Tokens:Day:${TODAY}`]: 7, 'ever:Tokens:Lifetime:0': 9 })
    expect([spentOf(8), spentOf(9), spentOf(10)].map((ever) => hasLostSpend(known, asked, [spentOf(7), ever]))).toEqual([
      true,
      false,
      false,
    ])
    expect(hasLostSpend(undefined, asked, [spentOf(0), spentOf(0)])).toBe(false)
  })

  test('includes the holds of dead processes', () => {
    expect(readingsOf(presentWindows([day], NOW), [spentOf(5, 2)])).toMatchObject([{ budget: 'day', spent: 7, windowStartMs: TODAY }])
  })
})

test('a window is dropped from the ledger one window after its end, and a Lifetime with its budget', () => {
  const fields = [TODAY, TODAY - DAY_MS, TODAY - 3 * DAY_MS].map((start) => `day:Tokens:Day:${start}`)
  expect(forgettable([...fields, 'ever:Tokens:Lifetime:0', 'removed:Tokens:Lifetime:0', 'odd'], [day, ever], NOW)).toEqual([
    fields[2],
    'removed:Tokens:Lifetime:0',
    'odd',
  ])
})

test('two losses within a minute are one interval, which is shown for a day', () => {
  const first = withLoss(entry({}), { fromMs: NOW, toMs: NOW + 10_000 })
  expect(withLoss(first, { fromMs: NOW + 12_000, toMs: NOW + 20_000 }).uncertain).toEqual({ fromMs: NOW, toMs: NOW + 20_000 })
  const later = { fromMs: NOW + 3_600_000, toMs: NOW + 3_610_000 }
  expect(withLoss(first, later).uncertain).toEqual(later)
  expect([shownLoss(first, NOW + DAY_MS), shownLoss(first, NOW + DAY_MS + 10_000)]).toEqual([first.uncertain, undefined])
})
