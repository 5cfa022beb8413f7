import { hash } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { RECORDS_KEY } from '#contract/records/mounted-folder.ts'
import { unpackShard } from '#contract/records/shard-text.ts'
import { packShard } from '../../test/support/pack-shard.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { PendingWork } from '../../test/support/pending-work.ts'
import { modelText } from '../../test/support/records.ts'
import { KubeError } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { MountedSecrets, NamespaceCredentialsFull, NamespaceRecordsFull } from './mounted-secrets.ts'

const NAMESPACE = 'headgate'
const MODELS = 'hg-models-1-0'
const UPSTREAM = 'hg-upstream-1-0'
const TEN_MINUTES_MS = 600_000

const work = new PendingWork()
afterAll(() => work.end())

let kube: FakeKubePort
let clock: ManualClock
let warnings: string[]
let settled: Array<readonly [string, Error | undefined]>

beforeEach(() => {
  kube = new FakeKubePort()
  clock = new ManualClock()
  warnings = []
  settled = []
})

async function opened(): Promise<MountedSecrets> {
  const mounted = new MountedSecrets({
    kube,
    namespace: NAMESPACE,
    clock,
    shards: 1,
    assertLeading: () => undefined,
    warn: (message) => warnings.push(message),
  })
  mounted.onSettled((uid, error) => settled.push([uid, error]))
  await mounted.load()
  return mounted
}

/** Packing takes real time; a commit that waits for others needs the test clock. */
async function written(ms = 0): Promise<void> {
  await clock.advance(ms)
  for (let round = 0; round < 8; round++) {
    await clock.advance(500)
    await work.drained()
  }
}

async function set(mounted: MountedSecrets, uid: string, credentials: readonly string[], namespace = 'shop'): Promise<void> {
  mounted.setModel(uid, { namespace, text: modelText(uid), credentials })
  await written()
}

const dataOf = async (name: string): Promise<Readonly<Record<string, string>>> =>
  (await kube.get(secrets, { namespace: NAMESPACE, name }))?.data ?? {}
async function models(): Promise<readonly string[]> {
  const records = (await dataOf(MODELS))[RECORDS_KEY]
  return records === undefined
    ? []
    : (await unpackShard(Buffer.from(records, 'base64'))).map((text) => (JSON.parse(text) as { uid: string }).uid)
}
const credentials = async (): Promise<string[]> =>
  Object.values(await dataOf(UPSTREAM)).map((value) => Buffer.from(value, 'base64').toString())
const writes = (): number => kube.calls.filter(({ verb }) => verb === 'create' || verb === 'update').length
const refuse = (name: string): void => {
  kube.before = (call) => {
    if (call.name === name && (call.verb === 'create' || call.verb === 'update'))
      throw new KubeError('Forbidden', 403, `${name} is refused`)
  }
}

test('a model has its record and its credentials in the Secrets, each credential once and under its sum', async () => {
  const mounted = await opened()
  mounted.setModel('a', { namespace: 'shop', text: modelText('a'), credentials: ['one', 'two', 'one'] })
  await set(mounted, 'b', ['two'])
  expect(await models()).toEqual(['a', 'b'])
  expect(await dataOf(UPSTREAM)).toEqual(
    Object.fromEntries(['one', 'two'].map((value) => [`upstream.${hash('sha256', value, 'hex')}`, Buffer.from(value).toString('base64')])),
  )
  expect(settled.every(([, error]) => error === undefined)).toBe(true)
  expect(new Set(settled.map(([uid]) => uid))).toEqual(new Set(['a', 'b']))
})

test('a thousand models that are made within two seconds cost few writes', async () => {
  const mounted = await opened()
  const before = writes()
  for (let at = 0; at < 40; at += 1) {
    for (let one = 0; one < 25; one += 1)
      mounted.setModel(`m${at}-${one}`, { namespace: 'shop', text: modelText(`m${at}-${one}`), credentials: [] })
    await clock.advance(50)
    await work.drained()
  }
  await written()
  expect(await models()).toHaveLength(1_000)
  expect(writes() - before).toBeLessThanOrEqual(18)
})

test('a Secret of records waits two seconds for further models that are made one after another', async () => {
  const mounted = await opened()
  const before = writes()
  for (let at = 0; at < 160; at += 1) {
    mounted.setModel(`m${at}`, { namespace: 'shop', text: modelText(`m${at}`), credentials: [] })
    await clock.advance(50)
    await work.drained()
  }
  await written()
  expect(await models()).toHaveLength(160)
  expect(writes() - before).toBeLessThanOrEqual(5)
})

test('a restart without changes writes nothing, and removes nothing before every model was set', async () => {
  const first = await opened()
  await set(first, 'a', ['one'])
  await set(first, 'b', ['two'])
  const before = writes()
  const second = await opened()
  await set(second, 'b', ['two'])
  await written(TEN_MINUTES_MS)
  expect(await models()).toEqual(['a', 'b'])
  await set(second, 'a', ['one'])
  second.start()
  await written(TEN_MINUTES_MS)
  expect(writes()).toBe(before)
})

test('a model that was deleted while no operator ran is removed at the start', async () => {
  const first = await opened()
  await set(first, 'a', ['one'])
  await set(first, 'b', ['two'])
  const second = await opened()
  await set(second, 'b', ['two'])
  second.start()
  await written()
  expect([await models(), await credentials()]).toEqual([['b'], ['one', 'two']])
  await written(TEN_MINUTES_MS)
  expect(await credentials()).toEqual(['two'])
})

test('a rotated credential stays ten minutes for pods that have not mounted the new one', async () => {
  const mounted = await opened()
  await set(mounted, 'a', ['old'])
  await set(mounted, 'a', ['new'])
  expect(await credentials()).toEqual(['old', 'new'])
  await written(TEN_MINUTES_MS - 60_000)
  expect(await credentials()).toEqual(['old', 'new'])
  await written(60_000)
  expect(await credentials()).toEqual(['new'])
})

test('a credential that is used again in time, or that another model uses, stays', async () => {
  const mounted = await opened()
  await set(mounted, 'a', ['one', 'two'])
  await set(mounted, 'b', ['two'])
  await set(mounted, 'a', [])
  await written(TEN_MINUTES_MS / 2)
  await set(mounted, 'a', ['one'])
  await written(TEN_MINUTES_MS)
  expect(await credentials()).toEqual(['one', 'two'])
})

test('the record of a deleted model is removed at once, and its credentials ten minutes later', async () => {
  const mounted = await opened()
  await set(mounted, 'a', ['one'])
  await set(mounted, 'b', ['two'])
  mounted.deleteModel('a')
  await written()
  expect([await models(), await credentials()]).toEqual([['b'], ['one', 'two']])
  await written(TEN_MINUTES_MS)
  expect(await credentials()).toEqual(['two'])
})

test('the removal of a deleted model is tried again until it is written', async () => {
  const mounted = await opened()
  await set(mounted, 'a', ['one'])
  refuse(MODELS)
  mounted.deleteModel('a')
  await written()
  kube.before = () => undefined
  await written(5_000)
  expect(await models()).toEqual([])
})

test('no credential of an unreadable model is removed', async () => {
  const sum = hash('sha256', 'one', 'hex')
  const first = await opened()
  const text = modelText('a').replace('"credentialSum":null', `"credentialSum":"${sum}"`)
  first.setModel('a', { namespace: 'shop', text, credentials: ['one'] })
  await written()
  const second = await opened()
  second.keep('a')
  second.start()
  await written(TEN_MINUTES_MS)
  expect([await models(), await credentials()]).toEqual([['a'], ['one']])
})

describe('a model that cannot be written', () => {
  test('is refused alone, and the two sets do not block each other', async () => {
    const mounted = await opened()
    refuse(UPSTREAM)
    await set(mounted, 'a', ['one'])
    await set(mounted, 'b', [])
    expect(await models()).toEqual(['a', 'b'])
    expect(mounted.refusal('a')).toMatchObject({ message: expect.stringContaining('is refused') })
    expect(mounted.refusal('b')).toBeUndefined()
    kube.before = () => undefined
    await set(mounted, 'a', ['one'])
    expect([mounted.refusal('a'), await credentials()]).toEqual([undefined, ['one']])
  })

  test('because its namespace has too many credentials is refused, and other namespaces can still rotate', async () => {
    const mounted = await opened()
    const heavy = (from: number, count: number): string[] => Array.from({ length: count }, (_, n) => `${from + n}`.padEnd(2_048, 'x'))
    await set(mounted, 'a', heavy(0, 100), 'greedy')
    await set(mounted, 'b', heavy(100, 100), 'greedy')
    expect(mounted.refusal('a')).toBeUndefined()
    expect(mounted.refusal('b')).toBeInstanceOf(NamespaceCredentialsFull)
    expect(mounted.refusal('b')).toMatchObject({ message: expect.stringMatching(/namespace greedy would have \d+ bytes, above 262144/) })
    await set(mounted, 'c', ['old'], 'modest')
    await set(mounted, 'c', ['new'], 'modest')
    expect(mounted.refusal('c')).toBeUndefined()
    expect(await credentials()).toContain('new')
    await set(mounted, 'b', heavy(0, 50), 'greedy') // equal values need no additional room
    expect(mounted.refusal('b')).toBeUndefined()
  })

  test('because its namespace has too many bytes of records is refused, and other namespaces can still add models', async () => {
    const mounted = await opened()
    const large = (uid: string, parts = 150): string => {
      const padding = Array.from({ length: parts }, (_, at) => hash('sha512', `${uid} ${at}`, 'hex')).join('')
      return JSON.stringify({ ...(JSON.parse(modelText(uid)) as object), padding })
    }
    const add = (uid: string, namespace: string, text: string): void => mounted.setModel(uid, { namespace, text, credentials: [] })
    for (let at = 0; at < 60; at += 1) add(`greedy-${at}`, 'greedy', large(`greedy-${at}`))
    await written()
    expect(mounted.refusal('greedy-0')).toBeUndefined()
    expect(mounted.refusal('greedy-59')).toBeInstanceOf(NamespaceRecordsFull)
    expect(mounted.refusal('greedy-59')).toMatchObject({
      message: expect.stringMatching(/namespace greedy would have \d+ bytes, above 917504/),
    })
    add('modest', 'modest', large('modest'))
    await written(30_000) // a write of a large Secret is followed by a rest
    expect([mounted.refusal('modest'), (await models()).includes('modest')]).toEqual([undefined, true])
    expect(mounted.hasRoomFor('greedy-59', 'greedy')).toBe(false)
    settled.length = 0
    mounted.deleteModel('greedy-0')
    const offered = settled.map(([uid]) => uid)
    expect(offered, 'one of those that wait is told, not all').toHaveLength(1)
    expect(mounted.hasRoomFor(offered[0] ?? '', 'greedy')).toBe(true)
    add('greedy-59', 'greedy', large('greedy-59', 100))
    await written()
    expect(mounted.refusal('greedy-59')).toBeUndefined()
  })

  test('because the shards are full has an error that names the set, and never a credential', async () => {
    const mounted = await opened()
    for (let tenant = 0; tenant < 5; tenant++) {
      const values = Array.from({ length: 120 }, (_, n) => `top-secret-${tenant}-${n}-`.padEnd(2_048, 'x'))
      await set(mounted, `model-${tenant}`, values, `tenant-${tenant}`)
    }
    const refused = mounted.refusal('model-4') ?? mounted.refusal('model-3')
    expect(refused).toMatchObject({ message: expect.stringMatching(/^upstream shard 0 .* would hold \d+ bytes, above 921600: use fewer/) })
    expect(mounted.refusal('model-0')).toBeUndefined()
    expect(JSON.stringify([warnings, settled.map(([, error]) => error?.message)])).not.toContain('top-secret')
    expect(await models()).toHaveLength(5)
  })
})

test('entries of another version stay', async () => {
  const foreign = JSON.stringify({ v: 2, uid: 'b', shape: 'new' })
  const records = (await packShard({ shards: 1, shard: 0 }, [foreign])).toString('base64')
  const metadata = (name: string, of: string) => ({ name, namespace: NAMESPACE, labels: { 'headgate.dev/shards': of } })
  await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: metadata(MODELS, 'models'), data: { records } })
  await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: metadata(UPSTREAM, 'upstream'), data: { 'pool.x': 'eA==' } })
  const mounted = await opened()
  mounted.start()
  await set(mounted, 'a', ['one'])
  await set(mounted, 'b', [])
  expect(await models()).toEqual(['b', 'a'])
  expect(await dataOf(UPSTREAM)).toMatchObject({ 'pool.x': 'eA==' })
  expect(mounted.refusal('b')).toMatchObject({ message: expect.stringContaining('version 2') })
})

test('a credential that several models of a namespace share counts once, until the last of them gives it up', async () => {
  const mounted = await opened()
  const large = Array.from({ length: 120 }, (_, n) => `${n}`.padEnd(2_048, 'x'))
  await set(mounted, 'a', large)
  await set(mounted, 'b', large)
  mounted.deleteModel('a')
  await set(mounted, 'c', ['y'.repeat(40_000)])
  expect(mounted.refusal('c')).toBeInstanceOf(NamespaceCredentialsFull)
  settled.length = 0
  mounted.deleteModel('b')
  expect(settled.map(([uid]) => uid)).toEqual(['c'])
  await set(mounted, 'c', ['y'.repeat(40_000)])
  expect(mounted.refusal('c')).toBeUndefined()
})

test('eight times as many models without credentials cost about eight times as much, not sixty-four times', async () => {
  const cpuMs = async (count: number): Promise<number> => {
    const mounted = await opened()
    const before = process.cpuUsage()
    for (let at = 0; at < count; at += 1) mounted.setModel(`m${at}`, { namespace: 'shop', text: undefined, credentials: [] })
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
  const least = async (count: number): Promise<number> => Math.min(await cpuMs(count), await cpuMs(count), await cpuMs(count)) // without a collection of garbage
  await least(500) // warms up
  expect((await least(4_000)) / (await least(500))).toBeLessThan(30)
})
