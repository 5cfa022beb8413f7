import fc from 'fast-check'
import { expect, it } from 'vitest'
import { filtersOf, PERIODS, SHOWN, usagePath } from './filters.ts'

it('the filters of a URL are those with which the URL was made, whatever a model is called', () => {
  const filters = fc.record({ days: fc.constantFrom(...PERIODS), show: fc.constantFrom(...SHOWN), key: fc.string(), model: fc.string() })
  fc.assert(
    fc.property(filters, (wanted) => {
      expect(filtersOf(new URL(usagePath(wanted), 'http://x.example').search)).toEqual(wanted)
    }),
  )
})

it('a URL without filters shows the spend of 30 days for all keys and models, and is short', () => {
  expect(filtersOf('')).toEqual({ days: 30, show: 'spend', key: '', model: '' })
  expect(usagePath(filtersOf(''))).toBe('/usage')
})

it.each(['?days=31', '?days=-7&show=profit', '?days=7e0', '?show='])('%s, written by hand, is not a crash', (search) => {
  expect(filtersOf(search)).toEqual({ days: 30, show: 'spend', key: '', model: '' })
})
