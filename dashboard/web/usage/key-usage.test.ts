/** What the page of a key says of its usage, as a browser gets it. */
import { createElement } from 'react'
import { expect, it } from 'vitest'
import type { Usage, UsageRow } from '../../server/page-data/usage.ts'
import { daysUntil } from '../days.ts'
import { htmlOf, wordsOf } from '../static-page.ts'
import { KeySpend } from './key-usage.tsx'

const DAY = '2026-11-24'
const NOTHING = { requests: 1, failed: 0, refused: 0, inputTokens: 9, cachedInputTokens: 0, outputTokens: 9, estimated: 0 }
const row = (more: Partial<UsageRow>): UsageRow => ({
  ...NOTHING,
  day: DAY,
  model: 'llama',
  key: 'k-1',
  keyName: 'bot',
  cost: '1.10',
  ...more,
})
const shown = (rows: readonly UsageRow[], incomplete: readonly string[] = []): string => {
  const usage: Usage = { ...daysUntil(DAY, 30), asOf: `${DAY}T12:03:00Z`, incomplete, currency: 'EUR', rows }
  return wordsOf(htmlOf(createElement(KeySpend, { usage, id: 'k-1' }), { path: '/keys/k-1', data: [] })).trim()
}

it('the spend is that of this key alone, by model, and its table has the sum', () => {
  const text = shown([row({}), row({ model: 'qwen', cost: '2.20' }), row({ key: 'k-2', keyName: 'docs', cost: '50.00' })])
  expect(text).toContain('qwen €2.20 llama €1.10')
  expect(text).toContain('All 2.20 1.10 3.30')
  expect(text).not.toContain('50.00')
})

it('a key without a call says so, also while other keys have calls', () => {
  expect(shown([row({ key: 'k-2' })])).toBe('No calls with this key in these 30 days.')
})

it('calls that cost nothing are no empty chart', () => {
  expect(shown([row({ cost: '0.00' })])).toBe('The calls with this key cost nothing: their models have no price.')
})

it('days whose counts were lost are named', () => {
  expect(shown([row({})], ['2026-11-21'])).toContain('Up to ten seconds of calls are missing on 21 November')
})
