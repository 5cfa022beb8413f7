import { expect, test } from 'vitest'
import { readSpendEntry, spendCodec, writeSpendEntry } from './spend-entry.ts'

const TEXT = '{"v":1,"uid":"u1","s":{"month:Currency:Month:1767225600000":25000000},"at":1767225700000,"un":[1,2]}'

test('the durable spend of a key is read back byte for byte', () => {
  const entry = readSpendEntry(TEXT)
  expect(entry).toEqual({
    uid: 'u1',
    spent: new Map([['month:Currency:Month:1767225600000', 25_000_000]]),
    atMs: 1_767_225_700_000,
    uncertain: { fromMs: 1, toMs: 2 },
  })
  expect(writeSpendEntry(entry)).toBe(TEXT)
})

test.each([['{"v":1,"uid":"u1","s":{"f":-1},"at":1}'], ['{"v":1,"uid":"u1","s":{"f":1.5},"at":1}'], ['{"v":1,"s":{},"at":1}']])(
  '%s is damage',
  (text) => {
    expect(() => readSpendEntry(text)).toThrow()
  },
)

test('an entry of a newer version is never changed', async () => {
  const newer = TEXT.replace('"v":1', '"v":99')
  const data = await spendCodec.encode({ shards: 8, shard: 0 }, [
    { id: 'u1', text: newer, entry: undefined },
    { id: 'u2', text: TEXT.replace('u1', 'u2'), entry: undefined },
  ])
  const { entries, damaged } = await spendCodec.decode(data)
  expect([entries.map(({ id, text, entry }) => [id, text === newer, entry?.uid]), damaged]).toEqual([
    [
      ['u1', true, undefined],
      ['u2', false, 'u2'],
    ],
    0,
  ])
})
