import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hashCredential } from '#contract/values/credential.ts'
import { FakeLedgerStore } from '../../../test/support/fake-ledger-store.ts'
import { SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { MemoryProjection } from '../../../standalone/memory-projection.ts'
import type { ApiKeySpec } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { secrets } from '#kube/resources.ts'
import { apiKeyRow } from './kind.ts'

/** Values of another gateway. */
const [OLD, NEW, THIRD] = ['sk-1234567890abcdefghijAB', 'sk-zyxwvutsrqponmlkjihgCD', 'sk-chosen by nobody'.replaceAll(' ', '.')] as const
const HOUR = 3_600
let world: OperatorWorld

beforeEach(() => {
  world = new OperatorWorld([apiKeyRow])
})
afterEach(() => world.stop())

const hex = (value: string): string => createHash('sha256').update(value).digest('hex')
const condition = (type: string, name = 'bot') => world.condition(apiKeys, name, type)
const reasons = (name = 'bot'): string[] => world.events.filter((event) => event.name === name).map(({ reason }) => reason)

function spec(value: string, overlapSeconds?: number, more: Partial<ApiKeySpec> = {}): Partial<ApiKeySpec> {
  return {
    source: { type: 'Hash', hash: { sha256: hex(value), hint: `sk-...${value.slice(-4)}` } },
    ...(overlapSeconds === undefined ? {} : { rotation: { overlapSeconds } }),
    ...more,
  }
}

/** Applies the key and settles. */
async function applied(value: string, overlapSeconds?: number, more: Partial<ApiKeySpec> = {}): Promise<void> {
  await world.settledKey(spec(value, overlapSeconds, more))
}

async function imported(value: string = OLD, overlapSeconds?: number): Promise<void> {
  await world.start()
  await applied(value, overlapSeconds)
}

/** Advances the time and settles. */
async function after(seconds: number): Promise<void> {
  await world.pass(seconds)
  await world.settle()
}

/** Values that gateways admit now, by the clock of a gateway. */
async function admitted(name = 'bot'): Promise<string[]> {
  const records = (await world.keyRecords()).filter((record) => record.name === name && record.state === 'Active')
  const live = records.flatMap(({ verifiers }) => verifiers).filter(({ expiresMs }) => expiresMs === null || expiresMs > world.now)
  return live.map(({ hash }) => [OLD, NEW, THIRD].find((value) => hashCredential(value) === hash) ?? 'another')
}

/** Hashes in the keyring, in any state. */
async function inKeyring(name = 'bot'): Promise<string[]> {
  return (await world.keyringEntries()).filter((entry) => entry.name === name).flatMap(({ verifiers }) => verifiers.map(({ hash }) => hash))
}

describe('a key whose value exists already', () => {
  test('is on the gateways with the hash of its manifest, is Ready, and needs two writes: the finalizer and the status', async () => {
    await imported()
    expect(await admitted()).toEqual([OLD])
    expect([await condition('Ready'), await condition('SecretIssued'), await condition('Programmed')]).toEqual([
      'True Ready',
      'True NotApplicable',
      'True Programmed',
    ])
    expect(world.writes.filter((write) => !write.includes('hg-'))).toEqual(['patch apikeys bot', 'status apikeys bot'])
    expect(reasons()).toEqual(['Imported'])
  })

  test('has no Secret, and its value appears in no output of the operator', async () => {
    await imported()
    expect(await world.secret()).toBeUndefined()
    const all = JSON.stringify([await world.key(), world.events, world.logs, await world.keyringEntries(), await world.keyRecords()])
    expect(all).not.toContain(OLD)
    expect(JSON.stringify((await world.key()).status)).not.toContain(hex(OLD))
  })

  test('shows the hint as its prefix, and a random id', async () => {
    await imported()
    const { status } = await world.key()
    expect(status?.prefix).toBe('sk-...ijAB')
    expect(status?.keyID).toMatch(/^[0-9A-Za-z]{10}$/)
    expect(status?.verifiers).toMatchObject([{ id: status?.keyID }])
    expect(status?.secretRef).toBeUndefined()
  })

  test('shows an edited hint, under the same id', async () => {
    await imported()
    const id = (await world.key()).status?.keyID
    await world.settledKey({ source: { type: 'Hash', hash: { sha256: `sha256:${hex(OLD)}` } } })
    expect((await world.key()).status).toMatchObject({ keyID: id })
    expect((await world.key()).status?.prefix).toBeUndefined()
    expect(reasons()).toEqual(['Imported'])
  })

  test('whose hint is the whole value is refused, and the value is not shown', async () => {
    await world.start()
    await world.settledKey({ source: { type: 'Hash', hash: { sha256: hex('sk-short'), hint: 'sk-short' } } })
    expect([await condition('Accepted'), await condition('Ready'), await condition('Stalled')]).toEqual([
      'False SourceInvalid',
      'False NotAccepted',
      'True SourceInvalid',
    ])
    expect(JSON.stringify([(await world.key()).status, world.events])).not.toContain('sk-short')
    expect(await admitted()).toEqual([])
  })
})

test('a hint that an edit sets to the whole value is not shown, and the key continues to work', async () => {
  await imported('sk-short')
  await world.settledKey({ source: { type: 'Hash', hash: { sha256: hex('sk-short'), hint: 'sk-short' } } })
  expect([await condition('Accepted'), await admitted()]).toEqual(['False SourceInvalid', ['another']])
  expect(JSON.stringify([(await world.key()).status, world.events, await world.keyringEntries()])).not.toContain('sk-short')
})

describe('rotation', () => {
  test.each([3, -3])('keeps the overlap under a leader whose clock is %d days ahead of that of the store', async (days) => {
    const { now, clock } = world
    const store = { now: () => now - began + clock.monotonic() }
    const began = clock.monotonic()
    world.ledger = new FakeLedgerStore(store.now)
    await imported(OLD)
    world.now += days * 24 * HOUR * 1_000
    await applied(NEW, HOUR)
    await world.restart()
    const admittedByStore = async (): Promise<number> =>
      (await world.keyRecords()).flatMap(({ verifiers }) => verifiers).filter(({ expiresMs }) => (expiresMs ?? Infinity) > store.now())
        .length
    expect(await admittedByStore()).toBe(2)
    await after(HOUR / 2)
    expect(await admittedByStore()).toBe(2)
    await after(HOUR)
    expect([await admittedByStore(), await inKeyring()]).toEqual([1, [hashCredential(NEW)]])
    const calls = world.writes.length
    await after(10)
    expect(world.writes.length).toBe(calls)
  })

  test('that began under a right clock keeps its overlap when a leader takes over whose clock is days ahead', async () => {
    const { now, clock } = world
    const began = clock.monotonic()
    world.ledger = new FakeLedgerStore(() => now - began + clock.monotonic())
    await imported(OLD)
    await applied(NEW, HOUR)
    world.now += 3 * 24 * HOUR * 1_000
    await world.restart()
    await after(60)
    expect((await inKeyring()).toSorted()).toEqual([hashCredential(OLD), hashCredential(NEW)].toSorted())
    await after(HOUR)
    expect(await inKeyring()).toEqual([hashCredential(NEW)])
  })

  test('keeps its overlap under a leader whose clock is days ahead while Redis is away since its start', async () => {
    const { now, clock } = world
    const began = clock.monotonic()
    const ledger = new FakeLedgerStore(() => now - began + clock.monotonic())
    world.ledger = ledger
    await imported(OLD)
    await applied(NEW, HOUR)
    await world.stopProcesses()
    world.now += 3 * 24 * HOUR * 1_000
    ledger.isDown = true
    world.storeDown = true
    await world.start()
    await after(60)
    expect((await inKeyring()).toSorted(), 'gateways read the keyring now').toEqual([hashCredential(OLD), hashCredential(NEW)].toSorted())
    ledger.isDown = false
    world.storeDown = false
    await after(60)
    expect(await inKeyring()).toHaveLength(2)
    await after(HOUR)
    expect(await inKeyring()).toEqual([hashCredential(NEW)])
  })

  test('back to a value that still works keeps the id of the value, and gives the other value the overlap', async () => {
    await imported(OLD)
    const id = (await world.key()).status?.keyID
    await applied(NEW, HOUR)
    await applied(OLD, HOUR)
    expect((await world.key()).status?.keyID).toBe(id)
    expect((await admitted()).toSorted()).toEqual([OLD, NEW].toSorted())
    await after(HOUR + 1)
    expect(await admitted()).toEqual([OLD])
    expect(await condition('Ready')).toBe('True Ready')
  })

  test('five times within the overlap leaves four values, and causes an Event for the oldest', async () => {
    await imported(OLD)
    for (const value of [NEW, THIRD, 'sk-four', 'sk-five']) await applied(value, HOUR)
    expect(await admitted()).toHaveLength(4)
    expect(await admitted()).not.toContain(OLD)
    expect(reasons()).toContain('ValueEndedEarly')
    expect((await world.key()).status?.verifiers).toHaveLength(4)
  })

  test('a clock that is set back shortens no overlap', async () => {
    await imported(OLD)
    await applied(NEW, HOUR)
    const before = (await world.keyRecords())[0]?.verifiers
    world.now -= 600_000
    await world.restart()
    expect((await world.keyRecords())[0]?.verifiers).toEqual(before)
  })
})

describe('two keys with one value', () => {
  test('the older ApiKey has the value; the younger one is refused, without the name of the other', async () => {
    await imported()
    await world.applyKey(spec(OLD), 'copy', 'other')
    await world.settledKey(spec(OLD), 'twin')
    expect([await condition('Accepted', 'twin'), await condition('Ready', 'twin'), await condition('Stalled', 'twin')]).toEqual([
      'False DuplicateKey',
      'False NotAccepted',
      'True DuplicateKey',
    ])
    const message = await world.message(apiKeys, 'twin', 'Accepted')
    expect(message).not.toContain('bot')
    expect(message).not.toContain(SHOP)
    expect([await admitted(), await admitted('twin'), await admitted('copy')]).toEqual([[OLD], [], []])
  })

  test('if both were applied while no operator ran, the older ApiKey gets the value, in any order of reads', async () => {
    await world.applyKey(spec(OLD), 'zed')
    await world.pass(5)
    await world.applyKey(spec(OLD), 'abe')
    await world.start()
    expect([await admitted('zed'), await admitted('abe')]).toEqual([[OLD], []])
  })

  test('an older ApiKey that later names the hash of a working key does not get the value', async () => {
    await world.start()
    await world.settledKey(spec(NEW), 'older')
    await world.pass(5)
    await applied(OLD)
    await world.settledKey(spec(OLD), 'older')
    expect([await admitted(), await admitted('older')]).toEqual([[OLD], [NEW]])
    expect(await condition('Accepted', 'older')).toBe('False DuplicateKey')
  })

  test('the value passes to the other key when the overlap of a rotation is over', async () => {
    await imported(OLD)
    await applied(NEW, 300)
    await world.settledKey(spec(OLD), 'twin')
    expect(await condition('Accepted', 'twin')).toBe('False DuplicateKey')
    await after(301)
    expect([await admitted(), await admitted('twin')]).toEqual([[NEW], [OLD]])
  })

  test('the hash of a generated key is refused as well', async () => {
    await world.start()
    await world.settledKey({}, 'generated')
    await applied(await world.value('generated'))
    expect(await condition('Accepted')).toBe('False DuplicateKey')
    expect((await world.keyRecords()).map(({ name }) => name)).toEqual(['generated'])
  })

  test('a revoked key keeps its value from others', async () => {
    await imported()
    await applied(OLD, undefined, { state: 'Revoked' })
    await world.settledKey(spec(OLD), 'twin')
    expect(await admitted('twin')).toEqual([])
  })
})

describe('a key with source.type Hash', () => {
  test('that was revoked before its hash was taken never works', async () => {
    await world.start()
    await applied(OLD, undefined, { state: 'Revoked' })
    expect(await admitted()).toEqual([])
    expect(await inKeyring()).toEqual([])
  })
})

describe('a key with source.type Hash, after a loss', () => {
  test('needs no write after a restart', async () => {
    await imported()
    world.writes.length = 0
    await world.restart()
    expect(world.writes).toEqual([])
  })

  test('gets a lost status again, under the same id', async () => {
    await imported()
    const id = (await world.key()).status?.keyID
    const { status: _lost, ...rest } = await world.key()
    await world.objects.applyStatus(apiKeys, { ...rest, status: {} })
    await world.restart()
    expect((await world.key()).status?.keyID).toBe(id)
    expect(await condition('Ready')).toBe('True Ready')
  })

  test('gets both values back into a lost keyring from the records of the gateways', async () => {
    await imported(OLD)
    await applied(NEW, HOUR)
    const id = (await world.key()).status?.keyID
    await world.stopProcesses()
    await loseKeyring()
    await world.start()
    expect((await admitted()).toSorted()).toEqual([OLD, NEW].toSorted())
    expect((await world.key()).status?.keyID).toBe(id)
    await after(HOUR + 1)
    expect(await admitted()).toEqual([NEW])
  })

  test('gets its value back from the manifest, under the same id, after the loss of both keyring and Redis', async () => {
    await imported()
    const id = (await world.key()).status?.keyID
    await world.stopProcesses()
    await loseKeyring()
    world.memory = new MemoryProjection({ now: () => world.now })
    await world.start()
    expect(await admitted()).toEqual([OLD])
    expect((await world.key()).status?.keyID).toBe(id)
    expect(await condition('Ready')).toBe('True Ready')
  })

  async function loseKeyring(): Promise<void> {
    for (const { metadata } of await world.shards('keyring'))
      await world.objects.remove(secrets, { namespace: metadata.namespace ?? '', name: metadata.name })
  }
})

describe('a crash at every write', () => {
  test('during an outage of Redis a hash is durable at once, live as soon as Redis answers, and the former value ends as promised', async () => {
    await imported(OLD)
    world.storeDown = true
    await applied(NEW, 0)
    expect(await inKeyring()).toEqual([hashCredential(NEW)])
    expect(await condition('Programmed')).toBe('Unknown StoreUnreachable')
    world.storeDown = false
    await after(10)
    expect(await admitted()).toEqual([NEW])
    expect(await condition('Ready')).toBe('True Ready')
  })
})
