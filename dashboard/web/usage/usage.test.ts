/** The words and numbers of Usage, as a browser gets them. */
import { createElement } from 'react'
import { describe, expect, it } from 'vitest'
import type { Usage, UsageRow } from '../../server/page-data/usage.ts'
import { daysUntil, utcDay } from '../days.ts'
import { htmlOf, wordsOf } from '../static-page.ts'
import { UsagePage } from './usage.tsx'

const NOTHING = { requests: 0, failed: 0, refused: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, cost: '0.00', estimated: 0 }
const DAY = '2026-11-24'
const row = (more: Partial<UsageRow>): UsageRow => ({ ...NOTHING, day: DAY, model: 'llama', key: 'k-1', keyName: 'bot', ...more })
const ROWS = [
  row({ requests: 98, failed: 1, refused: 2, inputTokens: 100_000, cachedInputTokens: 36_000, outputTokens: 20_000, cost: '1.10' }),
  row({
    day: '2026-11-23',
    model: 'qwen',
    key: 'k-2',
    keyName: 'docs',
    requests: 2,
    inputTokens: 7,
    outputTokens: 9,
    cost: '2.20',
    estimated: 1,
  }),
]

function html(path = '/usage', more: Partial<Usage> = {}): string {
  const days = Number(new URLSearchParams(path.split('?')[1]).get('days') ?? 30)
  const asked = daysUntil(utcDay(new Date()), days)
  const usage: Usage = { ...daysUntil(DAY, days), asOf: `${DAY}T12:03:00Z`, incomplete: [], currency: 'EUR', rows: ROWS, ...more }
  const revoked = { id: 'k-2', wanted: 'Revoked', state: 'Revoked', budgets: [] }
  return htmlOf(createElement(UsagePage), {
    path,
    data: [
      [['usage', asked.from, asked.to], usage],
      [['keys'], { keys: [revoked], used: 0 }],
    ],
  })
}
const shown = (...args: Parameters<typeof html>): string => wordsOf(html(...args))

/** The last row of each table. */
function footers(page: string): string[] {
  return [...page.matchAll(/<tfoot.*?<\/tfoot>/gs)].map(([foot]) => wordsOf(foot).trim())
}

describe('the figures', () => {
  it('are those of all tables', () => {
    const page = html()
    const text = wordsOf(page)
    expect(text).toContain('Spend ≈ €3.30 26 October to 24 November')
    expect(text).toContain('Requests 102 97.0 % answered')
    expect(text).toContain('Tokens 120 k 35 % of those read came from the cache')
    expect(footers(page)).toEqual([
      'All 2.20 1.10 3.30',
      'All In 100,007 Of these cached 36,000 Out 20,009 EUR ≈ 3.30',
      'All Requests 102 Share 100.00 %',
    ])
  })

  it.each([
    ['/usage?show=tokens', 'Tokens per day', 'All 64,007 36,000 20,009 120,016'],
    ['/usage?show=requests', 'Requests per day, by outcome', 'All 99 2 1 102'],
    ['/usage?model=qwen', 'Spend per day, by key', 'All 2.20'],
    ['/usage?key=k-1', 'Spend per day, by model', 'All 1.10'],
  ])('of %s are the sums of the chart "%s"', (path, title, sums) => {
    const page = html(path)
    expect(wordsOf(page)).toContain(title)
    expect(footers(page)[0]).toBe(sums)
  })

  it('of 90 days are by week, or by month where days are no longer kept, and the page says which days count', () => {
    expect(shown('/usage?days=90')).toContain('Spend per week, by model')
    const text = shown('/usage?days=90', { rows: [...ROWS, row({ day: '2026-08', cost: '5.00' })] })
    expect(text).toContain('Spend per month, by model')
    expect(text).toContain('Spend ≈ €8.30 1 August to 24 November')
    expect(text).toContain('August counts from its first day.')
  })

  it('of 30 days do not count a month of which all days are older', () => {
    expect(shown('/usage', { rows: [...ROWS, row({ day: '2026-10', cost: '5.00' })] })).toContain('Spend ≈ €3.30')
  })
})

describe('the age of the figures', () => {
  it('is said, and so is that newer calls are missing while their counts cannot be read', () => {
    expect(shown()).toContain('a call shows up within ten seconds.')
    for (const late of [shown('/usage', { isLate: true }), shown('/usage', { isLate: true, rows: [] })]) {
      expect(late).toContain('Newer calls are missing, because their counts cannot be read now.')
      expect(late).not.toContain('within ten seconds')
    }
  })
})

describe('the filters', () => {
  it('offer what was used, and are kept in every link', () => {
    const page = html('/usage?model=qwen&show=tokens')
    expect(page).toContain('<a href="/usage?days=7&amp;show=tokens&amp;model=qwen">7 days</a>')
    expect(page).toContain('<a aria-current="true" href="/usage?show=tokens&amp;model=qwen">30 days</a>')
    expect(page).toMatch(/<option value="qwen" selected="">/)
    expect(wordsOf(page)).toContain('All keys bot docs (revoked) Model All models llama qwen')
  })

  it('go into the CSV file', () => {
    expect(html('/usage?model=qwen&key=k-2')).toMatch(/href="\/api\/usage\.csv\?from=[\d-]+&amp;to=[\d-]+&amp;key=k-2&amp;model=qwen"/)
  })

  it('without a result lead back to everything', () => {
    const page = html('/usage?model=none&show=tokens')
    expect(wordsOf(page)).toContain('No calls with these filters')
    expect(page).toContain('<a href="/usage?show=tokens" class="button">Show all</a>')
  })
})

describe('the page', () => {
  it('says how old the counts are, and that no prompt is stored', () => {
    expect(shown()).toContain('As of 24 Nov 2026, 12:03 UTC; a call shows up within ten seconds.')
    expect(shown()).toContain('Neither prompts nor answers nor single calls are stored.')
  })

  it('names days of which counts are lost', () => {
    expect(shown('/usage', { incomplete: ['2026-11-20', '2026-11-23'] })).toContain('missing on 20 November and 23 November')
  })

  it('without a call says where the first one will be, and still that no prompt is stored', () => {
    const text = shown('/usage?days=7', { rows: [] })
    expect(text).toContain('No calls in these 7 days')
    expect(text).toContain('Neither prompts nor answers are stored.')
    expect(text).not.toContain('Download CSV')
  })

  it('of calls that cost nothing has no empty chart', () => {
    const free = [row({ requests: 3, inputTokens: 5 })]
    expect(shown('/usage', { rows: free })).toContain('These calls cost nothing')
    expect(shown('/usage?show=tokens', { rows: free })).not.toContain('These calls cost nothing')
  })

  it('shows a model with HTML in its name as text', () => {
    expect(html('/usage', { rows: [row({ model: '<b>x</b>', cost: '1.00' }), ...ROWS] })).not.toContain('<b>x')
  })
})
