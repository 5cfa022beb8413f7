import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hashCredential } from '../gateway/shared/credential.ts'
import { apiKey, secret, servedModel, service, SHOP, slice } from '../test/support/objects.ts'
import { OperatorCluster } from '../test/support/operator-cluster.ts'
import { apiKeys, endpointSlices, secrets, servedModels, services } from './kube/resources.ts'

const BOT = { namespace: SHOP, name: 'bot' }
const TOKEN_LABEL = { 'headgate.dev/upstream-auth': 'true' }

describe('createOperator', () => {
  let cluster: OperatorCluster

  beforeEach(() => {
    cluster = new OperatorCluster()
  })
  afterEach(() => cluster.stop())

  const poll = <T>(read: () => Promise<T> | T) => expect.poll(read, { interval: 5, timeout: 3_000 })
  const ready = (name: string, resource: typeof apiKeys | typeof servedModels = apiKeys) =>
    poll(() => cluster.condition(resource, name, 'Ready')).toBe('True Ready')
  const value = async (name = 'bot'): Promise<string> => (await cluster.entries(name))?.['SERVICE_API_KEY'] ?? ''

  /** A shop with one key, one model behind a Service, and one at a URL with a token. */
  async function shop(): Promise<void> {
    await cluster.apply(services, service('llama'))
    await cluster.apply(endpointSlices, slice('llama', ['10.0.0.1']))
    await cluster.apply(secrets, secret('upstream', { token: 'x' }, { labels: TOKEN_LABEL }))
    await cluster.apply(servedModels, servedModel('llama'))
    await cluster.apply(
      servedModels,
      servedModel('far', { backends: [{ name: 'one', url: 'https://far.example', authSecretRef: { name: 'upstream', key: 'token' } }] }),
    )
    await cluster.apply(apiKeys, apiKey('bot', { models: ['llama'] }))
  }

  async function settled(): Promise<void> {
    await Promise.all([ready('bot'), ready('llama', servedModels), ready('far', servedModels)])
    await poll(async () => Object.keys((await cluster.entries('hg-upstream', 'headgate')) ?? {})).toHaveLength(1)
  }

  test('what exists before the start is issued and known to the gateways', async () => {
    await shop()
    await cluster.start()
    await settled()
    expect((await cluster.keyRecords()).map(({ name, models, ver }) => [name, models, ver[0]?.h])).toEqual([
      ['bot', [['llama']], hashCredential(await value())],
    ])
    expect((await cluster.modelRecords()).map(({ name }) => name).sort()).toEqual(['far', 'llama'])
  })

  test('what comes, changes and goes afterwards is followed', async () => {
    await cluster.start()
    await shop()
    await settled()
    await cluster.apply(apiKeys, apiKey('bot', { state: 'Suspended' }))
    await poll(async () => (await cluster.keyRecords())[0]?.st).toBe('Suspended')
    await cluster.objects.remove(apiKeys, BOT)
    await poll(() => cluster.keyRecords()).toEqual([])
    await poll(() => cluster.objects.get(apiKeys, BOT)).toBeUndefined()
    expect(await cluster.entries('bot')).toBeUndefined()
  })

  test('three writes make a key: finalizer, Secret, status; the keyring has two of its own for any number of keys', async () => {
    await cluster.start()
    await cluster.apply(apiKeys, apiKey('bot'))
    await ready('bot')
    const aboutKey = cluster.writes.filter((write) => !write.includes('hg-'))
    expect(aboutKey).toEqual(['patch apikeys bot', 'create secrets bot', 'status apikeys bot'])
  })

  test('a restart changes nothing: no write to the API, no revision, the same epoch', async () => {
    await shop()
    await cluster.start()
    await settled()
    await cluster.stop()
    const meta = await cluster.store.memory.meta()
    cluster.writes.length = 0
    await cluster.start()
    await new Promise((resolve) => setTimeout(resolve, 150)) // longer than everything that lingers
    expect(cluster.writes).toEqual([])
    expect(await cluster.store.memory.meta()).toEqual({ ...meta, fence: 2 })
    expect(cluster.events.map(({ reason }) => reason)).toEqual(['Issued'])
  })

  test('what changed while no operator ran is on the gateways when the start is over', async () => {
    await shop()
    await cluster.start()
    await settled()
    await cluster.stop()
    await cluster.apply(apiKeys, apiKey('bot', { state: 'Suspended' }))
    await cluster.apply(endpointSlices, slice('llama', ['10.0.0.9']))
    await cluster.objects.remove(servedModels, { namespace: SHOP, name: 'far' })
    await cluster.start()
    expect((await cluster.keyRecords()).map(({ st }) => st)).toEqual(['Suspended'])
    expect((await cluster.modelRecords()).map(({ name, backends }) => [name, backends[0]?.eps])).toEqual([['llama', ['10.0.0.9:8080']]])
  })

  test('another public URL rewrites the URLs in the Secret and keeps the value', async () => {
    await cluster.start()
    await cluster.apply(apiKeys, apiKey('bot'))
    await ready('bot')
    const before = await cluster.entries('bot')
    await cluster.stop()
    cluster.writes.length = 0
    await cluster.start({ publicURL: 'https://new.example' })
    await poll(async () => (await cluster.entries('bot'))?.['SERVICE_BASE_URL']).toBe('https://new.example/v1')
    expect(await cluster.entries('bot')).toEqual({
      ...before,
      SERVICE_BASE_URL: 'https://new.example/v1',
      OPENAI_BASE_URL: 'https://new.example/v1',
      ANTHROPIC_BASE_URL: 'https://new.example',
    })
    expect(cluster.writes).toEqual(['patch secrets bot'])
  })

  test('a pod that acknowledges late ends the waiting status', async () => {
    cluster.store.obedient = ['gateway-0']
    await cluster.apply(endpointSlices, {
      ...slice('gateway', []),
      metadata: { name: 'gateway-1', namespace: 'headgate', labels: { 'kubernetes.io/service-name': 'gateway' } },
      endpoints: ['gateway-0', 'gateway-1'].map((name) => ({
        addresses: ['10.1.0.1'],
        conditions: { ready: true },
        targetRef: { kind: 'Pod', name },
      })),
    })
    await cluster.start()
    await cluster.apply(apiKeys, apiKey('bot'))
    await poll(() => cluster.condition(apiKeys, 'bot', 'Programmed')).toBe('False Unconfirmed')
    cluster.store.obedient = ['gateway-0', 'gateway-1']
    await poll(() => cluster.condition(apiKeys, 'bot', 'Programmed')).toBe('True Programmed')
    await ready('bot')
  })

  test('an expiry is noticed by itself', async () => {
    await cluster.start()
    const expirationTime = new Date(Date.now() + 500).toISOString()
    await cluster.apply(apiKeys, apiKey('bot', { expirationTime }))
    await ready('bot')
    await poll(() => cluster.condition(apiKeys, 'bot', 'Expired')).toBe('True Expired')
  })

  test('200 keys at once share the writes of the keyring', async () => {
    await cluster.start()
    const names = Array.from({ length: 200 }, (_, index) => `bot-${index}`)
    await Promise.all(names.map((name) => cluster.apply(apiKeys, apiKey(name))))
    await poll(async () =>
      (await Promise.all(names.map((name) => cluster.condition(apiKeys, name, 'Ready')))).every((is) => is === 'True Ready'),
    ).toBe(true)
    expect(cluster.writes.filter((write) => write.includes('hg-keyring')).length).toBeLessThan(40)
    expect(await cluster.keyRecords()).toHaveLength(200)
    expect(new Set((await cluster.keyRecords()).map(({ ver }) => ver[0]?.h)).size).toBe(200)
  })

  test('the value of a key stands in its Secret alone', async () => {
    await cluster.start()
    await cluster.apply(apiKeys, apiKey('bot'))
    await ready('bot')
    await cluster.objects.remove(apiKeys, BOT)
    const issued = await value()
    await poll(() => cluster.objects.get(apiKeys, BOT)).toBeUndefined()
    const others = (await cluster.objects.list(secrets, '')).filter(({ metadata }) => metadata.name !== 'bot')
    const elsewhere = JSON.stringify([cluster.logs, cluster.events, others, await cluster.keyRecords()])
    expect(issued).toHaveLength(65)
    for (const form of [issued, Buffer.from(issued).toString('base64')]) expect(elsewhere).not.toContain(form)
  })

  describe('a start that does not get through', () => {
    /** What another operator left: one key and one model, both in use. */
    async function inUse(): Promise<void> {
      await shop()
      await cluster.start()
      await settled()
      await cluster.stop()
    }

    test.each([
      ['the keyring', 'secrets', ''],
      ['the token of a model', 'secrets', 'upstream'],
    ])('is tried again while %s cannot be read, and the gateways keep what they have', async (_what, plural, name) => {
      await inUse()
      let refused = 0
      cluster.beforeGet = (...asked) => {
        if (asked[0] === plural && asked[1] === name && ++refused <= 2) throw new Error('no answer')
      }
      const { promise } = cluster.startup()
      await poll(() => refused).toBeGreaterThan(0)
      expect(await cluster.keyRecords()).toHaveLength(1)
      await promise
      expect(cluster.logs.filter((line) => line.includes('cannot be read (no answer); tried again'))).toHaveLength(2)
      expect(await cluster.keyRecords()).toHaveLength(1)
      expect(await cluster.modelRecords()).toHaveLength(2)
    })

    test('and is stopped meanwhile takes nothing from the gateways: what was not read was not deleted', async () => {
      await inUse()
      cluster.beforeGet = () => {
        throw new Error('no answer')
      }
      const { operator, promise } = cluster.startup()
      await poll(() => cluster.logs.some((line) => line.includes('tried again'))).toBe(true)
      await operator.stop()
      await promise
      expect(await cluster.keyRecords()).toHaveLength(1)
      expect(await cluster.modelRecords()).toHaveLength(2)
    })
  })

  test('a key whose finalizer was removed by force while no operator ran is revoked at the start', async () => {
    await cluster.start()
    await cluster.apply(apiKeys, apiKey('bot'))
    await ready('bot')
    await cluster.stop()
    await cluster.objects.patch(apiKeys, BOT, [{ op: 'remove', path: '/metadata/finalizers' }])
    await cluster.objects.remove(apiKeys, BOT)
    await cluster.start()
    await poll(() => cluster.keyRecords()).toEqual([])
    expect(cluster.logs.join('\n')).toContain('1 keys without an ApiKey were revoked')
  })

  test('a key whose finalizer is removed by force while the operator runs is revoked soon, not at the next regular sweep', async () => {
    await cluster.start()
    await cluster.apply(apiKeys, apiKey('bot'))
    await ready('bot')
    // in one turn of the loop: the operator must not get to put its finalizer back
    const patched = cluster.objects.patch(apiKeys, BOT, [{ op: 'remove', path: '/metadata/finalizers' }])
    await Promise.all([patched, cluster.objects.remove(apiKeys, BOT)])
    await poll(() => cluster.keyRecords()).toEqual([])
  })

  test('namespaces that are not watched are not swept', async () => {
    await cluster.start()
    await cluster.apply(apiKeys, apiKey('bot'))
    await ready('bot')
    await cluster.stop()
    await cluster.objects.patch(apiKeys, BOT, [{ op: 'remove', path: '/metadata/finalizers' }])
    await cluster.objects.remove(apiKeys, BOT)
    await cluster.start({ watchNamespaces: ['elsewhere'] })
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await cluster.keyRecords()).toHaveLength(1)
  })
})
