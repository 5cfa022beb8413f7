import { describe, expect, it } from 'vitest'
import { dayName, daysOf, daysUntil, longDay, monthRange, monthsOf, rangeText, shortDay, utcDay } from './days.ts'

it('the day is the day in UTC, at every place', () => {
  expect(utcDay(new Date('2026-11-24T23:30:00-02:00'))).toBe('2026-11-25')
})

describe('a range', () => {
  it.each([
    [7, '2026-11-21'],
    [30, '2026-10-29'],
    [90, '2026-08-30'],
  ])('of %i days until 27 November begins with %s, and has that many days', (count, from) => {
    const range = daysUntil('2026-11-27', count)
    expect(range).toEqual({ from, to: '2026-11-27' })
    expect(daysOf(range)).toHaveLength(count)
  })

  it('goes over the end of a year and over a leap day', () => {
    expect(daysOf({ from: '2027-12-31', to: '2028-01-01' })).toEqual(['2027-12-31', '2028-01-01'])
    expect(daysOf({ from: '2028-02-28', to: '2028-03-01' })).toEqual(['2028-02-28', '2028-02-29', '2028-03-01'])
  })

  it('has the months of its days', () => {
    expect(monthsOf({ from: '2026-08-30', to: '2026-11-27' })).toEqual(['2026-08', '2026-09', '2026-10', '2026-11'])
    expect([monthRange('2028-02'), monthRange('2026-12')]).toEqual([
      { from: '2028-02-01', to: '2028-02-29' },
      { from: '2026-12-01', to: '2026-12-31' },
    ])
  })

  it('is read with the year only where the year is another', () => {
    expect(rangeText({ from: '2026-10-26', to: '2026-11-24' }, '2026-11-24')).toBe('26 October to 24 November')
    expect(rangeText({ from: '2025-12-20', to: '2026-01-02' }, '2026-01-02')).toBe('20 December 2025 to 2 January')
    expect(rangeText({ from: '2026-01-02', to: '2026-01-02' }, '2026-01-02')).toBe('2 January')
  })
})

it('a day has its weekday', () => {
  expect([dayName('2026-11-24'), shortDay('2026-01-05'), longDay('2026-08-30')]).toEqual(['Tue 24 Nov', '5 Jan', '30 August'])
})
