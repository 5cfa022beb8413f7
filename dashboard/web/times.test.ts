import { expect, it } from 'vitest'
import { clockTime, day, dayAndTime, recently, shortDay } from './times.ts'

const at = (text: string): Date => new Date(text)

it('a time says its zone, and has two digits each', () => {
  expect([clockTime(at('2026-11-24T09:03:59Z')), clockTime(at('2026-11-24T23:30:00-02:00'))]).toEqual(['09:03 UTC', '01:30 UTC'])
})

it('a day is the day in UTC', () => {
  const time = at('2026-08-04T23:30:00-02:00')
  expect([day(time), shortDay(time), dayAndTime(time)]).toEqual(['5 Aug 2026', '5 Aug', '5 Aug 2026, 01:30 UTC'])
})

it.each([
  ['2026-11-27T00:00:00Z', 'Today, 00:00 UTC'],
  ['2026-11-26T23:59:00Z', 'Yesterday, 23:59 UTC'],
  ['2026-11-26T00:00:00Z', 'Yesterday, 00:00 UTC'],
  ['2026-11-25T23:59:00Z', '25 Nov 2026, 23:59 UTC'],
  ['2025-11-27T12:00:00Z', '27 Nov 2025, 12:00 UTC'],
])('%s, seen on 27 November 2026, is "%s"', (time, text) => {
  expect(recently(at(time), at('2026-11-27T12:30:00Z'))).toBe(text)
})
