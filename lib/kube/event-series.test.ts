import { expect, test } from 'vitest'
import { EventSeries, type EventIdentity } from './event-series.ts'

const MINUTE = 60_000
const issued: EventIdentity = { uid: 'u', action: 'Issue', reason: 'Issued', type: 'Normal' }

test('the same event within 6 minutes is counted on the first: written at the second time, then every 30 minutes', () => {
  const series = new EventSeries()
  expect(series.next(issued, 0)).toEqual({ step: 'create' })
  series.created(issued, 'bot.1')
  const steps = Array.from({ length: 12 }, (_each, index) => series.next(issued, (index + 1) * 5 * MINUTE))
  const refreshes = steps.flatMap((step, index) => (step.step === 'refresh' ? [{ minute: (index + 1) * 5, count: step.count }] : []))
  expect(refreshes).toEqual([
    { minute: 5, count: 2 },
    { minute: 35, count: 8 },
  ])
  expect(series.next(issued, 66.1 * MINUTE).step).toBe('create')
})

test('a repeat while the first is still being written is written with a later one', () => {
  const series = new EventSeries()
  series.next(issued, 0)
  expect(series.next(issued, 10).step).toBe('counted')
  series.created(issued, 'bot.1')
  expect(series.next(issued, 20)).toEqual({ step: 'refresh', name: 'bot.1', count: 3 })
})

test('another object, reason, action or type is another event', () => {
  const series = new EventSeries()
  series.next(issued, 0)
  for (const other of [{ uid: 'v' }, { reason: 'Revoked' }, { action: 'Revoke' }, { type: 'Warning' }]) {
    expect(series.next({ ...issued, ...other }, 1).step).toBe('create')
  }
})

test('an event that could not be written is made again', () => {
  const series = new EventSeries()
  series.next(issued, 0)
  series.failed(issued)
  expect(series.next(issued, 1).step).toBe('create')
})

test('an object gets 25 events at once, then one per 300 s; others are not touched', () => {
  const series = new EventSeries()
  const step = (n: number, atMs: number, uid = 'u'): string => series.next({ ...issued, uid, reason: `R${n}` }, atMs).step
  expect(Array.from({ length: 30 }, (_each, n) => step(n, 0)).filter((each) => each === 'create')).toHaveLength(25)
  expect(step(100, 299_999)).toBe('dropped')
  expect(step(101, 300_000)).toBe('create')
  expect(step(102, 300_001)).toBe('dropped')
  expect(step(1, 300_001, 'another')).toBe('create')
})
