import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hashCredential } from '#contract/values/credential.ts'
import { account, apiKey, namespace, plan, secret, servedModel, service, SHOP, slice } from '../test/support/objects.ts'
import type { WorldCall } from '../test/support/operator-process.ts'
import { OperatorWorld } from '../test/support/operator-world.ts'
import { FINALIZER } from '#api/apikey.ts'
import { accounts, apiKeys, plans, servedModels } from '#api/resources.ts'
import { refOf } from '#kube/port.ts'
import { endpointSlices, namespaces, secrets, services } from '#kube/resources.ts'

const FOR_FAR = { labels: { 'headgate.dev/upstream-auth': 'true' }, annotations: { 'headgate.dev/upstream-hosts': 'far.example' } }

describe('the operator', () => {
  let world: OperatorWorld

  beforeEach(() => {
    world = new OperatorWorld()
  })
  afterEach(() => world.stop())

  /** A shop with one key, one model behind a Service, and one at a URL with a credential. */
  async function shop(): Promise<void> {
    await world.apply(services, service('llama'))
    await world.apply(endpointSlices, slice('llama', ['10.0.0.1']))
    await world.apply(secrets, secret('upstream', { token: 'x' }, FOR_FAR))
    await world.apply(servedModels, servedModel('llama'))
    const backends = [{ name: 'one', url: 'https://far.example', authSecretRef: { name: 'upstream', key: 'token' } }]
    await world.apply(servedModels, servedModel('far', { backends }))
    await world.apply(apiKeys, apiKey('bot', { models: ['llama'] }))
  }

  async function expectReady(): Promise<void> {
    const found = [
      await world.condition(apiKeys, 'bot', 'Ready'),
      await world.condition(servedModels, 'llama', 'Ready'),
      await world.condition(servedModels, 'far', 'Ready'),
    ]
    expect(found).toEqual(['True Ready', 'True Ready', 'True Ready'])
  }

  /** What another operator left: one key and two models, all in use. */
  async function inUse(): Promise<void> {
    await shop()
    await world.start()
    await expectReady()
    await world.stopProcesses()
  }

  describe('while the watch lags behind own writes, through which restrictions arrive too', () => {
    /** Redis comes back after a second. @returns ms from the start to the last status, whole seconds */
    async function describedAfterMs(keys: number, watch: 'Frozen' | 'Live'): Promise<number> {
      world = new OperatorWorld()
      for (let at = 0; at < keys; at += 1) await world.apply(apiKeys, apiKey(`bot-${at}`))
      const began = world.now
      world.storeDown = true
      world.launch()
      if (watch === 'Frozen') world.freezeWatch()
      await world.pass(1)
      world.storeDown = false
      await world.settle()
      const ready = (await world.objects.list(apiKeys, '')).map(({ status }) => status?.conditions?.find(({ type }) => type === 'Ready'))
      await world.stop()
      return Math.max(...ready.map((condition) => Date.parse(condition?.lastTransitionTime ?? '') - began))
    }

    test('statuses of many keys wait for at most 5 s', async () => {
      expect(await describedAfterMs(30, 'Live')).toBeLessThan(4_000)
      const lateMs = await describedAfterMs(30, 'Frozen')
      expect(lateMs).toBeGreaterThanOrEqual(4_000)
      expect(lateMs).toBeLessThan(10_000)
    })

    test('the status of a single key is written, because a storm may last for minutes', async () => {
      expect(await describedAfterMs(1, 'Frozen')).toBeLessThan(4_000)
    })
  })

  test('two operators that disagree about one key write its status once a second each, and not as fast as they can', async () => {
    await world.apply(namespaces, namespace(SHOP))
    await world.start()
    await world.apply(plans, plan('pro'))
    await world.apply(accounts, account('acme'))
    await world.settledKey({ accountRef: { name: 'acme' } })
    world.launch({ hasAccounts: false })
    for (let ms = 0; ms < 10_000; ms += 2) await world.pass(0.002)
    const statuses = world.writes.filter((write) => write === 'status apikeys bot').length
    expect(statuses).toBeGreaterThan(5)
    expect(statuses).toBeLessThan(30)
  })

  test('an uninstall releases an ApiKey whose finalizer the watch has not delivered yet', async () => {
    const { operator } = await world.start()
    world.afterCall = ({ verb, plural }) => {
      if (verb === 'patch' && plural === 'apikeys') world.freezeWatch()
    }
    await world.applyKey()
    await world.settle()
    expect((await world.key()).metadata.finalizers).toEqual([FINALIZER])
    expect(await world.during(operator.release())).toEqual({ released: 1, failed: 0 })
    expect((await world.key()).metadata.finalizers ?? []).toEqual([])
  })

  test('a restart reads no issued Secret, because thousands of reads would delay every new key', async () => {
    await inUse()
    const read: string[] = []
    world.beforeCall = ({ verb, plural, name }) => void (verb === 'get' && plural === 'secrets' && read.push(name))
    await world.start()
    expect(read).not.toContain('bot')
    await world.pass(700)
    await world.settle()
    expect(read, 'within the interval of the resync it is').toContain('bot')
  })

  test('changes from a time without an operator are on the gateways at the end of the start', async () => {
    await inUse()
    await world.apply(apiKeys, apiKey('bot', { state: 'Suspended' }))
    await world.apply(endpointSlices, slice('llama', ['10.0.0.9']))
    await world.objects.remove(servedModels, { namespace: SHOP, name: 'far' })
    await world.during(world.launch().started)
    expect((await world.keyRecords()).map(({ state }) => state)).toEqual(['Suspended'])
    expect((await world.modelRecords()).map(({ name, backends }) => [name, backends[0]?.endpoints])).toEqual([['llama', ['10.0.0.9:8080']]])
  })

  test('another public URL rewrites the URLs in the Secret and keeps the value', async () => {
    await world.issuedKey()
    const [before, writes] = [await world.data(), world.writes.length]
    await world.restart({ publicURL: 'https://new.example' })
    await world.pass(700) // Secrets are read again within 10 minutes
    await world.settle()
    expect(await world.data()).toEqual({
      ...before,
      SERVICE_BASE_URL: 'https://new.example/v1',
      OPENAI_BASE_URL: 'https://new.example/v1',
      ANTHROPIC_BASE_URL: 'https://new.example',
    })
    expect(world.writes.slice(writes)).toEqual(['patch secrets bot'])
  })

  test('a late status of a deposed leader is corrected within seconds, not by the next resync', async () => {
    await inUse()
    await world.start()
    const [{ status: ofKey }, ofModel] = [await world.key(), await world.objects.get(servedModels, { namespace: SHOP, name: 'llama' })]
    const outdated = {
      type: 'Ready',
      status: 'False',
      reason: 'NotProgrammed',
      message: 'old',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    } as const
    const summary = { programmed: '0/0', models: '' }
    await world.objects.applyStatus(apiKeys, { ...(await world.key()), status: { ...ofKey, summary, conditions: [outdated] } })
    if (ofModel) await world.objects.applyStatus(servedModels, { ...ofModel, status: { ...ofModel.status, conditions: [outdated] } })
    await world.settle() // far less than the ten minutes of a resync
    await expectReady()
    expect((await world.key()).status).toMatchObject({ keyID: ofKey?.keyID, summary: ofKey?.summary })
  })

  test('an expiry is noticed by itself', async () => {
    await world.issuedKey({ expirationTime: new Date(world.now + 20_000).toISOString() })
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('True Ready')
    await world.pass(20)
    await world.settle()
    expect(await world.condition(apiKeys, 'bot', 'Expired')).toBe('True Expired')
  })

  test('an expiry is noticed by an operator that started after the key was issued', async () => {
    await world.issuedKey({ expirationTime: new Date(world.now + 20_000).toISOString() })
    await world.restart()
    await world.pass(20)
    await world.settle()
    expect(await world.condition(apiKeys, 'bot', 'Expired')).toBe('True Expired')
  })

  test('200 keys at once share the writes of the keyring', async () => {
    await world.start()
    const names = Array.from({ length: 200 }, (_, index) => `bot-${index}`)
    await Promise.all(names.map((name) => world.applyKey({}, name)))
    await world.settle()
    const ready = await Promise.all(names.map((name) => world.condition(apiKeys, name, 'Ready')))
    expect(new Set(ready)).toEqual(new Set(['True Ready']))
    expect(world.writes.filter((write) => write.includes('hg-keyring')).length).toBeLessThan(40)
    expect(new Set((await world.keyRecords()).map(({ verifiers }) => verifiers[0]?.hash)).size).toBe(200)
  }, 20_000)

  test('a suspension during a storm of 500 new keys reaches the gateways before nearly all of them', async () => {
    await world.issuedKey()
    world.beforeCall = ({ plural }) => (plural === 'store' ? undefined : world.sleep(20)) // an API server under load
    await Promise.all(Array.from({ length: 500 }, (_, index) => world.applyKey({}, `bot-${index}`)))
    await world.pass(0.2)
    await world.applyKey({ state: 'Suspended' })
    await world.pass(0.05)
    const records = await world.keyRecords()
    expect(records.find(({ name }) => name === 'bot')?.state).toBe('Suspended')
    expect(records.length).toBeLessThan(250)
  }, 20_000)

  describe('a start that does not get through', () => {
    const isKeyring = ({ verb, plural, namespace }: WorldCall): boolean =>
      verb === 'list' && plural === 'secrets' && namespace === 'headgate'

    test('is tried again while the keyring cannot be read, reports the error, and leaves the gateways unchanged', async () => {
      await inUse()
      let refused = 0
      world.beforeCall = (call) => {
        if (!isKeyring(call) || refused >= 6) return
        refused += 1
        throw new Error('no answer')
      }
      const { operator, started } = world.launch()
      await world.pass(0)
      expect(operator.blocked).toContain('cannot be read (no answer)')
      expect(await world.keyRecords()).toHaveLength(1)
      await world.during(started)
      await world.settle()
      expect(operator.blocked).toBeUndefined()
      expect(world.logs.join('\n')).toContain('cannot be read (no answer); tried again')
      expect([(await world.keyRecords()).length, (await world.modelRecords()).length]).toEqual([1, 2])
    })

    test('and is then stopped deletes nothing from the gateways, because unread keys may exist', async () => {
      await inUse()
      world.beforeCall = (call) => {
        if (isKeyring(call)) throw new Error('no answer')
      }
      const process = world.launch()
      await world.pass(1)
      await process.stop()
      expect([(await world.keyRecords()).length, (await world.modelRecords()).length]).toEqual([1, 2])
    })

    test('does not depend on a Secret of a tenant', async () => {
      await inUse()
      world.beforeCall = ({ plural, namespace }) => {
        if (plural === 'secrets' && namespace === SHOP) throw new Error('no answer')
      }
      const { operator } = await world.start()
      expect(operator.blocked).toBeUndefined()
      expect([(await world.keyRecords()).length, (await world.modelRecords()).length]).toEqual([1, 2])
    })
  })

  test('a namespace that is no longer watched keeps its keys and models until the administrator gives it up', async () => {
    await inUse()
    await world.restart({ watchNamespaces: ['shpo'] })
    expect((await world.keyRecords()).map(({ state }) => state)).toEqual(['Active'])
    expect((await world.modelRecords()).map(({ name }) => name).toSorted()).toEqual(['far', 'llama'])
    await world.restart()
    await expectReady()
    await world.restart({ watchNamespaces: ['elsewhere'], formerNamespaces: [SHOP] })
    expect([await world.keyRecords(), await world.modelRecords()]).toEqual([[], []])
  })

  describe('a Redis of another installation that is taken over', () => {
    /** @param lost whether a Secret of the release namespace was lost */
    async function takeOver(lost: (name: string) => boolean, watched: string): Promise<void> {
      await inUse()
      await world.stopProcesses()
      for (const found of await world.objects.list(secrets, 'headgate'))
        if (lost(found.metadata.name)) await world.objects.remove(secrets, refOf(found))
      await world.start({ watchNamespaces: [watched], redisTakeOver: true })
    }

    const held = async (): Promise<readonly string[]> =>
      [...(await world.keyRecords()), ...(await world.modelRecords())].map(({ name }) => name).toSorted()

    test('leaves nothing of namespaces that this one does not watch', async () => {
      await takeOver(() => true, 'lab')
      expect(await held()).toEqual([])
    })

    test('gives back the keys of watched namespaces', async () => {
      await takeOver(() => true, SHOP)
      expect(await held()).toEqual(['bot', 'far', 'llama'])
      await expectReady()
    })

    test('keeps what the Secrets of this one know, of namespaces that are no longer watched too', async () => {
      await takeOver((name) => name === 'hg-installation', 'shpo')
      expect(await held()).toEqual(['bot', 'far', 'llama'])
    })
  })

  test('a namespace that is watched again gets new keys: no revoked value comes back', async () => {
    await world.issuedKey()
    const former = await world.value()
    await world.restart({ watchNamespaces: ['elsewhere'], formerNamespaces: [SHOP] })
    await world.restart()
    const value = await world.value()
    expect(value).not.toBe(former)
    expect((await world.keyRecords()).map(({ verifiers }) => verifiers.map(({ hash }) => hash))).toEqual([[hashCredential(value)]])
    expect(await world.condition(apiKeys, 'bot', 'Ready')).toBe('True Ready')
  })
})
