import { afterEach, beforeEach, expect, test } from 'vitest'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { apiKeys } from '#api/resources.ts'
import { apiKeyRow } from './kind.ts'

let world: OperatorWorld

beforeEach(() => {
  world = new OperatorWorld([apiKeyRow])
})
afterEach(() => world.stop())

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
