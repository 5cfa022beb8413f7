import { beforeEach, describe, expect, test } from 'vitest'
import { type KeyringEntry, writeKeyringEntry } from '#contract/records/keyring-entry.ts'
import type { KeyHash } from '#contract/values/credential.ts'
import { RECORDS_KEY, shardSecretName } from '#contract/records/mounted-folder.ts'
import { unpackShard } from '#contract/records/shard-text.ts'
import { packShard } from '../../test/support/pack-shard.ts'
import { FakeKubePort } from '../../test/support/fake-kube-port.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { issuedKey, keyringEntry } from '../../test/support/records.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { Keyring, NamespaceShareFull } from './keyring.ts'
import { shardOf } from './shard.ts'
import { tombstoneOf } from '#contract/records/tombstone.ts'

const NAMESPACE = 'headgate'
const DAY_MS = 24 * 3600 * 1000
const entry = (uid: string, change: Partial<KeyringEntry> = {}): KeyringEntry => keyringEntry(issuedKey(uid).record, change)
/** The fields of an entry in its stored text. */
const wireOf = (one: KeyringEntry): object => JSON.parse(writeKeyringEntry(one)) as object

let kube: FakeKubePort
let clock: ManualClock
let warnings: string[]
let released: KeyHash[]

beforeEach(() => {
  kube = new FakeKubePort()
  clock = new ManualClock()
  warnings = []
  released = []
})

async function opened(shards = 1, limitBytes = 921_600, maxModelBytesPerNamespace = Infinity): Promise<Keyring> {
  const keyring = new Keyring({
    kube,
    namespace: NAMESPACE,
    clock,
    shards,
    limitBytes,
    maxModelBytesPerNamespace,
    assertLeading: () => undefined,
    warn: (message) => warnings.push(message),
    onReleased: (hash) => released.push(hash),
  })
  const loaded = keyring.load()
  const isLoaded = await Promise.race([loaded.then(() => true), pause(20)])
  if (isLoaded !== true) await durable(keyring)
  await loaded
  return keyring
}

const pause = (ms = 1): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms))

/** Packing takes real time; a commit that waits for others needs the test clock. */
async function durable(keyring: Keyring): Promise<void> {
  do {
    await clock.advance(10)
    await pause()
  } while (keyring.pendingCount > 0)
}

async function committed(keyring: Keyring, ...entries: readonly KeyringEntry[]): Promise<void> {
  for (const one of entries) keyring.commit(one, 'change')
  await durable(keyring)
}

const nameOf = (shard = 0, shards = 1): string => shardSecretName('keyring', shards, shard)
const stored = (shard = 0, shards = 1): Promise<Secret | undefined> =>
  kube.get(secrets, { namespace: NAMESPACE, name: nameOf(shard, shards) })
async function texts(shard = 0, shards = 1): Promise<readonly string[]> {
  const data = (await stored(shard, shards))?.data?.[RECORDS_KEY]
  return data === undefined ? [] : unpackShard(Buffer.from(data, 'base64'))
}
const writes = (name = 'hg-keyring'): number =>
  kube.calls.filter((call) => (call.verb === 'create' || call.verb === 'update') && call.name.startsWith(name)).length

/** Writes a shard as another process does. */
async function put(data: Readonly<Record<string, string>>, shard = 0, shards = 1): Promise<void> {
  const present = await stored(shard, shards)
  const metadata = { namespace: NAMESPACE, name: nameOf(shard, shards), labels: { 'headgate.dev/shards': 'keyring' } }
  if (present) await kube.update(secrets, { ...present, data })
  else await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data })
}
const packed = async (lines: readonly string[]): Promise<Record<string, string>> => ({
  [RECORDS_KEY]: (await packShard({ shards: 1, shard: 0 }, lines)).toString('base64'),
})

describe('the keyring', () => {
  test('counts the keys of a namespace, including tombstones and pending keys', async () => {
    const keyring = await opened(4)
    await committed(keyring, entry('a'), entry('b'), entry('c', { namespace: 'other' }))
    keyring.commit(entry('d'), 'create')
    keyring.commit(tombstoneOf(entry('b'), clock.now()), 'urgent')
    expect([keyring.countIn('shop'), keyring.countIn('other'), keyring.countIn('nobody')]).toEqual([3, 1, 0])
    await durable(keyring)
    keyring.remove('a', 'background')
    await durable(keyring)
    expect(keyring.countIn('shop')).toBe(2)
    expect((await opened(4)).countIn('shop')).toBe(2)
  })

  test('does not count a refused key', async () => {
    const keyring = await opened()
    kube.before = ({ verb }) => {
      if (verb === 'create') throw new Error('not now')
    }
    await committed(keyring, entry('a'))
    expect(keyring.countIn('shop')).toBe(0)
  })

  test('has the newest revision of all entries', async () => {
    const keyring = await opened(4)
    await committed(keyring, entry('a', { revision: 7 }), entry('b', { revision: 9 }), entry('c', { revision: 8 }))
    expect([keyring.revision, (await opened(4)).revision]).toEqual([9, 9])
  })
})

describe('a value', () => {
  const held = entry('a')
  const verifier = held.verifiers[0]!

  test('is held by its key while it is live, durable or pending, and no longer', async () => {
    const keyring = await opened()
    const holders = (): string[] => [...keyring.holdersOf(verifier.hash)].map(({ uid }) => uid)
    keyring.commit(held, 'create')
    expect(holders()).toEqual(['a'])
    await durable(keyring)
    keyring.commit({ ...held, verifiers: [] }, 'change')
    expect(holders(), 'durable still').toEqual(['a'])
    await durable(keyring)
    expect(holders()).toEqual([])
    expect(released).toEqual([verifier.hash])
  })

  test('may be held by two keys, and each releases it separately', async () => {
    const keyring = await opened()
    await committed(keyring, held, { ...held, uid: 'b' }, { ...held, uid: 'c' })
    await committed(keyring, tombstoneOf(held, 7), { ...held, uid: 'b', verifiers: [{ ...verifier, state: 'Revoked' }] })
    expect([...keyring.holdersOf(verifier.hash)].map(({ uid }) => uid)).toEqual(['c'])
    keyring.remove('c', 'background')
    await durable(keyring)
    expect([[...keyring.holdersOf(verifier.hash)], released]).toEqual([[], [verifier.hash, verifier.hash, verifier.hash]])
  })
})

describe('a deleted key', () => {
  test('leaves a tombstone without its policy, in which every generation is ended', () => {
    const verifier = entry('a').verifiers[0]!
    const verifiers = (['Issued', 'Minted', 'Voided', 'Revoked'] as const).map((state) => ({ ...verifier, state }))
    const tombstone = tombstoneOf(entry('a', { verifiers, models: [['secret-model']] }), 7)
    expect(tombstone).toMatchObject({ state: 'Revoked', deletedMs: 7 })
    expect(tombstone.verifiers.map(({ state }) => state)).toEqual(['Revoked', 'Voided', 'Voided', 'Revoked'])
    expect(writeKeyringEntry(tombstone)).not.toContain('secret-model')
  })

  test('is forgotten after a day, thousands of them in one write per shard', async () => {
    const keyring = await opened(4)
    const old = Array.from({ length: 1_000 }, (_, n) => tombstoneOf(entry(`old-${n}`), clock.now()))
    await committed(keyring, ...old)
    await clock.advance(DAY_MS / 2)
    await committed(keyring, tombstoneOf(entry('young'), clock.now()), entry('live'))
    await clock.advance(DAY_MS / 2 + 1)
    const before = writes()
    expect(keyring.expireTombstones(clock.now())).toBe(1_000)
    expect(keyring.expireTombstones(clock.now())).toBe(0)
    await durable(keyring)
    expect(writes() - before).toBeLessThanOrEqual(8)
    expect([...keyring.entries()].map(({ uid }) => uid).toSorted()).toEqual(['live', 'young'])
  })
})

describe('an entry of another version', () => {
  const foreign = JSON.stringify({ v: 2, uid: 'b', limits: 5 })

  test('stays byte for byte, and fields that this version does not know survive an edit', async () => {
    const a = entry('a')
    const untouched = JSON.stringify({ tier: { size: 5 }, ...wireOf(entry('c')) }) // another order of the fields
    await put(await packed([JSON.stringify({ ...wireOf(a), tier: 1 }), foreign, untouched]))
    const keyring = await opened()
    expect([...keyring.entries()].map(({ uid }) => uid)).toEqual(['a', 'c'])
    expect([keyring.isUnreadable('b'), keyring.isUnreadable('c'), keyring.isDamaged('b')]).toEqual([true, false, false])
    await committed(keyring, { ...a, state: 'Suspended' })
    expect(await texts()).toEqual([JSON.stringify({ ...wireOf(a), state: 'Suspended', tier: 1 }), foreign, untouched])
  })
})

describe('the share of a namespace', () => {
  const errors = new Map<string, Error | undefined>()
  const named = (uid: string, bytes: number, change: Partial<KeyringEntry> = {}): KeyringEntry =>
    entry(uid, { models: [['m'.repeat(bytes)]], ...change })
  let keyring: Keyring

  beforeEach(async () => {
    errors.clear()
    keyring = await opened(1, 921_600, 1_000)
    keyring.onSettled((uid, error) => errors.set(uid, error))
  })

  test('refuses a new key and a growing policy, with the bytes and the setting', async () => {
    await committed(keyring, named('a', 600), named('b', 401))
    expect([keyring.get('a')?.uid, keyring.get('b')]).toEqual(['a', undefined])
    expect(errors.get('b')).toBeInstanceOf(NamespaceShareFull)
    expect(errors.get('b')?.message).toMatch(/1001 bytes, above 1000: .*operator.settings.maxModelBytesPerNamespace/)
    await committed(keyring, named('b', 400), named('a', 601))
    expect([keyring.get('b')?.uid, errors.get('a')]).toEqual(['b', expect.any(NamespaceShareFull)])
    expect(keyring.get('a')?.models).toEqual([['m'.repeat(600)]])
  })

  test('counts pending commits, and is free again once policies have shrunk or keys are deleted', async () => {
    keyring.commit(named('a', 600), 'create')
    keyring.commit(named('b', 600), 'create')
    await durable(keyring)
    expect([keyring.get('a')?.uid, keyring.get('b')]).toEqual(['a', undefined])
    await committed(keyring, named('a', 400), named('b', 600))
    expect(keyring.get('b'), 'the larger policy is durable until the smaller one is').toBeUndefined()
    await committed(keyring, named('b', 600))
    await committed(keyring, tombstoneOf(named('b', 600), 7), named('c', 600))
    await committed(keyring, named('c', 600))
    expect(keyring.get('c')?.uid).toBe('c')
    keyring.remove('c', 'background')
    await durable(keyring)
    await committed(keyring, named('d', 600))
    expect(keyring.get('d')?.uid).toBe('d')
  })

  test('does not affect other namespaces, suspensions and keys that were issued before', async () => {
    await committed(keyring, named('a', 1_000), named('b', 1_000, { namespace: 'another' }))
    keyring.commit(named('a', 1_000, { state: 'Suspended' }), 'urgent')
    keyring.commit(named('c', 1_000), 'change', { isRestored: true })
    await durable(keyring)
    expect([keyring.get('b')?.uid, keyring.get('a')?.state, keyring.get('c')?.uid]).toEqual(['b', 'Suspended', 'c'])
    const lowered = await opened(1, 921_600, 10)
    await committed(lowered, named('a', 1_000, { generation: 9 }))
    expect(lowered.get('a')?.generation, 'a lower setting stops no edit that does not grow').toBe(9)
  })
})

describe('another number of shards', () => {
  const uids = ['a', 'b', 'c', 'd', 'e']
  const names = async (): Promise<string[]> => (await kube.list(secrets, NAMESPACE)).map(({ metadata }) => metadata.name).sort()

  test('moves the keys in grouped writes; gateways keep the former Secrets for ten minutes', async () => {
    await committed(await opened(4), ...uids.map((uid) => entry(uid, { revision: 3 })))
    const former = await names()
    const before = writes()
    const keyring = await opened(2)
    expect([...keyring.entries()].map(({ uid }) => uid).sort()).toEqual(uids)
    expect(writes() - before).toBe(2)
    await clock.advance(599_000)
    expect(await names()).toEqual(['hg-keyring-2-0', 'hg-keyring-2-1', ...former])
    await clock.advance(2_000)
    expect(await names()).toEqual(['hg-keyring-2-0', 'hg-keyring-2-1'])
    expect([...(await opened(2)).entries()]).toHaveLength(5)
  })

  test('leaves the newest entry of each key, whichever number of shards has it', async () => {
    await committed(await opened(4), entry('a', { revision: 3 }))
    await committed(await opened(2), entry('a', { revision: 5, state: 'Suspended' }))
    await opened(2)
    await clock.advance(601_000)
    expect(await names()).toEqual([nameOf(shardOf('a', 2), 2)])
    expect((await opened(2)).get('a')?.state).toBe('Suspended')
  })

  test('keeps a former Secret that cannot be read, and treats its keys as unknown', async () => {
    await put({ [RECORDS_KEY]: (await packShard({ shards: 4, shard: 0 }, ['x'], 2)).toString('base64') }, 0, 4)
    await put(await packed([JSON.stringify({ v: 2, uid: 'b' }), writeKeyringEntry(entry('a'))]), 1, 4)
    const keyring = await opened(2)
    await clock.advance(700_000)
    expect(await names()).toEqual(expect.arrayContaining(['hg-keyring-4-0', 'hg-keyring-4-1']))
    expect(keyring.get('a')?.uid).toBe('a')
    const inFirst = uids.concat('f', 'g', 'h', 'i', 'j').find((uid) => shardOf(uid, 4) === 0) ?? ''
    expect([keyring.isUnreadable('b'), keyring.isUnreadable(inFirst), keyring.isUnreadable('a')]).toEqual([true, true, false])
  })
})

test('2,000 keys of which half of the shards are damaged are back with two writes per shard at most', async () => {
  const one = entry('key')
  const all = Array.from({ length: 2_000 }, (_, n) => ({ ...one, uid: `key-${n}` }))
  const first = await opened(32)
  await committed(first, ...all)
  for (let shard = 0; shard < 32; shard += 2) await put({ [RECORDS_KEY]: 'ZGFtYWdlZA==' }, shard, 32)
  kube.calls.length = 0
  const keyring = await opened(32)
  expect(all.filter(({ uid }) => keyring.isDamaged(uid) && keyring.get(uid) === undefined).length).toBeGreaterThan(800)
  await committed(keyring, ...all.filter(({ uid }) => keyring.get(uid) === undefined && keyring.isDamaged(uid)))
  expect([...keyring.entries()]).toHaveLength(2_000)
  for (let shard = 0; shard < 32; shard++)
    expect(kube.calls.filter(({ verb, name }) => verb !== 'get' && name === nameOf(shard, 32)).length).toBeLessThanOrEqual(2)
})
