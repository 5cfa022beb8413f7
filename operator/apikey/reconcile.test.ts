import { afterEach, describe, expect, test } from 'vitest'
import { credentialForm, hashCredential } from '../../gateway/shared/credential.ts'
import { MemoryProjection } from '../../standalone/memory-projection.ts'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import { Killed, type KillAt, type OperatorProcess, OperatorWorld } from '../../test/support/operator-world.ts'
import type { KubeObject, Resource } from '../kube/port.ts'
import { apiKeys, secrets } from '../kube/resources.ts'
import { Calm } from './calm.ts'
import { reconcile } from './reconcile.ts'

const REF = { namespace: 'shop', name: 'bot' }
const running: OperatorProcess[] = []
afterEach(() => {
  for (const process of running.splice(0)) process.stop()
})

async function started(world: OperatorWorld, kill?: KillAt): Promise<OperatorProcess> {
  const process = await world.start(kill)
  running.push(process)
  return process
}

/** A world with one issued key. */
async function issued(spec: Parameters<OperatorWorld['apply']>[0] = {}): Promise<{ world: OperatorWorld; operator: OperatorProcess }> {
  const world = new OperatorWorld()
  const operator = await started(world)
  await world.apply(spec)
  await operator.settle()
  return { world, operator }
}

describe('issuing', () => {
  test('an ApiKey becomes a Secret that configures an SDK, a record on the gateways, and Ready', async () => {
    const { world } = await issued({ models: ['llama-*'] })
    const value = await world.value()
    expect(credentialForm(value).form).toBe('own')
    const key = await world.key()
    expect(world.condition(key, 'Ready')).toBe('True Ready')
    expect(world.condition(key, 'Programmed')).toBe('True Programmed')
    expect(key.status?.programmed).toMatchObject({ ready: 2, total: 2 })
    const [record] = await world.records()
    expect(record).toMatchObject({ ns: 'shop', name: 'bot', st: 'Active', models: [['llama-*']] })
    expect(record?.ver.map((verifier) => verifier.h)).toEqual([hashCredential(value)])
    const entries = Object.keys((await world.secret())?.data ?? {})
    expect(entries).toEqual([
      'SERVICE_API_KEY',
      'SERVICE_BASE_URL',
      'OPENAI_API_KEY',
      'OPENAI_BASE_URL',
      'ANTHROPIC_AUTH_TOKEN',
      'ANTHROPIC_BASE_URL',
    ])
    expect(world.events.map((event) => event.reason)).toEqual(['Issued'])
  })

  test('the value stands in the user Secret alone: not in status, Events, the keyring or the projection', async () => {
    const { world } = await issued()
    const value = await world.value()
    const keyring = await world.objects.list(secrets, 'headgate')
    const elsewhere = JSON.stringify([await world.key(), world.events, keyring, await world.records()])
    expect(value.length).toBe(65)
    expect(elsewhere).not.toContain(value)
    expect(elsewhere).not.toContain(Buffer.from(value).toString('base64'))
    expect(JSON.stringify((await world.key()).status)).not.toContain(hashCredential(value))
  })

  test('a pod that serves but says nothing is counted and named: 2/3 Unconfirmed', async () => {
    const world = new OperatorWorld()
    world.silentPods = ['gateway-2']
    const operator = await started(world)
    await world.apply()
    await operator.settle()
    const key = await world.key()
    expect(world.condition(key, 'Programmed')).toBe('False Unconfirmed')
    expect(key.status?.programmed).toMatchObject({ ready: 2, total: 3 })
    expect(key.status?.conditions?.find((condition) => condition.type === 'Programmed')?.message).toContain('gateway-2')
    expect(await world.value()).not.toBe('') // one stuck pod does not block issuing
  }, 10_000)

  test('a foreign Secret of the wanted name is left as it is, and nothing is minted', async () => {
    const world = new OperatorWorld()
    const foreign = await world.objects.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'bot', namespace: 'shop' },
      data: { a: 'Yg==' },
    })
    const operator = await started(world)
    await world.apply()
    await operator.settle()
    expect(world.condition(await world.key(), 'SecretIssued')).toBe('False SecretConflict')
    expect(world.condition(await world.key(), 'Stalled')).toBe('True SecretConflict')
    expect(await world.secret()).toEqual(foreign)
    expect(await world.records()).toEqual([])
  })

  test('while the store is down nothing is minted, and it goes on by itself afterwards', async () => {
    const world = new OperatorWorld()
    world.storeDown = true
    const operator = await started(world)
    await world.apply()
    await operator.settle()
    expect(world.condition(await world.key(), 'SecretIssued')).toBe('False WaitingForStore')
    expect(await world.secret()).toBeUndefined()
    world.storeDown = false
    await expect.poll(() => operator.deps.projection.available, { timeout: 4000 }).toBe(true)
    await operator.settle()
    expect(world.condition(await world.key(), 'Ready')).toBe('True Ready')
  }, 10_000)

  test('an expired key is told apart from a working one, and works again when its time is put off', async () => {
    const { world, operator } = await issued({ ttlSeconds: 60 })
    world.now += 61_000
    await operator.settle()
    expect(world.condition(await world.key(), 'Ready')).toBe('False Expired')
    await world.apply({ ttlSeconds: 600 })
    await operator.settle()
    expect(world.condition(await world.key(), 'Ready')).toBe('True Ready')
  })
})

describe('changing', () => {
  test('Suspended reaches the gateways with the material kept, and Active brings the same value back', async () => {
    const { world, operator } = await issued()
    const value = await world.value()
    await world.apply({ state: 'Suspended' })
    await operator.settle()
    expect((await world.records())[0]?.st).toBe('Suspended')
    expect(world.condition(await world.key(), 'Suspended')).toBe('True Suspended')
    await world.apply({ state: 'Active' })
    await operator.settle()
    expect((await world.records())[0]?.st).toBe('Active')
    expect(await world.value()).toBe(value)
    expect(world.events.map((event) => event.reason)).toEqual(['Issued', 'Suspended', 'Resumed'])
  })

  test('Revoked takes the Secret away and keeps the object and its record, so that gateways can say so', async () => {
    const { world, operator } = await issued()
    await world.apply({ state: 'Revoked' })
    await operator.settle()
    expect(await world.secret()).toBeUndefined()
    expect((await world.records())[0]).toMatchObject({ st: 'Revoked' })
    expect(world.condition(await world.key(), 'Ready')).toBe('False Revoked')
    expect(world.events.at(-1)?.reason).toBe('Revoked')
  })

  test('a deleted user Secret is reported and never minted anew: the issued value works on', async () => {
    const { world, operator } = await issued()
    const before = await world.records()
    await world.objects.remove(secrets, REF)
    await operator.settle()
    expect(world.condition(await world.key(), 'SecretIssued')).toBe('False SecretMissing')
    expect(await world.records()).toEqual(before)
    expect(await world.secret()).toBeUndefined()
  })

  test('a value changed by hand stays, and the condition says that it is not the key', async () => {
    const { world, operator } = await issued()
    const secret = await world.secret()
    if (!secret) throw new Error('no Secret')
    await world.objects.update(secrets, { ...secret, data: { ...secret.data, SERVICE_API_KEY: Buffer.from('mine').toString('base64') } })
    await operator.settle()
    expect(world.condition(await world.key(), 'SecretIssued')).toBe('False SecretModified')
    expect(await world.value()).toBe('mine')
  })

  test('labels of the template reach a Secret that exists', async () => {
    const { world, operator } = await issued()
    await world.apply({ secret: { retention: 'Keep', template: { labels: { team: 'shop' } } } })
    await operator.settle()
    expect((await world.secret())?.metadata.labels).toMatchObject({ team: 'shop' })
  })

  test('a second pass, and a restart, write nothing', async () => {
    const { world, operator } = await issued()
    world.writes.length = 0
    await operator.settle()
    operator.stop()
    await (await started(world)).settle()
    expect(world.writes.filter((write) => write !== 'store write')).toEqual([])
  })
})

test('the status of one key waits until another one has its Secret: what makes keys work goes first', async () => {
  const world = new OperatorWorld()
  const { deps } = await started(world)
  const clock = new ManualClock()
  const { promise: isLetGo, resolve: letGo } = Promise.withResolvers<void>()
  const create = async <T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> => {
    if (object.metadata.name === 'slow') await isLetGo
    return deps.kube.create(resource, object)
  }
  const held = { ...deps, calm: new Calm(clock), kube: { ...deps.kube, create } }
  await Promise.all([world.apply({}, 'slow'), world.apply()])
  const both = Promise.all([reconcile({ ...REF, name: 'slow' }, held), reconcile(REF, held)])
  await expect.poll(() => world.value()).toHaveLength(65)
  await settle()
  await clock.advance(900)
  expect((await world.key()).status).toBeUndefined()
  letGo()
  await expect.poll(() => world.value('slow')).toHaveLength(65)
  await settle()
  await clock.advance(100)
  await both
  expect(world.condition(await world.key(), 'Ready')).toBe('True Ready')
})

test('a patch refused because the cached object is old counts as a conflict, which is tried again at once', async () => {
  const world = new OperatorWorld()
  const operator = await started(world)
  const stale = await world.apply()
  await world.apply({ displayName: 'changed meanwhile' })
  const old = { synced: Promise.resolve(), get: () => stale, list: () => [stale], subscribe: () => undefined }
  await expect(reconcile(REF, { ...operator.deps, apiKeys: old })).rejects.toMatchObject({ code: 'Conflict' })
})

describe('deleting', () => {
  test('the object goes only after the gateways have forgotten the key; the keyring remembers the revocation', async () => {
    const { world, operator } = await issued()
    await world.objects.remove(apiKeys, REF)
    await operator.settle()
    expect(await world.objects.get(apiKeys, REF)).toBeUndefined()
    expect(await world.records()).toEqual([])
    expect([...operator.deps.keyring.lines()]).toMatchObject([{ st: 'Revoked', ver: [{ state: 'Revoked' }] }])
    expect(world.events.at(-1)?.reason).toBe('Revoked')
    expect(await world.secret()).toBeUndefined()
  })

  test('a frozen pod delays the end for a bounded time only, and is named', async () => {
    const { world, operator } = await issued()
    world.silentPods = ['gateway-9']
    await world.objects.remove(apiKeys, REF)
    await operator.settle()
    expect(await world.objects.get(apiKeys, REF)).toBeDefined()
    expect(await world.records()).toEqual([])
    world.now += 31_000
    await operator.settle()
    expect(await world.objects.get(apiKeys, REF)).toBeUndefined()
    expect(world.events.at(-1)).toMatchObject({ reason: 'RevocationUnconfirmed', note: expect.stringContaining('gateway-9') })
  }, 15_000)

  test('with the store down a deletion still ends within its bound, and the key stays dead after a rebuild', async () => {
    const { world, operator } = await issued()
    world.storeDown = true
    await world.objects.remove(apiKeys, REF)
    await operator.settle()
    world.now += 31_000
    await operator.settle()
    expect(await world.objects.get(apiKeys, REF)).toBeUndefined()
    world.storeDown = false
    await expect.poll(() => world.records(), { timeout: 4000 }).toEqual([])
  }, 15_000)

  test('a Secret that is already gone does not hold the deletion up', async () => {
    const { world, operator } = await issued()
    await world.objects.remove(secrets, REF)
    await world.objects.remove(apiKeys, REF)
    await operator.settle()
    expect(await world.objects.get(apiKeys, REF)).toBeUndefined()
  })
})

describe('loss', () => {
  test('an emptied store is rebuilt from memory, and a suspended key stays suspended', async () => {
    const { world, operator } = await issued()
    await world.apply({ state: 'Suspended' })
    await operator.settle()
    world.memory = new MemoryProjection({ now: () => world.now })
    await expect.poll(async () => (await world.records()).map((record) => record.st), { timeout: 5000 }).toEqual(['Suspended'])
  }, 10_000)

  test('a lost keyring is restored from the user Secret', async () => {
    const { world, operator } = await issued()
    const value = await world.value()
    operator.stop()
    for (const secret of await world.objects.list(secrets, 'headgate'))
      await world.objects.remove(secrets, { namespace: 'headgate', name: secret.metadata.name })
    const next = await started(world)
    await next.settle()
    expect((await world.records())[0]?.ver.map((verifier) => verifier.h)).toEqual([hashCredential(value)])
    expect(world.condition(await world.key(), 'Ready')).toBe('True Ready')
  })

  test('a keyring lost together with the Secret is restored from Redis: the issued value works on', async () => {
    const { world, operator } = await issued()
    const records = await world.records()
    operator.stop()
    for (const secret of await world.objects.list(secrets, '')) {
      await world.objects.remove(secrets, { namespace: secret.metadata.namespace ?? '', name: secret.metadata.name })
    }
    const next = await started(world)
    await next.settle()
    expect((await world.records())[0]?.ver).toEqual(records[0]?.ver)
    expect([...next.deps.keyring.lines()]).toMatchObject([{ ver: [{ state: 'Issued' }] }])
    expect(world.condition(await world.key(), 'SecretIssued')).toBe('False SecretMissing')
    expect(world.events.map((event) => event.reason)).toContain('KeyringRestored')
  })

  test('a keyring lost together with the Secret and Redis says KeyLost and mints nothing', async () => {
    const { world, operator } = await issued()
    operator.stop()
    world.memory = new MemoryProjection({ now: () => world.now })
    for (const secret of await world.objects.list(secrets, '')) {
      await world.objects.remove(secrets, { namespace: secret.metadata.namespace ?? '', name: secret.metadata.name })
    }
    const next = await started(world)
    await next.settle()
    expect(world.condition(await world.key(), 'Ready')).toBe('False KeyLost')
    expect(await world.secret()).toBeUndefined()
  })
})

describe('crash schedule over memory', () => {
  const stories: ReadonlyArray<{
    name: string
    before: (world: OperatorWorld) => Promise<unknown>
    act: (world: OperatorWorld) => Promise<unknown>
    after: (world: OperatorWorld) => Promise<void>
  }> = [
    {
      name: 'creation',
      before: () => Promise.resolve(),
      act: (world) => world.apply(),
      after: async (world) => {
        const [record, ...others] = await world.records()
        expect(others).toEqual([])
        expect(record?.ver.map((verifier) => verifier.h)).toEqual([hashCredential(await world.value())])
        expect(world.condition(await world.key(), 'Ready')).toBe('True Ready')
      },
    },
    {
      name: 'suspension',
      before: (world) => world.apply(),
      act: (world) => world.apply({ state: 'Suspended' }),
      after: async (world) => {
        expect((await world.records()).map((record) => record.st)).toEqual(['Suspended'])
        expect(world.condition(await world.key(), 'Ready')).toBe('False Suspended')
      },
    },
    {
      name: 'deletion',
      before: (world) => world.apply(),
      act: (world) => world.objects.remove(apiKeys, REF),
      after: async (world) => {
        expect(await world.objects.get(apiKeys, REF)).toBeUndefined()
        expect(await world.records()).toEqual([])
        expect(await world.secret()).toBeUndefined()
      },
    },
  ]

  test.each(stories)(
    '$name: a kill at every write, before and after it, ends in the same world',
    async (story) => {
      let schedules = 0
      for (const when of ['before', 'after'] as const) {
        for (let write = 0; await killed(story, { write, when }); write++) schedules += 1
      }
      expect(schedules).toBeGreaterThanOrEqual(6)
    },
    30_000,
  )

  /** Runs one story with one kill and a restart. @returns false when the story has fewer writes: nobody was killed */
  async function killed({ before, act, after }: (typeof stories)[number], kill: KillAt): Promise<boolean> {
    const world = new OperatorWorld()
    const first = await started(world)
    await before(world)
    await first.settle()
    first.stop()
    await act(world)
    const wasKilled = await started(world, kill)
      .then((doomed) => doomed.settle())
      .then(
        () => false,
        (error: unknown) => error instanceof Killed || Promise.reject(error),
      )
    running.at(-1)?.stop()
    const next = await started(world)
    await next.settle()
    await after(world)
    next.stop()
    return wasKilled
  }
})
