import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decodeKeyRecord } from '#contract/records/key-record.ts'
import { hashCredential } from '#contract/values/credential.ts'
import { SHOP } from '../../../test/support/objects.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { apiKeys } from '#api/resources.ts'
import { KubeError, refOf } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { MemoryProjection } from '../../../standalone/memory-projection.ts'
import { apiKeyRow } from './kind.ts'

const BOT = { namespace: SHOP, name: 'bot' }
let world: OperatorWorld

beforeEach(() => {
  world = new OperatorWorld([apiKeyRow])
})
afterEach(() => world.stop())

const condition = (type: string) => world.condition(apiKeys, 'bot', type)

async function removeByForce(): Promise<void> {
  await world.objects.patch(apiKeys, BOT, [{ op: 'remove', path: '/metadata/finalizers' }])
  await world.objects.remove(apiKeys, BOT)
}

describe('an ApiKey that another finalizer holds, while its deletion waits', () => {
  const OTHERS = 'example.com/audit'

  test('stops working although its own finalizer was removed by force, and nothing adds the finalizer again', async () => {
    await world.issuedKey()
    await world.objects.patch(apiKeys, BOT, [{ op: 'add', path: '/metadata/finalizers/-', value: OTHERS }])
    await world.settle()
    world.beforeCall = ({ verb, plural }) => {
      if (verb === 'patch' && plural === 'apikeys') throw new KubeError('Conflict', 409, 'another client is faster')
    }
    world.freezeWatch('Everyone')
    await world.objects.remove(apiKeys, BOT)
    await world.objects.patch(apiKeys, BOT, [{ op: 'replace', path: '/metadata/finalizers', value: [OTHERS] }])
    world.beforeCall = () => undefined
    world.thawWatch()
    await world.settle()
    expect(await world.keyRecords()).toEqual([])
    expect(await world.keyringEntries()).toMatchObject([{ state: 'Revoked', deletedMs: expect.any(Number) }])
    expect((await world.key()).metadata.finalizers).toEqual([OTHERS])
    await world.restart()
    expect(await world.keyRecords()).toEqual([])
  })

  test('that the operator never held is left alone', async () => {
    await world.start()
    world.freezeWatch('Everyone')
    await world.applyKey()
    await world.objects.patch(apiKeys, BOT, [{ op: 'add', path: '/metadata/finalizers', value: [OTHERS] }])
    await world.objects.remove(apiKeys, BOT)
    const writes = world.writes.length
    world.thawWatch()
    await world.settle()
    expect(world.writes.slice(writes)).toEqual([])
  })
})

describe('an entry without its ApiKey', () => {
  test('is refused by the first records of a takeover if live reads say that its ApiKey was deleted, and then ended', async () => {
    await world.issuedKey()
    await world.stopProcesses()
    await removeByForce()
    const atRead: string[] = []
    world.beforeCall = async ({ verb, plural }) => {
      if (verb === 'get' && plural === 'apikeys') atRead.push((await world.keyRecords())[0]?.state ?? '')
    }
    await world.start()
    expect(atRead).toEqual(['Active', 'Revoked']) // before the first records, and from the queue. Its clients get the reason
    expect(await world.keyRecords()).toEqual([])
    expect(await world.keyringEntries()).toMatchObject([{ state: 'Revoked', deletedMs: expect.any(Number) }])
  })

  test.each([
    ['no answer', new KubeError('Unreachable', 0, 'no answer')],
    ['403', new KubeError('Forbidden', 403, 'no Role')],
  ])('works on while its ApiKey cannot be read (%s), which is logged, and ends when a read confirms the deletion', async (_what, error) => {
    await world.issuedKey()
    await world.stopProcesses()
    await removeByForce()
    world.refuse((call) => call.plural === 'apikeys' && (call.verb === 'list' || call.verb === 'get'), error)
    await world.start()
    expect(await world.keyRecords()).toMatchObject([{ state: 'Active', verifiers: [{}] }])
    expect(await world.keyringEntries()).toMatchObject([{ state: 'Active', deletedMs: null }])
    expect(world.logs.join('\n')).toMatch(/without an ApiKey in the cache work on until it can be read/)
    expect(world.logs.join('\n')).toMatch(/read-live failed/)
    world.beforeCall = () => undefined
    await world.pass(300)
    await world.settle()
    expect(await world.keyRecords()).toEqual([])
    expect(await world.keyringEntries()).toMatchObject([{ state: 'Revoked', deletedMs: expect.any(Number) }])
  })

  test.each(['at a takeover', 'while the operator runs'])(
    'that a wrong list of the API server lacks %s is not refused for a moment',
    async (when) => {
      await world.issuedKey()
      const present = await world.key()
      const states: string[] = []
      world.afterCall = async ({ verb, plural, namespace }) => {
        if (verb === 'write' || verb === 'rebuild') for (const { state } of await world.keyRecords()) states.push(state)
        if (plural === 'apikeys' && namespace === SHOP && verb === 'get') states.push('read')
      }
      if (when === 'at a takeover') {
        await world.stopProcesses()
        const list = world.objects.list.bind(world.objects)
        world.objects.list = (resource, ...scope) => (resource.plural === 'apikeys' ? Promise.resolve([]) : list(resource, ...scope))
        world.launch()
      }
      world.watches.miss(apiKeys, present)
      await world.settle()
      await world.pass(60)
      await world.settle()
      expect(states).toContain('read')
      expect(states).not.toContain('Revoked')
      expect(await world.keyRecords()).toMatchObject([{ state: 'Active' }])
      expect(await world.keyringEntries()).toMatchObject([{ state: 'Active', deletedMs: null }])
    },
  )

  test('is read live at once when its ApiKey leaves the cache, although it was read within the last minute', async () => {
    await world.issuedKey()
    world.watches.miss(apiKeys, await world.key())
    await world.settle()
    await world.objects.patch(apiKeys, BOT, [{ op: 'add', path: '/metadata/annotations', value: { note: 'the cache knows it again' } }])
    await world.settle()
    await removeByForce()
    await world.settle()
    expect(await world.keyRecords()).toEqual([])
  })

  test('is one of many whose finalizers were removed by force: all end, and reads of their namespace leave room for others', async () => {
    const names = Array.from({ length: 120 }, (_, at) => `bot-${at}`)
    await world.start()
    for (const name of names) await world.applyKey({}, name)
    await world.settle()
    const reads = { now: 0, most: 0 }
    world.beforeCall = async ({ verb, plural }) => {
      if (verb !== 'get' || plural !== 'apikeys') return
      reads.now += 1
      reads.most = Math.max(reads.most, reads.now)
      await world.sleep(20)
      reads.now -= 1
    }
    for (const name of names) {
      await world.objects.patch(apiKeys, { namespace: SHOP, name }, [{ op: 'remove', path: '/metadata/finalizers' }])
      await world.objects.remove(apiKeys, { namespace: SHOP, name })
    }
    await world.settle()
    expect(await world.keyRecords()).toEqual([])
    expect((await world.keyringEntries()).filter(({ deletedMs }) => deletedMs === null)).toEqual([])
    expect(reads.most).toBeGreaterThan(1)
    expect(reads.most).toBeLessThanOrEqual(22) // two thirds of the runs of the queue
  })

  test('works again once a live read has found the ApiKey, if only the cache lacks it', async () => {
    await world.start()
    world.freezeWatch('Standbys')
    const value = await world.settledKey()
    await world.restart()
    expect(await world.keyringEntries()).toMatchObject([{ deletedMs: null }])
    expect(await world.keyRecords()).toMatchObject([{ state: 'Active', verifiers: [{ hash: hashCredential(value) }] }])
    world.thawWatch()
    await world.settle()
    expect(await condition('Ready')).toBe('True Ready')
  })

  test('stays refused once a live read has found the ApiKey being deleted', async () => {
    await world.start()
    world.freezeWatch('Standbys')
    await world.settledKey()
    await world.serve(['gateway-0'], ['gateway-9'])
    await world.objects.remove(apiKeys, BOT)
    await world.restart()
    expect(await world.keyRecords()).toMatchObject([{ state: 'Revoked' }])
    world.refuse(
      (call) => call.plural === 'apikeys' && (call.verb === 'list' || call.verb === 'get'),
      new KubeError('Unreachable', 0, 'no answer'),
    )
    await world.restart()
    expect(await world.keyRecords(), 'a later leader cannot read it').toMatchObject([{ state: 'Revoked' }])
    world.beforeCall = () => undefined
    world.thawWatch()
    await world.settle()
    expect(await world.keyRecords()).toEqual([])
  })

  test('of a namespace that the administrator gave up is ended without a live read, which may be forbidden', async () => {
    await world.issuedKey()
    world.refuse(({ plural, verb }) => plural === 'apikeys' && verb === 'get', new KubeError('Forbidden', 403, 'no Role'))
    await world.restart({ watchNamespaces: ['elsewhere'], formerNamespaces: [SHOP] })
    expect(await world.keyRecords()).toEqual([])
    expect(await world.keyringEntries()).toMatchObject([{ deletedMs: expect.any(Number) }])
  })

  test('of a namespace that is no longer watched continues to work, and after the correction the key has its value', async () => {
    const value = await world.issuedKey()
    const calls: string[] = []
    world.beforeCall = ({ plural, namespace, verb }) => {
      if (plural !== 'store' && namespace === SHOP) calls.push(verb)
    }
    await world.restart({ watchNamespaces: ['shpo'] })
    await world.pass(1_300) // two checks of the durable state
    await world.settle()
    expect(calls, 'the operator has no rights there').toEqual([])
    expect(await world.keyringEntries()).toMatchObject([{ deletedMs: null }])
    expect(await world.keyRecords()).toMatchObject([{ state: 'Active', verifiers: [{ hash: hashCredential(value) }] }])
    expect(world.logs.join('\n')).toMatch(/no longer watched continue to work.*scope\.formerNamespaces/)

    world.memory = new MemoryProjection({ now: () => world.now }) // Redis is emptied
    await world.restart({ watchNamespaces: ['shpo'] })
    expect(await world.keyRecords()).toMatchObject([{ state: 'Active' }])

    const writes = world.writes.length
    await world.restart({ watchNamespaces: [SHOP] })
    expect(await world.value()).toBe(value)
    expect(await condition('Ready')).toBe('True Ready')
    expect(world.writes.slice(writes).filter((write) => write.includes('hg-keyring'))).toEqual([])
  })

  test('whose keyring entry was lost too keeps its record while its namespace is not watched', async () => {
    const value = await world.issuedKey()
    await world.stopProcesses()
    for (const shard of await world.shards('keyring')) await world.objects.remove(secrets, refOf(shard))
    await world.start({ watchNamespaces: ['shpo'] })
    expect(await world.keyRecords()).toMatchObject([{ state: 'Active' }])
    await world.restart({ watchNamespaces: [SHOP] })
    expect(await world.value()).toBe(value)
    expect(await condition('Ready')).toBe('True Ready')
  })

  test.each(['exists', 'was deleted'])(
    'whose keyring entry was lost too keeps its record until a live read says whether its ApiKey exists: it %s',
    async (what) => {
      await world.start()
      world.freezeWatch('Standbys')
      const value = await world.settledKey()
      await world.stopProcesses()
      for (const shard of await world.shards('keyring')) await world.objects.remove(secrets, refOf(shard))
      if (what === 'was deleted') await removeByForce()
      world.refuse(
        (call) => call.plural === 'apikeys' && (call.verb === 'list' || call.verb === 'get'),
        new KubeError('Unreachable', 0, 'no answer'),
      )
      await world.start()
      await world.pass(700)
      await world.settle()
      const working = [{ state: 'Active', verifiers: [{ hash: hashCredential(value) }] }]
      expect(await world.keyRecords()).toMatchObject(working)
      world.beforeCall = () => undefined
      await world.pass(700)
      await world.settle()
      const isThere = what === 'exists'
      expect(await world.keyRecords()).toMatchObject(isThere ? working : [])
      expect(await world.keyringEntries()).toMatchObject(isThere ? [{ deletedMs: null }] : [])
    },
  )

  test('of a namespace that the operator may not read continues to work: its ApiKey may exist', async () => {
    await world.issuedKey()
    world.refusedNamespaces.add(SHOP)
    await world.restart({ watchNamespaces: [SHOP] })
    expect(await world.keyringEntries()).toMatchObject([{ deletedMs: null }])
    expect(await world.keyRecords()).toMatchObject([{ state: 'Active' }])
  })

  test('is ended although another ApiKey has its name', async () => {
    await world.issuedKey()
    await world.stopProcesses()
    await removeByForce()
    const value = await world.settledKey()
    expect(value).toBe('')
    await world.start()
    const alive = (await world.keyringEntries()).filter(({ deletedMs }) => deletedMs === null)
    expect(alive).toMatchObject([{ uid: (await world.key()).metadata.uid }])
    expect(await world.keyringEntries()).toHaveLength(2)
  })

  test('is read live every minute while only the cache lacks the ApiKey, which may be deleted meanwhile', async () => {
    await world.start()
    world.freezeWatch('Standbys')
    await world.settledKey()
    await world.restart()
    await removeByForce()
    await world.pass(61)
    await world.settle()
    expect(await world.keyRecords()).toEqual([])
    expect(await world.keyringEntries()).toMatchObject([{ deletedMs: expect.any(Number) }])
  })

  test('is ended in the keyring during an outage of Redis, and on the gateways afterwards', async () => {
    await world.issuedKey()
    world.storeDown = true
    await removeByForce()
    await world.settle()
    expect(await world.keyringEntries()).toMatchObject([{ deletedMs: expect.any(Number) }])
    world.storeDown = false
    await world.pass(5)
    await world.settle()
    expect(await world.keyRecords()).toEqual([])
  })
})

test('a key that was restored, and deleted by force before its ApiKey was in the cache, stays deleted when Redis goes back to an older state', async () => {
  await world.start()
  world.freezeWatch('Standbys')
  await world.settledKey()
  const records = await world.keyRecords()
  await world.stopProcesses()
  for (const shard of await world.shards('keyring')) await world.objects.remove(secrets, refOf(shard))
  await world.start()
  expect(await world.keyRecords()).toMatchObject(records.map(({ uid }) => ({ uid, state: 'Active' })))
  const former = await copyOf(world)
  await removeByForce()
  await world.pass(61)
  await world.settle()
  expect(await world.keyRecords()).toEqual([])
  await world.pass(90_000)
  await world.settle()
  expect(await world.keyringEntries()).toEqual([])
  world.memory = former
  await world.settle()
  expect(await world.keyRecords()).toEqual([])
})

/** A Redis that has all records as of now, at an older revision than the operator knows. */
async function copyOf(of: OperatorWorld): Promise<MemoryProjection> {
  const copy = new MemoryProjection({ now: () => of.now })
  const { epoch, revision, fence, installation } = (await of.memory.meta())!
  const records = (await of.texts('key')).map((text) => ({ kind: 'key', op: 'put', id: decodeKeyRecord(text).uid, text }) as const)
  await copy.rebuild({ fence, installation }, epoch, revision, records)
  return copy
}
