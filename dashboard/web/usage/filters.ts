/** What the usage page shows, as its URL says: a reload, the back button and a link that was sent keep it. Pure. */

import type { DayRange } from '../days.ts'

export const PERIODS = [7, 30, 90] as const
export const SHOWN = ['spend', 'tokens', 'requests'] as const

export interface Filters {
  readonly days: (typeof PERIODS)[number]
  readonly show: (typeof SHOWN)[number]
  /** Id of a key; '' for all. */
  readonly key: string
  /** '' for all. */
  readonly model: string
}

const USUAL: Filters = { days: 30, show: 'spend', key: '', model: '' }

/** @param search the query of the URL. What a URL should not have counts as absent */
export function filtersOf(search: string): Filters {
  const asked = new URLSearchParams(search)
  return {
    days: PERIODS.find((days) => String(days) === asked.get('days')) ?? USUAL.days,
    show: SHOWN.find((show) => show === asked.get('show')) ?? USUAL.show,
    key: asked.get('key') ?? '',
    model: asked.get('model') ?? '',
  }
}

/** The path of the file with the rows that the page shows. */
export function csvPath({ from, to }: DayRange, { key, model }: Filters): string {
  const search = new URLSearchParams({ from, to, ...(key !== '' && { key }), ...(model !== '' && { model }) })
  return `/api/usage.csv?${search}`
}

/** The path of the page with these filters. */
export function usagePath(filters: Filters): string {
  const search = new URLSearchParams()
  if (filters.days !== USUAL.days) search.set('days', String(filters.days))
  if (filters.show !== USUAL.show) search.set('show', filters.show)
  if (filters.key !== '') search.set('key', filters.key)
  if (filters.model !== '') search.set('model', filters.model)
  return search.size === 0 ? '/usage' : `/usage?${search}`
}
