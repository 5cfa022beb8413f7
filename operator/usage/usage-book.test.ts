import { describe, expect, test } from 'vitest'
import { countsOf, type DatedUsageRow, USAGE_COLUMNS } from '#contract/usage/usage-report.ts'
import { historyEntry, type OpenUsage, readClosedUsage, readOpenUsage, writeOpenUsage } from '../shards/usage-entry.ts'
import {
  closableDays,
  firstDayOf,
  monthOf,
  noClosedUsage,
  noOpenUsage,
  OTHER_MODELS,
  sizeOf,
  sumsOnly,
  withClosed,
  withoutClosed,
  withTaken,
} from './usage-book.ts'
import { answerOf, csvOf, questionOf } from './usage-query.ts'

const TODAY = Math.floor(Date.UTC(2026, 10, 26) / 86_400_000)
const one = countsOf({ requests: 1, inputTokens: 10, costMicros: 5 })
const row = (change: Partial<DatedUsageRow> = {}): DatedUsageRow => ({ day: TODAY, key: 'k1', model: 'llama', counts: one, ...change })
const taken = (rows: readonly DatedUsageRow[], number = 1) => ({ state: 'rows', nowMs: TODAY * 86_400_000, number, rows }) as const
const open = (rows: readonly DatedUsageRow[], before: OpenUsage = noOpenUsage('acme')): OpenUsage =>
  withTaken(before, taken(rows, before.takes + 1), -1, (uid) => `shop/${uid}`)
const ask = (search = '') => {
  const question = questionOf(new URLSearchParams(search), TODAY * 86_400_000)
  if (typeof question === 'string') throw new Error(question)
  return question
}
const requests = (usage: OpenUsage | undefined, closed: ReturnType<typeof noClosedUsage> | undefined, search = 'by=') =>
  answerOf('acme', usage, closed, ask(search)).rows.reduce((sum, line) => sum + Number(line['requests']), 0)

describe('what was taken', () => {
  test('adds up by key, model and day, with the name of each key', () => {
    const usage = open([row(), row(), row({ model: 'qwen' }), row({ key: 'k2' })])
    expect(usage.days.get(TODAY)?.get('k1')?.get('llama')).toEqual(countsOf({ requests: 2, inputTokens: 20, costMicros: 10 }))
    expect([...usage.keys]).toEqual([
      ['k1', 'shop/k1'],
      ['k2', 'shop/k2'],
    ])
  })

  test('of a closed day counts on the day after', () => {
    const usage = withTaken(noOpenUsage('acme'), taken([row({ day: TODAY - 9 })]), TODAY - 2, () => undefined)
    expect([...usage.days.keys()]).toEqual([TODAY - 1])
  })

  test('of a day that has not begun counts today, since such a day would never close', () => {
    expect([...open([row({ day: TODAY + 9 }), row({ day: 999_999 })]).days.keys()]).toEqual([TODAY])
  })

  test('of keys that were never known is one row without a key, and a key that was deleted meanwhile keeps its row', () => {
    const before = open([row()])
    const invented = Array.from({ length: 50 }, (_, at) => row({ key: `invented-${at}` }))
    const usage = withTaken(before, taken([row(), ...invented], 2), -1, () => undefined)
    expect([...(usage.days.get(TODAY)?.keys() ?? [])]).toEqual(['k1', ''])
    expect([usage.days.get(TODAY)?.get('k1')?.get('llama')?.[0], requests(usage, undefined)]).toEqual([2, 52])
    expect([...usage.keys]).toEqual([['k1', 'shop/k1']])
  })

  test('has at most 32 models a key and day, and the sum stays', () => {
    const usage = open(Array.from({ length: 40 }, (_, at) => row({ model: `m${at}` })))
    const models = usage.days.get(TODAY)?.get('k1')
    expect([models?.size, models?.get(OTHER_MODELS)?.[0], requests(usage, undefined)]).toEqual([33, 8, 40])
  })

  test('of more keys than fit is one row without a key, and the sum stays', () => {
    const usage = open(Array.from({ length: 20_050 }, (_, at) => row({ key: `k${at}` })))
    expect([usage.days.get(TODAY)?.get('')?.get('')?.[0], requests(usage, undefined)]).toEqual([50, 20_050])
  })

  test('marks the day as incomplete after a loss, and keeps all that was taken', () => {
    const usage = withTaken(open([row()]), { state: 'lost', nowMs: TODAY * 86_400_000 + 5 }, -1, () => undefined)
    expect([usage.takes, requests(usage, undefined)]).toEqual([1, 1])
    expect(answerOf('acme', usage, undefined, ask()).incomplete).toEqual(['2026-11-26'])
  })
})

describe('days', () => {
  test('close two days later, and count once wherever they are', () => {
    const usage = open([row({ day: TODAY - 3 }), row({ day: TODAY - 2 }), row({ day: TODAY - 1 }), row()])
    expect(closableDays(usage, TODAY)).toEqual([TODAY - 3, TODAY - 2])
    const closed = withClosed(noClosedUsage('acme'), usage, closableDays(usage, TODAY), TODAY)
    expect([closed.through, requests(usage, closed), requests(withoutClosed(usage, closed.through), closed)]).toEqual([TODAY - 2, 4, 4])
    expect([...withoutClosed(usage, closed.through).days.keys()]).toEqual([TODAY - 1, TODAY])
  })

  test('become part of their month after 35 days, and months end after 400 days', () => {
    let closed = noClosedUsage('acme')
    for (let day = TODAY - 500; day <= TODAY - 2; day += 1) closed = withClosed(closed, open([row({ day })]), [day], day + 2)
    expect(closed.days.size).toBeLessThanOrEqual(35)
    const months = [...closed.months.keys()]
    expect([Math.max(...months), months.length <= 15]).toEqual([monthOf(TODAY - 35), true])
    expect(Math.min(...months.map((month) => firstDayOf(month + 1)))).toBeGreaterThan(TODAY - 402)
    const all = requests(undefined, closed, `from=2020-01-01&by=day`)
    expect([all >= 398, all <= 499]).toEqual([true, true])
  })

  test('of an account without room are sums', () => {
    const closed = withClosed(
      noClosedUsage('acme'),
      open([row({ day: TODAY - 2 }), row({ day: TODAY - 2, key: 'k2' })]),
      [TODAY - 2],
      TODAY,
    )
    const sums = sumsOnly(closed)
    expect([sizeOf(sums.days.get(TODAY - 2)!), requests(undefined, sums), sums.keys.size]).toEqual([1, 2, 0])
  })

  test('are read as they were written', () => {
    const usage = { ...open([row(), row({ key: '', model: '' })]), incomplete: [TODAY] }
    expect(readOpenUsage(writeOpenUsage(usage))).toEqual(usage)
    const closed = withClosed(
      noClosedUsage('acme'),
      open([row({ day: TODAY - 60 }), row({ day: TODAY - 5 })]),
      [TODAY - 60, TODAY - 5],
      TODAY,
    )
    expect(readClosedUsage(historyEntry(closed))).toEqual(closed)
  })
})

describe('an answer', () => {
  const usage = open([row(), row({ model: 'qwen' }), row({ key: 'k2', day: TODAY - 1 })])

  test('has one row for each group that is asked for', () => {
    expect(answerOf('acme', usage, undefined, ask('by=model')).rows.map(({ model, requests: count }) => [model, count])).toEqual([
      ['llama', 2],
      ['qwen', 1],
    ])
    expect(answerOf('acme', usage, undefined, ask('by=day,key')).rows.map(({ day, key }) => [day, key])).toEqual([
      ['2026-11-25', 'shop/k2'],
      ['2026-11-26', 'shop/k1'],
    ])
    expect(answerOf('acme', usage, undefined, ask('from=2026-11-26&by=')).rows).toMatchObject([{ requests: 2, cost: '0.00001' }])
  })

  test('as CSV has a header, every column, and no text that a spreadsheet runs', () => {
    const evil = open([row({ model: '=1+1,"x"' })])
    const csv = csvOf(answerOf('acme', evil, undefined, ask('by=model')), ['model'])
    const header = ['model', ...USAGE_COLUMNS].join(',').replace('costMicros', 'cost')
    expect(csv.split('\r\n').slice(0, 2)).toEqual([header, `"'=1+1,""x""",1,10,0,0,0.000005,0,0,0,0,0,0`])
  })

  test.each([
    ['from=yesterday', 'from: is not a day; write YYYY-MM-DD'],
    ['from=2026-02-31x', 'from: is not a day; write YYYY-MM-DD'],
    ['from=2026-11-26&to=2026-11-25', 'from: is after to'],
    ['by=colour', 'by.0: lists something else than day, model and key'],
    ['bye=day', 'a parameter: Unrecognized key: "bye"'],
  ])('refuses %s', (search, why) => {
    expect(questionOf(new URLSearchParams(search), TODAY * 86_400_000)).toBe(why)
  })

  test('of an account that was never used has no rows and no time', () => {
    expect(answerOf('acme', undefined, undefined, ask())).toMatchObject({ asOf: null, rows: [], from: '2026-10-28', to: '2026-11-26' })
  })
})
