import { afterEach, beforeEach, expect, test } from 'vitest'
import { MemoryProjection } from '../../../standalone/memory-projection.ts'
import { NewerEntry } from '../../../test/support/newer-entry.ts'
import { SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { apiKeys } from '#api/resources.ts'
import { uidOf } from '#kube/port.ts'
import { apiKeyRow } from './kind.ts'

const BOT = { namespace: SHOP, name: 'bot' }
let world: OperatorWorld
let uid: string

beforeEach(async () => {
  world = new OperatorWorld([apiKeyRow])
  await world.issuedKey()
  await world.settledKey({}, 'other')
  uid = uidOf(await world.key())
  await world.stopProcesses()
  await new NewerEntry(world).write(uid)
})
afterEach(() => world.stop())

/** uids of the records in Redis, sorted. */
async function records(): Promise<readonly string[]> {
  const texts = await world.texts('key')
  return texts.map((text) => (JSON.parse(text) as { readonly uid: string }).uid).toSorted()
}

async function setState(state: 'Active' | 'Suspended'): Promise<void> {
  await world.objects.patch(apiKeys, BOT, [{ op: 'add', path: '/spec/state', value: state }])
  await world.settle()
}

test('the record of a key whose entry cannot be read stays, and stands for itself', async () => {
  await world.start()
  expect(await records()).toEqual([uid, uidOf(await world.key('other'))].toSorted())
})

test.each(['running', 'stopped'])(
  'after Redis has lost it while the operator was %s, a record that no gateway reads stands for it',
  async (how) => {
    if (how === 'running') await world.start()
    world.memory = new MemoryProjection({ now: () => world.now })
    if (how === 'running') await world.pass(5)
    else await world.start()
    const other = uidOf(await world.key('other'))
    expect(await records()).toEqual([other, 'unread-keys'].toSorted())
    await world.restart()
    expect(await records()).toEqual([other, 'unread-keys'].toSorted())
  },
)

test('a key that is suspended and works again has no record: another one stands for it, until the key is deleted', async () => {
  await world.start()
  const other = uidOf(await world.key('other'))
  await setState('Suspended')
  expect(await records()).toEqual([other])
  await setState('Active')
  expect(await records()).toEqual([other, 'unread-keys'].toSorted())
  await world.objects.remove(apiKeys, BOT)
  await world.settle()
  await world.restart()
  expect(await records()).toEqual([other])
})
