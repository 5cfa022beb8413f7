import { describe, expect, it } from 'vitest'
import { daysUntil } from '../days.ts'
import { coveredRange, periodIndex, periodsOf, rowsIn, unitOf } from './periods.ts'

const TODAY = '2026-11-27'
const rows = (...days: string[]) => days.map((day) => ({ day }))

describe('7 and 30 days', () => {
  it('have a column for each day', () => {
    const periods = periodsOf([], daysUntil(TODAY, 30))
    expect(periods).toHaveLength(30)
    expect([periods[0]?.name, periods.at(-1)?.label]).toEqual(['Thu 29 Oct', '27 Nov'])
  })

  it('do not count a month of which all days are older', () => {
    const range = daysUntil(TODAY, 30)
    expect(rowsIn(rows('2026-10', '2026-10-30'), range)).toEqual(rows('2026-10-30'))
    expect(unitOf(rows('2026-10-30'), range)).toBe('day')
  })
})

describe('90 days', () => {
  const range = daysUntil(TODAY, 90)

  it('have a column for each week, and the last one is a whole week', () => {
    const periods = periodsOf(rows('2026-09-01', TODAY), range)
    expect(periods).toHaveLength(13)
    expect([periods[0], periods.at(-1)]).toMatchObject([
      { from: '2026-08-30', to: '2026-09-04', name: '30 Aug to 4 Sep', label: '30 Aug' },
      { from: '2026-11-21', to: '2026-11-27', name: '21 Nov to 27 Nov' },
    ])
  })

  it('have no gap and no day twice', () => {
    const periods = periodsOf([], range)
    const places = Array.from({ length: 90 }, (_, index) =>
      periodIndex(periods, { day: new Date(Date.parse(range.from) + index * 86_400_000).toISOString().slice(0, 10) }),
    )
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(new Set(places).size).toBe(13)
  })

  it('have a column for each month once a month is kept as a whole, and say what is covered', () => {
    const kept = rows('2026-08', '2026-09', '2026-10', '2026-10-30', TODAY)
    const periods = periodsOf(rowsIn(kept, range), range)
    expect(periods.map(({ name }) => name)).toEqual(['August', 'September', 'October', 'November until 27 Nov'])
    expect(coveredRange(kept, range)).toEqual({ from: '2026-08-01', to: TODAY })
    expect(kept.map((row) => periodIndex(periods, row))).toEqual([0, 1, 2, 2, 3])
  })

  it('name the year of a month of last year', () => {
    expect(periodsOf(rows('2025-12'), daysUntil('2026-01-31', 90)).map(({ name, label }) => [name, label])).toEqual([
      ['November 2025', 'Nov'],
      ['December 2025', 'Dec'],
      ['January', 'Jan'],
    ])
  })
})
