import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { credentialForm, hashCredential } from '#contract/values/credential.ts'
import { MemoryProjection } from '../../../standalone/memory-projection.ts'
import { secret, SHOP } from '../../../test/support/objects.ts'
import type { WorldCall } from '../../../test/support/operator-process.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { apiKeys } from '#api/resources.ts'
import { KubeError } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { apiKeyRow } from './kind.ts'

const BOT = { namespace: SHOP, name: 'bot' }
let world: OperatorWorld

beforeEach(() => {
  world = new OperatorWorld([apiKeyRow])
})
afterEach(() => world.stop())

const condition = (type: string, name = 'bot') => world.condition(apiKeys, name, type)
const reasons = (): string[] => world.events.map(({ reason }) => reason)

async function deleted(): Promise<void> {
  await world.objects.remove(apiKeys, BOT)
  await world.settle()
}

async function loseSecrets(namespace: string): Promise<void> {
  for (const { metadata } of await world.objects.list(secrets, namespace))
    await world.objects.remove(secrets, { namespace: metadata.namespace ?? '', name: metadata.name })
}

const isUserSecret = ({ plural, name }: WorldCall): boolean => plural === 'secrets' && name === 'bot'

test('an edit that meets a conflict in the keyring is decided again at once, and the log reports no failure', async () => {
  await world.issuedKey()
  world.conflictFive('keyring')
  await world.applyKey({ state: 'Suspended' })
  await world.during(world.sleep(500))
  expect((await world.keyringEntries()).map(({ state }) => state)).toEqual(['Suspended'])
  expect(world.logs.filter((line) => line.includes('cannot be written'))).toEqual([])
})

describe('issuing', () => {
  test('an ApiKey becomes a Secret that configures an SDK, a record on the gateways, and Ready', async () => {
    const value = await world.issuedKey({ models: ['llama-*'] })
    expect(credentialForm(value).form).toBe('own')
    expect([await condition('Ready'), await condition('Programmed')]).toEqual(['True Ready', 'True Programmed'])
    expect((await world.key()).status?.programmed).toMatchObject({ ready: 2, total: 2 })
    const [record] = await world.keyRecords()
    expect(record).toMatchObject({ namespace: SHOP, name: 'bot', state: 'Active', models: [['llama-*']] })
    expect(record?.verifiers.map(({ hash }) => hash)).toEqual([hashCredential(value)])
    expect(Object.keys((await world.data()) ?? {})).toEqual([
      'SERVICE_API_KEY',
      'SERVICE_BASE_URL',
      'OPENAI_API_KEY',
      'OPENAI_BASE_URL',
      'ANTHROPIC_AUTH_TOKEN',
      'ANTHROPIC_BASE_URL',
    ])
    expect(reasons()).toEqual(['Issued'])
  })

  test('only the Secret has the value: not the status, Events, logs, the keyring or the projection', async () => {
    const value = await world.issuedKey()
    const elsewhere = JSON.stringify([
      await world.key(),
      world.events,
      world.logs,
      await world.keyringEntries(),
      await world.objects.list(secrets, 'headgate'),
      await world.keyRecords(),
    ])
    expect(value).toHaveLength(65)
    for (const form of [value, Buffer.from(value).toString('base64')]) expect(elsewhere).not.toContain(form)
    expect(JSON.stringify((await world.key()).status)).not.toContain(hashCredential(value))
  })

  test('a new key reads no Secret before its status, and writes finalizer, Secret and status once', async () => {
    const reads: string[] = []
    world.beforeCall = ({ verb, plural, name }) => void (verb === 'get' && reads.push(`${plural} ${name}`))
    await world.issuedKey()
    expect(reads.filter((read) => read === 'secrets bot')).toEqual([])
    expect(world.writes.filter((write) => !write.includes('hg-'))).toEqual([
      'patch apikeys bot',
      'create secrets bot',
      'status apikeys bot',
    ])
  })

  test('a foreign Secret with the wanted name stays unchanged, and no working value is left over', async () => {
    const foreign = await world.objects.create(secrets, secret('bot', { a: 'b' }))
    await world.issuedKey()
    expect([await condition('SecretIssued'), await condition('Stalled')]).toEqual(['False SecretConflict', 'True SecretConflict'])
    expect(await world.secret()).toEqual(foreign)
    expect((await world.keyRecords()).flatMap(({ verifiers }) => verifiers)).toEqual([])
    await world.objects.remove(secrets, BOT)
    await world.pass(61)
    await world.settle()
    expect(await condition('Ready')).toBe('True Ready')
  })

  test('the status reports an expired key, and the key works again after its end is moved', async () => {
    await world.issuedKey({ ttlSeconds: 60 })
    await world.pass(61)
    await world.settle()
    expect([await condition('Ready'), await condition('Expired')]).toEqual(['False Expired', 'True Expired'])
    await world.settledKey({ ttlSeconds: 600 })
    expect(await condition('Ready')).toBe('True Ready')
  })

  test('a key whose Secret a quota refuses leaves no live verifier, is minted at most twice, and is issued when the quota is raised', async () => {
    world.refuse((call) => isUserSecret(call) && call.verb === 'create', new KubeError('QuotaExceeded', 403, 'exceeded quota: tiny'))
    await world.issuedKey()
    await world.pass(3_600)
    await world.settle()
    expect(await condition('SecretIssued')).toBe('False QuotaExceeded')
    expect(await world.message(apiKeys, 'bot', 'SecretIssued')).toContain('exceeded quota: tiny')
    expect(reasons().filter((reason) => reason === 'QuotaExceeded')).toHaveLength(1)
    expect((await world.keyRecords()).flatMap(({ verifiers }) => verifiers)).toEqual([])
    const [entry] = await world.keyringEntries()
    expect(entry?.verifiers.map(({ state }) => state)).toEqual(['Voided'])
    world.beforeCall = () => undefined
    await world.pass(400) // longer than the longest back-off
    await world.settle()
    expect(await condition('Ready')).toBe('True Ready')
    expect((await world.keyRecords())[0]?.verifiers.map(({ hash }) => hash)).toEqual([hashCredential(await world.value())])
  })

  test('a Secret whose write got no answer is found, and its value works', async () => {
    let lost = 0
    world.afterCall = (call) => {
      if (isUserSecret(call) && call.verb === 'create' && lost++ === 0) throw new KubeError('Unreachable', 0, 'no answer')
    }
    const value = await world.issuedKey()
    expect(lost).toBeGreaterThan(0)
    expect(await condition('Ready')).toBe('True Ready')
    expect((await world.keyRecords())[0]?.verifiers.map(({ hash }) => hash)).toEqual([hashCredential(value)])
  })
})

describe('changing', () => {
  test('Revoked deletes the Secret and keeps the object and its record, so that gateways can give the reason', async () => {
    await world.issuedKey()
    await world.settledKey({ state: 'Revoked' })
    expect(await world.secret()).toBeUndefined()
    expect((await world.keyRecords())[0]).toMatchObject({ state: 'Revoked' })
    expect(await condition('Ready')).toBe('False Revoked')
    expect(reasons()).toEqual(['Issued', 'Revoked'])
  })

  test('a deleted Secret is reported and no new key is minted: the issued value continues to work', async () => {
    await world.issuedKey()
    const before = await world.keyRecords()
    await world.objects.remove(secrets, BOT)
    await world.settledKey({ displayName: 'look again' })
    expect(await condition('SecretIssued')).toBe('False SecretMissing')
    expect((await world.keyRecords())[0]?.verifiers).toEqual(before[0]?.verifiers)
    expect(await world.secret()).toBeUndefined()
  })

  test('a value that a user changed stays, and the condition says that it is not the key', async () => {
    await world.issuedKey()
    await world.apply(secrets, secret('bot', { SERVICE_API_KEY: 'mine' }))
    await world.settledKey({ displayName: 'look again' })
    expect(await condition('SecretIssued')).toBe('False SecretModified')
    expect(await world.value()).toBe('mine')
  })

  test('a restart and repeated events cause no writes', async () => {
    await world.issuedKey()
    const [writes, meta] = [world.writes.length, await world.memory.meta()]
    world.watches.isDoubled = true
    await world.restart()
    expect(world.writes.slice(writes)).toEqual([])
    expect(await world.memory.meta()).toEqual({ ...meta, fence: 2 })
  })

  test('many edits of one key become few revisions, and the last edit takes effect', async () => {
    await world.issuedKey()
    const before = (await world.memory.meta())?.revision ?? 0
    for (let n = 0; n < 60; n += 1) {
      await world.applyKey({ models: Array.from({ length: n + 1 }, (_, index) => `m-${index}`).concat('*') })
      await world.pass(0.05)
    }
    await world.settle()
    expect((await world.keyRecords())[0]?.models?.[0]).toHaveLength(61)
    expect(((await world.memory.meta())?.revision ?? 0) - before).toBeLessThanOrEqual(10) // 5 at once, one per second
  })

  test('an edit that restricts does not wait for other edits', async () => {
    await world.issuedKey()
    for (let n = 0; n < 10; n += 1) {
      await world.applyKey({ models: ['*', ...Array.from({ length: n + 1 }, (_, index) => `m-${index}`)] })
      await world.pass(0.01)
    }
    await world.applyKey({ state: 'Suspended' })
    await world.pass(0.01)
    expect((await world.keyRecords())[0]?.state).toBe('Suspended')
  })

  test('a write to an object that has changed since its read is tried again', async () => {
    await world.start()
    await world.applyKey()
    await world.settledKey({ displayName: 'changed before the watch delivered the first state' })
    expect(await condition('Ready')).toBe('True Ready')
    expect(world.logs.join('\n')).not.toContain('failed')
  })
})

describe('deleting', () => {
  test('the object is deleted only after the gateways have removed the key; the keyring remembers the revocation', async () => {
    await world.issuedKey()
    await deleted()
    expect(await world.objects.get(apiKeys, BOT)).toBeUndefined()
    expect(await world.keyRecords()).toEqual([])
    expect(await world.keyringEntries()).toMatchObject([{ state: 'Revoked', verifiers: [{ state: 'Revoked' }] }])
    expect(reasons()).toEqual(['Issued', 'Revoked'])
    expect(await world.secret()).toBeUndefined()
    expect(world.writes.filter((write) => write === 'patch apikeys bot')).toHaveLength(2) // the finalizer, on and off
  })

  test.each([3_600_000, -3_600_000])(
    'the bound is measured on the monotonic clock, even if the wall clock is corrected by %i ms',
    async (ms) => {
      await world.issuedKey()
      await world.serve(['gateway-0'], ['gateway-9'])
      await deleted()
      world.now += ms
      await world.settle()
      expect(await world.objects.get(apiKeys, BOT)).toBeDefined()
      await world.pass(30)
      await world.settle()
      expect(await world.objects.get(apiKeys, BOT)).toBeUndefined()
    },
  )

  test.each<[string, () => Promise<unknown> | void]>([
    ['that is deleted already', () => world.objects.remove(secrets, BOT)],
    [
      'that cannot be read',
      () => world.refuse((call) => isUserSecret(call) && call.verb === 'get', new KubeError('Forbidden', 403, 'no right')),
    ],
    [
      'that cannot be deleted',
      () => world.refuse((call) => isUserSecret(call) && call.verb === 'remove', new KubeError('Forbidden', 403, 'no right')),
    ],
  ])('a Secret %s does not delay the deletion', async (_what, harm) => {
    await world.issuedKey()
    await harm()
    await deleted()
    expect(await world.objects.get(apiKeys, BOT)).toBeUndefined()
    expect(await world.keyRecords()).toEqual([])
  })
})

describe('loss', () => {
  test('after the loss of keyring, Secret and Redis the status says KeyLost, and no key is minted', async () => {
    await world.issuedKey()
    await world.stopProcesses()
    world.memory = new MemoryProjection({ now: () => world.now })
    await loseSecrets('')
    await world.start()
    expect(await condition('Ready')).toBe('False KeyLost')
    expect(await world.secret()).toBeUndefined()
  })
})
