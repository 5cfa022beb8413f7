import { beforeEach, expect, test } from 'vitest'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { eventually } from '../../test/support/wait-for.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { shardOf } from '../shards/shard-of.ts'
import { SpendCheckpoint } from './spend-checkpoint.ts'
import { MAX_SHARD_CHARACTERS, USAGE_SHARDS, UsageArchive } from './usage-archive.ts'
import { usageCodec, usageDaysOf, type UsageEntry, usageEntryOf } from './usage-entry.ts'

const NAMESPACE = 'headgate'
const MINUTE_MS = 60_000

let kube: FakeKubePort
let clock: ManualClock
let dropped: number

beforeEach(() => {
  kube = new FakeKubePort()
  clock = new ManualClock()
  dropped = 0
})

const own = () => ({ kube, namespace: NAMESPACE, clock, assertLeading: () => undefined, warn: () => undefined })

async function opened(limitCharacters = MAX_SHARD_CHARACTERS): Promise<UsageArchive> {
  const archive = new UsageArchive({ ...own(), limitCharacters, onDropped: (days) => void (dropped += days) })
  await archive.load()
  return archive
}

const rowOf = (model: string, requests = 1) => ({
  ...{ model, requests, input: 0, output: 0, cached: 0 },
  ...{ cost: 0, estimated: 0, unpriced: 0 },
})
const entryOf = (uid: string, ...days: number[]): UsageEntry =>
  usageEntryOf(uid, Math.max(...days), new Map(days.map((day) => [day, [rowOf('m')]])))
const written = (): string[] => kube.calls.filter(({ verb }) => verb === 'create' || verb === 'update').map(({ name }) => name)
const uidsOfShard = (shard: number, count: number): string[] => {
  const uids: string[] = []
  for (let at = 0; uids.length < count; at += 1) if (shardOf(`uid-${at}`, USAGE_SHARDS) === shard) uids.push(`uid-${at}`)
  return uids
}
const stored = async (): Promise<ReadonlyMap<string, UsageEntry>> => {
  const shards = await Promise.all((await kube.list<Secret>(secrets, NAMESPACE)).map(({ data }) => usageCodec.decode(data ?? {})))
  return new Map(shards.flatMap(({ entries }) => entries.flatMap(({ entry }) => (entry ? [[entry.uid, entry] as const] : []))))
}

/** Advances the time by a minute and waits for the due writes, because gzip does not follow the test clock. */
async function minutePasses(entries: number): Promise<void> {
  await clock.advance(MINUTE_MS)
  await eventually(async () => expect((await stored()).size).toBe(entries), { everyMs: 1 })
}

test('an entry is visible at once, durable within a minute, and read by the next operator', async () => {
  const archive = await opened()
  const entry = entryOf('a', 1, 2)
  archive.put(entry)
  expect([archive.get('a'), (await stored()).size]).toEqual([entry, 0])
  await minutePasses(1)
  expect((await stored()).get('a')?.text).toBe(entry.text)
  expect((await opened()).get('a')).toEqual(entry)
})

test('all entries of a minute cost one write of each Secret', async () => {
  const archive = await opened()
  for (let round = 1; round <= 5; round += 1) {
    for (const uid of uidsOfShard(3, 50)) archive.put(entryOf(uid, round))
    await clock.advance(MINUTE_MS / 6)
  }
  await minutePasses(50)
  await clock.advance(MINUTE_MS)
  expect(written()).toEqual([`hg-spend-${USAGE_SHARDS}-3`])
})

test('an operator without this archive ignores its Secrets and does not change them', async () => {
  const archive = await opened()
  archive.put(entryOf('a', 1))
  await minutePasses(1)
  const before = await kube.list<Secret>(secrets, NAMESPACE)
  const checkpoint = new SpendCheckpoint(own())
  await checkpoint.load()
  checkpoint.put({ uid: 'a', spent: new Map([['f', 1]]), atMs: 1, uncertain: undefined }, 0)
  checkpoint.remove('b')
  await checkpoint.flush()
  const after = await kube.list<Secret>(secrets, NAMESPACE)
  expect([[...checkpoint.entries()].map(({ uid }) => uid), checkpoint.unreadable]).toEqual([['a'], 0])
  expect(after.filter(({ metadata }) => before.some(({ metadata: { name } }) => name === metadata.name))).toEqual(before)
})

test('a removed entry is removed from the Secret', async () => {
  const archive = await opened()
  archive.put(entryOf('a', 1))
  await minutePasses(1)
  archive.remove('a')
  await minutePasses(0)
  expect([archive.get('a'), (await stored()).size, archive.ageSeconds]).toEqual([undefined, 0, 0])
})

test('the age of the oldest entry shows that a Secret cannot be written, and the Secret is written as soon as writes succeed', async () => {
  const archive = await opened()
  let refused = 0
  kube.before = ({ verb }) => {
    if (verb !== 'create') return
    refused += 1
    throw new Error('refused')
  }
  archive.put(entryOf('a', 1))
  await clock.advance(10 * MINUTE_MS)
  expect(archive.ageSeconds).toBe(600)
  await eventually(async () => expect(refused).toBeGreaterThan(0), { everyMs: 1 })
  kube.before = () => undefined
  await minutePasses(1)
  await eventually(async () => expect(archive.ageSeconds).toBe(0), { everyMs: 1 })
})

test('a full shard drops the oldest days of all its keys, counts them, and then has room again', async () => {
  const limit = 20_000
  const archive = await opened(limit)
  const uids = uidsOfShard(5, 40)
  const day = (at: number) => [at, [rowOf('m', at)]] as const
  for (const uid of uids) archive.put(usageEntryOf(uid, 35, new Map(Array.from({ length: 35 }, (_, at) => day(at + 1)))))
  const texts = [...archive.entries()]
  const total = texts.reduce((sum, { text }) => sum + text.length, 0)
  const oldest = texts.map((entry) => usageDaysOf(entry).keys().next().value ?? 0)
  expect(total).toBeLessThanOrEqual(limit)
  expect(total).toBeGreaterThan(limit / 2)
  expect([new Set(texts.map(({ uid }) => uid)).size, dropped > 0]).toEqual([uids.length, true])
  expect(Math.max(...oldest), 'the newest days stay').toBeLessThan(35)
  archive.put(entryOf(uidsOfShard(6, 1)[0]!, 1))
  expect(archive.get(uidsOfShard(6, 1)[0]!)?.oldest, 'another shard is not touched').toBe(1)
})

test('the largest shard fits into a Secret, with any text', async () => {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-'
  let seed = 1
  const letter = (): string => letters[(seed = (seed * 48_271) % 2_147_483_647) % letters.length] ?? ''
  const line = (at: number): string => `${at}${Array.from({ length: 39_990 }, letter).join('')}`
  const texts = Array.from({ length: 30 }, (_, at) => ({ id: String(at), text: line(at), entry: undefined }))
  const data = await usageCodec.encode({ shards: USAGE_SHARDS, shard: 0 }, texts)
  expect(Buffer.byteLength(data['records'] ?? '', 'base64')).toBeLessThan(900 * 1_024)
})
