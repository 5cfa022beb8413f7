import { describe, expect, test } from 'vitest'
import type { OperatorUsageAnswer } from './operator-usage.ts'
import { usageCsvOf, usageOf, usageQuestion } from './usage-view.ts'

const NOW = Date.UTC(2026, 10, 24, 12)
const question = (search: string) => usageQuestion(new URLSearchParams(search), NOW)
const COUNTS = {
  ...{ requests: 10, inputTokens: 1_000, cachedInputTokens: 400, outputTokens: 200, cost: '1.25', estimated: 1, failed: 2 },
  ...{ refusedModel: 1, refusedRate: 2, refusedBudget: 3, refusedOther: 4 },
}
const row = (key: string, model = 'llama', day = '2026-11-24') => ({ day, model, key, ...COUNTS })
const answer = (...rows: OperatorUsageAnswer['rows']): OperatorUsageAnswer => ({
  ...{ from: '2026-10-26', to: '2026-11-24', asOf: '2026-11-24T11:59:58.000Z', incomplete: ['2026-11-20'], rows },
})
const NAMING = { namespace: 'headgate-accounts', currency: 'EUR', keyName: (id: string) => (id === 'k-1' ? 'checkout bot' : undefined) }
const ALL = { key: undefined, model: undefined }

describe('a question about usage', () => {
  test('is about the last 30 days unless it says otherwise', () => {
    expect(question('')).toEqual({ from: '2026-10-26', to: '2026-11-24', ...ALL })
    expect(question('from=2026-11-18&to=2026-11-24&key=k-1&model=llama')).toEqual({
      ...{ from: '2026-11-18', to: '2026-11-24', key: 'k-1', model: 'llama' },
    })
  })

  test('is about 90 days at most', () => {
    expect(question('from=2026-08-27&to=2026-11-24')).toMatchObject({ from: '2026-08-27' })
    expect(() => question('from=2026-08-26&to=2026-11-24')).toThrow('at most 90 days')
  })

  test.each([
    'from=2026-11-25&to=2026-11-24',
    'from=yesterday',
    'from=2026-11-31',
    'to=2026-2-1',
    'to=99999-01-01',
    'to=0000-01-01',
    'from=2026-11-24T00:00:00Z',
    `key=${'k'.repeat(513)}`,
  ])('is refused if it is wrong: %s', (search) => {
    expect(() => question(search)).toThrow(expect.objectContaining({ code: 'invalid' }))
  })
})

describe('an answer', () => {
  test('names keys as the person did, by the id where the key is gone, and by namespace and name where it is of another namespace', () => {
    const { rows } = usageOf(answer(row('headgate-accounts/k-1'), row('headgate-accounts/k-gone'), row('shop/k-1'), row('')), ALL, NAMING)
    expect(rows.map(({ key, keyName }) => [key, keyName])).toEqual([
      ['k-1', 'checkout bot'],
      ['k-gone', 'k-gone'],
      ['shop/k-1', 'shop/k-1'],
      ['', ''],
    ])
  })

  test('has the counts of the operator, and refusals by reason and as a sum', () => {
    const { asOf, incomplete, currency, rows } = usageOf(answer(row('headgate-accounts/k-1')), ALL, NAMING)
    expect([asOf, incomplete, currency]).toEqual(['2026-11-24T11:59:58.000Z', ['2026-11-20'], 'EUR'])
    expect(rows[0]).toEqual({
      ...{ day: '2026-11-24', model: 'llama', key: 'k-1', keyName: 'checkout bot', requests: 10, failed: 2, refused: 10 },
      ...{ inputTokens: 1_000, cachedInputTokens: 400, outputTokens: 200, cost: '1.25', estimated: 1 },
      refusals: { model: 1, rate: 2, budget: 3, other: 4 },
    })
  })

  test('says nothing of its age for an account that was never used', () => {
    expect(usageOf({ ...answer(), asOf: null }, ALL, NAMING)).not.toHaveProperty('asOf')
  })

  test('is about one key and one model if the question is', () => {
    const rows = [row('headgate-accounts/k-1'), row('headgate-accounts/k-1', 'qwen'), row('headgate-accounts/k-2')]
    expect(usageOf(answer(...rows), { key: 'k-1', model: 'qwen' }, NAMING).rows).toHaveLength(1)
    expect(usageOf(answer(...rows), { key: 'k-1', model: undefined }, NAMING).rows).toHaveLength(2)
  })

  test('is a CSV file that no name of a key or a model turns into a formula', () => {
    const naming = { ...NAMING, keyName: () => '=cmd|calc' }
    expect(usageCsvOf(usageOf(answer(row('headgate-accounts/k-1', '@model')), ALL, naming))).toBe(
      'day,model,key,keyName,requests,failed,refused,inputTokens,cachedInputTokens,outputTokens,cost,estimated,currency\r\n' +
        "2026-11-24,'@model,k-1,'=cmd|calc,10,2,10,1000,400,200,1.25,1,EUR\r\n",
    )
  })
})
