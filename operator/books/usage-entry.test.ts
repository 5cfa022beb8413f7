import { expect, test } from 'vitest'
import { readUsageEntry, usageCodec, usageDaysOf, usageEntryOf } from './usage-entry.ts'

const TEXT =
  '{"v":1,"uid":"u1","to":20468,"m":["model-1","other"],"d":{"20467":"0 3 100 20 40 900 1 0","20468":"0 1 2 3 0 4 0 0,1 5 0 0 0 0 0 5"}}'
const counters = (model: string, requests: number, more = {}) => ({
  ...{ model, requests, input: 0, output: 0, cached: 0, cost: 0, estimated: 0, unpriced: 0 },
  ...more,
})

test('the usage of a key is read back byte for byte', () => {
  const entry = readUsageEntry(TEXT)
  expect(entry).toEqual({ uid: 'u1', newest: 20_468, oldest: 20_467, text: TEXT })
  expect([...usageDaysOf(entry)]).toEqual([
    [20_467, [counters('model-1', 3, { input: 100, output: 20, cached: 40, cost: 900, estimated: 1 })]],
    [20_468, [counters('model-1', 1, { input: 2, output: 3, cost: 4 }), counters('other', 5, { unpriced: 5 })]],
  ])
  expect(usageEntryOf('u1', 20_468, usageDaysOf(entry))).toEqual(entry)
})

test('an entry without days still names its last folded day', () => {
  const entry = usageEntryOf('u1', 20_468, new Map())
  expect(readUsageEntry(entry.text)).toEqual({ uid: 'u1', newest: 20_468, oldest: undefined, text: entry.text })
})

test.each([
  ['no last day', TEXT.replace('"to":20468,', '')],
  ['a counter that is no integer', TEXT.replace('900', '9e2')],
  ['a counter too few', TEXT.replace('900 ', '')],
  ['a model that is not listed', TEXT.replace('1 5 0', '2 5 0')],
  ['a day that is no number', TEXT.replace('"20467"', '"yesterday"')],
])('%s counts as damage', (_, text) => {
  expect(() => readUsageEntry(text)).toThrow()
})

test('an entry of a newer version is never changed', async () => {
  const newer = TEXT.replace('"v":1', '"v":99')
  const data = await usageCodec.encode({ shards: 32, shard: 0 }, [{ id: 'u1', text: newer, entry: undefined }])
  const { entries } = await usageCodec.decode(data)
  expect(entries).toMatchObject([{ id: 'u1', text: newer, entry: undefined }])
})
