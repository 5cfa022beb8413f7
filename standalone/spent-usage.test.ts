import { describe, expect, test } from 'vitest'
import { ManualClock } from '../test/support/manual-clock.ts'
import { apiKey } from '../test/support/objects.ts'
import type { ApiKey } from '#api/apikey.ts'
import type { SubjectUsage } from '../operator/books/subject-ledger.ts'
import { SpentUsage } from './spent-usage.ts'

const NOW = Date.UTC(2026, 0, 14, 23, 59)
const DAY = Date.UTC(2026, 0, 14)
const budget = (timeZone?: string) =>
  ({
    name: 'day',
    amount: '100',
    unit: 'Tokens',
    window: 'Day',
    onExceeded: 'Block',
    ...(timeZone === undefined ? {} : { timeZone }),
  }) as const
const keyWith = (budgets: ApiKey['spec']['budgets'], uid = 'u'): ApiKey => apiKey('bot', { budgets }, { uid, generation: 1 })

/** A source over spend that a test sets. */
function source(keys: ApiKey[], spent: Record<string, Record<string, number>>) {
  const clock = new ManualClock(NOW)
  const readings: SubjectUsage[] = []
  const usage = new SpentUsage({ clock, keys: { list: () => keys }, spent: () => spent })
  usage.onRead((_uid, reading) => void readings.push(reading))
  usage.start()
  return { clock, readings, usage }
}

describe('the spend that statuses show', () => {
  test('is that of the current window, reported when it changes', async () => {
    const spent: Record<string, Record<string, number>> = { u: { 'day:Tokens:Day:0': 5 } }
    const { clock, readings, usage } = source([keyWith([budget()])], spent)
    await clock.advance(5_000)
    expect(readings, 'nothing was spent today').toEqual([])
    spent['u'] = { [`day:Tokens:Day:${DAY}`]: 80 }
    await clock.advance(5_000)
    expect(readings).toEqual([
      { budgets: [{ budget: 'day', unit: 'Tokens', window: 'Day', spent: 80, windowStartMs: DAY }], lastUsedMs: undefined },
    ])
    await clock.advance(60_000)
    expect(readings.at(-1)?.budgets[0], 'another day begins at zero').toMatchObject({ spent: 0, windowStartMs: DAY + 86_400_000 })
    usage.stop()
    expect(clock.pending).toBe(0)
  })

  test('follows an edit of the amount, and has no window in an unknown time zone', async () => {
    const spent = { u: { [`day:Tokens:Day:${DAY}`]: 80 }, v: { [`day:Tokens:Day:${DAY}`]: 1 } }
    const keys = [keyWith([budget()]), keyWith([budget('Nowhere/Land')], 'v'), apiKey('free', {}, { uid: 'w' })]
    const { clock, readings } = source(keys, spent)
    await clock.advance(1_000)
    expect(readings).toHaveLength(1)
    keys[0] = apiKey('bot', { budgets: [budget()] }, { uid: 'u', generation: 2 })
    await clock.advance(1_000)
    expect(readings).toHaveLength(2)
  })
})
