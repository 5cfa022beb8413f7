import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { apiKeys } from '#api/resources.ts'
import { KubeError } from '#kube/port.ts'
import { apiKeyRow } from './kind.ts'

let world: OperatorWorld

beforeEach(() => {
  world = new OperatorWorld([apiKeyRow])
})
afterEach(() => world.stop())

/** What the gateways hold, and the revision of the projection. */
async function onGateways(): Promise<{ readonly models: unknown; readonly revision: number }> {
  const [record] = await world.keyRecords()
  return { models: record?.models, revision: (await world.memory.meta())?.revision ?? 0 }
}

const condition = (type: string, name = 'bot') => world.condition(apiKeys, name, type)

test('a key beyond the bound of its namespace waits with a condition, and is issued when the bound is raised', async () => {
  await world.start({ maxApiKeysPerNamespace: 1 })
  await world.settledKey()
  await world.settledKey({}, 'second')
  expect([await condition('Accepted', 'second'), await condition('Ready', 'second')]).toEqual([
    'False NamespaceLimitReached',
    'False NotAccepted',
  ])
  expect(world.events).toContainEqual({
    name: 'second',
    reason: 'NamespaceLimitReached',
    note: expect.stringContaining('maxApiKeysPerNamespace'),
  })
  await world.restart()
  expect(await condition('Ready', 'second')).toBe('True Ready')
})

test('a key beyond the model bytes of its namespace waits with a condition, and other keys are issued', async () => {
  await world.start({ maxModelBytesPerNamespace: 8_192 })
  await world.applyKey({ models: ['m'.repeat(256)] })
  for (let n = 0; n < 31; n += 1) await world.applyKey({ models: [`${n}`.padEnd(256, 'm')] }, `other-${n}`)
  await world.settle()
  await world.settledKey({ models: ['n'] }, 'second')
  expect([await condition('Ready', 'other-30'), await condition('SecretIssued', 'second')]).toEqual(['True Ready', 'False KeyringFull'])
  const note = expect.stringMatching(/namespace .* 8193 bytes.*maxModelBytesPerNamespace/)
  expect(world.events).toContainEqual({ name: 'second', reason: 'KeyringFull', note })
  expect(world.logs.join('\n'), 'the keyring itself works').not.toContain('cannot be written')
  await world.settledKey({ models: ['m'] })
  await world.pass(300)
  await world.settle()
  expect(await condition('Ready', 'second')).toBe('True Ready')
})

describe('an edit for which the keyring has no room', () => {
  const LONG = Array.from({ length: 20 }, (_, n) => `${n}`.padEnd(256, 'm'))

  test('beyond the share of the namespace never reaches the gateways, however often it is tried', async () => {
    await world.start({ maxModelBytesPerNamespace: 4_096 })
    await world.settledKey({ models: ['llama'] })
    const before = await onGateways()
    await world.settledKey({ models: ['llama', ...LONG] })
    for (let at = 0; at < 60; at += 1) await world.pass(1)
    expect(await onGateways()).toEqual(before)
    expect(await condition('Programmed')).toBe('False KeyringFull')
    expect(await world.message(apiKeys, 'bot', 'Programmed')).toContain('gateways keep the policy before it')
    await world.settledKey({ models: ['llama', 'mistral'] })
    await world.pass(300)
    await world.settle()
    expect((await onGateways()).models).toEqual([['llama', 'mistral']])
    expect(await condition('Programmed')).toBe('True Programmed')
  })

  test('beyond the size of its Secret costs no revision after the first try, and no status', async () => {
    await world.start()
    await world.settledKey({ models: ['llama'] })
    const { models } = await onGateways()
    world.beforeCall = ({ verb, name }) => {
      if (verb === 'update' && name.startsWith('hg-keyring-')) throw new KubeError('Invalid', 413, 'too large')
    }
    await world.settledKey({ models: ['llama', ...LONG] })
    await world.pass(2)
    await world.settle()
    const [before, writes] = [await onGateways(), world.writes.length]
    expect(before.models).toEqual(models)
    for (let at = 0; at < 60; at += 1) await world.pass(1)
    expect(await onGateways()).toEqual(before)
    expect(world.writes.slice(writes).filter((write) => !write.includes('hg-keyring'))).toEqual([])
    world.beforeCall = () => undefined
    await world.pass(300)
    await world.settle()
    expect((await onGateways()).models).toEqual([['llama', ...LONG]])
  })

  test.each(['suspended', 'deleted'])('does not delay the end of the key when it is %s', async (end) => {
    await world.start({ maxModelBytesPerNamespace: 4_096 })
    await world.settledKey({ models: ['llama'] })
    await world.settledKey({ models: ['llama', ...LONG] })
    for (let at = 0; at < 60; at += 1) await world.pass(1) // the pause between two tries has grown to half a minute or more
    if (end === 'deleted') await world.objects.remove(apiKeys, { namespace: SHOP, name: 'bot' })
    else await world.applyKey({ models: ['llama', ...LONG], state: 'Suspended' })
    await world.pass(1)
    const states = (await world.keyRecords()).map(({ state }) => state)
    expect(states).toEqual(end === 'deleted' ? [] : ['Suspended'])
  })

  test('applies at once if it restricts, and stays on the gateways without further revisions', async () => {
    await world.start({ maxModelBytesPerNamespace: 4_096 })
    await world.settledKey({ models: ['llama', 'mistral'] })
    await world.settledKey({ models: ['llama', ...LONG] })
    const before = await onGateways()
    expect(before.models).toEqual([['llama', ...LONG]])
    for (let at = 0; at < 60; at += 1) await world.pass(1)
    expect(await onGateways()).toEqual(before)
  })
})
