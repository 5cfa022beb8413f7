import { afterAll, describe, expect, test } from 'vitest'
import { secrets } from '#kube/resources.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { PendingWork } from '../../test/support/pending-work.ts'
import { SecretShards } from './secret-shards.ts'
import { SPEND_SET } from './sets.ts'
import { readSpendEntry, type SpendEntry, writeSpendEntry } from './spend-entry.ts'

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

// each test goes on where the one before ended
describe('spend that another process wrote meanwhile', { shuffle: false }, () => {
  const FIELD = 'month:Currency:Month:1767225600000'
  const spent = (uid: string, amount: number, atMs = 1): SpendEntry => ({
    uid,
    spent: new Map([[FIELD, amount]]),
    atMs,
    uncertain: undefined,
  })
  const kube = new FakeKubePort()
  const clock = new ManualClock()
  const work = new PendingWork()
  afterAll(() => work.end())

  async function opened(): Promise<SecretShards<SpendEntry>> {
    const common = { kube, namespace: 'headgate', clock, assertLeading: () => undefined, warn: () => undefined }
    const set = new SecretShards({ ...SPEND_SET, ...common, shards: 1 })
    await set.load()
    return set
  }
  async function written(): Promise<void> {
    await clock.advance(2_500)
    await work.drained()
    await clock.advance(1)
    await work.drained()
  }
  const amounts = (set: SecretShards<SpendEntry>): unknown => [...set.entries()].map(({ uid, spent: by }) => [uid, by.get(FIELD)])

  test('is never lowered by a deposed leader, whose own higher spend is kept', async () => {
    const [deposed, leader] = [await opened(), await opened()]
    for (const set of [deposed, leader]) {
      set.commitLater(spent('a', 10))
      set.commitLater(spent('b', 10))
      await written()
    }
    leader.commitLater(spent('a', 30))
    leader.commitLater(spent('b', 20))
    await written()
    deposed.commitLater(spent('a', 20))
    deposed.commitLater(spent('b', 25))
    await written()
    expect(amounts(await opened())).toEqual([
      ['a', 30],
      ['b', 25],
    ])
  })

  test('survives the return of a Secret to an older state', async () => {
    const set = await opened()
    const ref = { namespace: 'headgate', name: 'hg-spend-1-0' }
    const older = await kube.get(secrets, ref)
    set.commitLater(spent('a', 50))
    set.commitLater(spent('c', 5))
    await written()
    const present = await kube.get(secrets, ref)
    await kube.update(secrets, { ...present!, data: older?.data ?? {} })
    set.check()
    await written()
    await written()
    expect(amounts(await opened())).toEqual([
      ['a', 50],
      ['b', 25],
      ['c', 5],
    ])
  })
})
