import { describe, expect, it } from 'vitest'
import type { UsageRow } from '../../server/page-data/usage.ts'
import { totalOf } from '../charts/stacks.ts'
import { daysUntil } from '../days.ts'
import { periodsOf } from './periods.ts'
import { choices, modelTotals, type Parts, partsOf, rowsFor, stacksOf, totalsOf } from './usage-sums.ts'

const NOTHING = { requests: 0, failed: 0, refused: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, cost: '0.00', estimated: 0 }
const row = (more: Partial<UsageRow>): UsageRow => ({ ...NOTHING, day: '2026-11-24', model: 'llama', key: 'k1', keyName: 'bot', ...more })
const ROWS = [
  row({ requests: 10, failed: 1, refused: 2, inputTokens: 100, cachedInputTokens: 40, outputTokens: 20, cost: '1.10' }),
  row({ day: '2026-11-23', model: 'qwen', key: 'k2', requests: 5, inputTokens: 70, outputTokens: 9, cost: '2.20', estimated: 1 }),
  row({ day: '2026-11-23', model: 'qwen', requests: 1, inputTokens: 7, outputTokens: 1, cost: '0.000001' }),
  row({ model: '', refused: 4 }),
  row({ model: 'Other', requests: 1, cost: '0.30' }),
]
const PERIODS = periodsOf(ROWS, daysUntil('2026-11-24', 7))

describe('the figures', () => {
  it('are exact sums', () => {
    expect(totalsOf(ROWS)).toEqual({
      ...{ spend: 3_600_001n, input: 177n, cached: 40n, output: 30n, hasEstimates: true },
      ...{ answered: 16n, failed: 1n, refused: 6n, calls: 23n },
    })
  })

  it('count a call that found no server as failed, and never as a negative number of answers', () => {
    expect(totalsOf([row({ failed: 3 })])).toMatchObject({ answered: 0n, failed: 3n, calls: 3n })
  })

  it('without a call are all 0', () => {
    expect(Object.values(totalsOf([]))).toEqual([0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n, false])
  })
})

describe('the chart', () => {
  it.each<[Parts, bigint]>([
    ['model', 3_600_001n],
    ['key', 3_600_001n],
    ['kind', 207n],
    ['outcome', 23n],
  ])('by %s adds up to the figure above it', (parts, total) => {
    expect(totalOf(stacksOf(ROWS, PERIODS, parts))).toBe(total)
  })

  it('has each amount in the column of its day', () => {
    const { series } = stacksOf(ROWS, PERIODS, 'model')
    expect(series.map(({ name, values }) => [name, values.slice(-2)])).toEqual([
      ['qwen', [2_200_001n, 0n]],
      ['llama', [0n, 1_100_000n]],
      ['Other', [0n, 300_000n]],
    ])
  })

  it('keeps two keys of one name apart', () => {
    expect(stacksOf(ROWS, PERIODS, 'key').series.map(({ name, values }) => [name, values.at(-2)])).toEqual([
      ['bot', 2_200_000n],
      ['bot', 1n],
    ])
  })

  it('of tokens counts a token once, from the cache or not', () => {
    expect(stacksOf(ROWS, PERIODS, 'kind').series.map(({ values }) => values.at(-1))).toEqual([60n, 40n, 20n])
  })

  it('is by key only where one model is picked', () => {
    const filters = { days: 30, show: 'spend', key: '', model: '' } as const
    expect([partsOf(filters), partsOf({ ...filters, model: 'qwen' }), partsOf({ ...filters, model: 'qwen', key: 'k1' })]).toEqual([
      'model',
      'key',
      'model',
    ])
    expect([partsOf({ ...filters, show: 'tokens' }), partsOf({ ...filters, show: 'requests', model: 'x' })]).toEqual(['kind', 'outcome'])
  })
})

it('a filter leaves the rows of its key and model', () => {
  expect(rowsFor(ROWS, { key: 'k2', model: '' })).toEqual([ROWS[1]])
  expect(rowsFor(ROWS, { key: 'k1', model: 'qwen' })).toEqual([ROWS[2]])
  expect(rowsFor(ROWS, { key: '', model: '' })).toEqual(ROWS)
})

it('models are listed by what they cost, without those that took no token', () => {
  expect(modelTotals(ROWS).map(({ model, spend }) => [model, spend])).toEqual([
    ['qwen', 2_200_001n],
    ['llama', 1_100_000n],
    ['', 300_000n],
  ])
})

it('a filter offers what was used, by name, and keeps what is picked although it was not used', () => {
  const used = ROWS.map(({ model }) => [model, model] as const)
  expect(choices(used, 'mistral').map(([id]) => id)).toEqual(['llama', 'mistral', 'Other', 'qwen'])
  expect(choices(used, '').map(([id]) => id)).toEqual(['llama', 'Other', 'qwen'])
})
