import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { BackendRecord, ModelRecord } from '../../gateway/shared/model-record.ts'
import { decodeModelRecord } from '../../gateway/shared/model-record.ts'
import { decodeModelsFile } from '../../gateway/shared/keyring-line.ts'
import { namespace, secret, servedModel, service, SHOP, slice } from '../../test/support/objects.ts'
import { OperatorCluster } from '../../test/support/operator-cluster.ts'
import { endpointSlices, namespaces, secrets, servedModels, services } from '../kube/resources.ts'

type Spec = NonNullable<Parameters<typeof servedModel>[1]>
const LLAMA = { namespace: SHOP, name: 'llama' }
const TOKEN_LABEL = { 'headgate.dev/upstream-auth': 'true' }

describe('reconcile of a ServedModel', () => {
  let cluster: OperatorCluster

  beforeEach(async () => {
    cluster = new OperatorCluster()
    await cluster.start()
  })
  afterEach(() => cluster.stop())

  const poll = <T>(read: () => Promise<T>) => expect.poll(read, { interval: 5, timeout: 3_000 })
  const apply = (name: string, spec: Spec = {}, metadata: Parameters<typeof servedModel>[2] = {}) =>
    cluster.apply(servedModels, servedModel(name, spec, metadata))
  const served = () => Promise.all([cluster.apply(services, service('llama')), cluster.apply(endpointSlices, slice('llama', ['10.0.0.1']))])
  const record = async (name = 'llama'): Promise<ModelRecord | undefined> => (await cluster.modelRecords()).find((one) => one.name === name)
  const backend = async (name = 'llama'): Promise<BackendRecord | undefined> => (await record(name))?.backends[0]
  const condition = (type: string, name = 'llama') => cluster.condition(servedModels, name, type)
  const becomes = async (type: string, value: string, name = 'llama'): Promise<void> => {
    await poll(() => condition(type, name)).toBe(value)
  }

  test('a model with a Service reaches the gateways with the addresses of its pods, and is Ready', async () => {
    await served()
    await apply('llama', { servedName: 'llama-3.1-8b', backends: [{ name: 'one', service: { name: 'llama', port: 8000 }, weight: 3 }] })
    await becomes('Ready', 'True Ready')
    expect(await record()).toMatchObject({ served: 'llama-3.1-8b', allow: ['shop'], backends: [{ eps: ['10.0.0.1:8080'], w: 3 }] })
  })

  test('the record follows the pods, without the ServedModel being touched', async () => {
    await served()
    await apply('llama')
    await becomes('Ready', 'True Ready')
    await cluster.apply(endpointSlices, slice('llama', ['10.0.0.1', '10.0.0.2']))
    await poll(async () => (await backend())?.eps).toEqual(['10.0.0.1:8080', '10.0.0.2:8080'])
    await cluster.objects.remove(endpointSlices, { namespace: SHOP, name: 'llama-1' })
    await poll(async () => (await backend())?.eps).toEqual([])
    await becomes('BackendsHealthy', 'False NoEndpoints')
    await cluster.apply(endpointSlices, slice('llama', ['10.0.0.3']))
    await becomes('Ready', 'True Ready')
  })

  test('a Service that comes later, and one that goes, are followed', async () => {
    await apply('llama')
    await becomes('Accepted', 'False ServiceNotFound')
    expect(await record()).toBeUndefined()
    await served()
    await becomes('Ready', 'True Ready')
    await cluster.objects.remove(services, LLAMA)
    await becomes('Accepted', 'False ServiceNotFound')
    expect(await record()).toBeUndefined()
  })

  test('edits reach the record: weight, time-outs, who may use it', async () => {
    await served()
    await apply('llama')
    await becomes('Ready', 'True Ready')
    await apply('llama', {
      backends: [{ name: 'one', service: { name: 'llama', port: 8000 }, weight: 1 }],
      timeouts: { firstByteSeconds: 9 },
      allowedNamespaces: { from: 'All' },
    })
    await poll(async () => (await record())?.allow).toBe('*')
    expect(await record()).toMatchObject({ to: { first: 9 }, backends: [{ w: 1 }] })
  })

  test('a selector follows the labels of namespaces', async () => {
    await served()
    await cluster.apply(namespaces, namespace('green', { team: 'ml' }))
    await cluster.apply(namespaces, namespace('blue'))
    await apply('llama', { allowedNamespaces: { from: 'Selector', selector: { matchLabels: { team: 'ml' } } } })
    await poll(async () => (await record())?.allow).toEqual(['green', 'shop'])
    await cluster.apply(namespaces, namespace('blue', { team: 'ml' }))
    await poll(async () => (await record())?.allow).toEqual(['blue', 'green', 'shop'])
    await cluster.objects.remove(namespaces, { namespace: '', name: 'green' })
    await poll(async () => (await record())?.allow).toEqual(['blue', 'shop'])
  })

  test('of two that want one name the younger one says NameConflict and names the winner, and gets the name when the older one goes', async () => {
    await served()
    await apply('llama', { servedName: 'x' })
    await becomes('Ready', 'True Ready')
    cluster.aheadMs = 5_000
    await apply('young', { servedName: 'y', aliases: ['x'] })
    await becomes('Accepted', 'False NameConflict', 'young')
    await becomes('Ready', 'True Ready', 'young') // its other name works
    expect(cluster.events).toContainEqual({ name: 'young', reason: 'NameConflict', note: expect.stringContaining('shop/llama') })
    await cluster.objects.remove(servedModels, LLAMA)
    await becomes('Accepted', 'True Accepted', 'young')
  })

  test.each(['http://127.0.0.1:8000', 'http://169.254.169.254/latest'])('the address %s reaches no gateway', async (address) => {
    await apply('llama', { backends: [{ name: 'one', url: address }] })
    await becomes('Accepted', 'False AddressRefused')
    expect(await cluster.modelRecords()).toEqual([])
  })

  describe('the token of a backend', () => {
    const withToken: Spec = {
      backends: [{ name: 'one', url: 'https://models.example', authSecretRef: { name: 'upstream', key: 'token' } }],
    }

    test('goes into the mounted Secret alone, and the record has its file and sum', async () => {
      await cluster.apply(secrets, secret('upstream', { token: 'top-secret\n' }, { labels: TOKEN_LABEL }))
      const { metadata } = await apply('llama', withToken)
      await becomes('Ready', 'True Ready')
      const file = `upstream.${metadata.uid}.one`
      await poll(() => cluster.entries('hg-upstream', 'headgate')).toEqual({ [file]: 'top-secret' })
      expect(await backend()).toMatchObject({ auth: file, authSum: expect.stringMatching(/^[0-9a-f]{64}$/) })
      const elsewhere = JSON.stringify([
        await cluster.modelRecords(),
        await cluster.objects.get(servedModels, LLAMA),
        cluster.logs,
        cluster.events,
      ])
      expect(elsewhere).not.toContain('top-secret')
    })

    test.each<[string, Parameters<typeof secret>[1], Record<string, string>, string]>([
      ['without the label', { token: 'x' }, {}, 'lacks the label headgate.dev/upstream-auth'],
      ['without that entry', { other: 'x' }, TOKEN_LABEL, 'has no data key "token"'],
      ['whose value no header can carry', { token: 'two\nlines' }, TOKEN_LABEL, 'is not a token of one line'],
    ])('a Secret %s is not sent anywhere', async (_what, entries, labels, message) => {
      await cluster.apply(secrets, secret('upstream', entries, { labels }))
      await apply('llama', withToken)
      await becomes('Accepted', 'False SecretNotFound')
      const model = await cluster.objects.get(servedModels, LLAMA)
      expect(model?.status?.conditions?.find(({ type }) => type === 'Accepted')?.message).toContain(message)
      expect(await cluster.modelRecords()).toEqual([])
      expect(await cluster.entries('hg-upstream', 'headgate')).toEqual({})
    })

    test('a Secret that comes after the model is found by itself', async () => {
      await apply('llama', withToken)
      await becomes('Accepted', 'False SecretNotFound')
      await cluster.apply(secrets, secret('upstream', { token: 'x' }, { labels: TOKEN_LABEL }))
      await becomes('Ready', 'True Ready')
    })
  })

  describe('deletion', () => {
    test('takes the record from the gateways, and token and record from the files', async () => {
      await served()
      await cluster.apply(secrets, secret('upstream', { token: 'x' }, { labels: TOKEN_LABEL }))
      await apply('llama', {
        backends: [{ name: 'one', service: { name: 'llama', port: 8000 }, authSecretRef: { name: 'upstream', key: 'token' } }],
      })
      await becomes('Ready', 'True Ready')
      await poll(coldStart).toHaveLength(1)
      await cluster.objects.remove(servedModels, LLAMA)
      await poll(record).toBeUndefined()
      await poll(coldStart).toEqual([])
      expect(await cluster.entries('hg-upstream', 'headgate')).toEqual({})
    })

    test('while the store is down is made good when it is back', async () => {
      await served()
      await apply('llama')
      await becomes('Ready', 'True Ready')
      cluster.store.stop()
      await cluster.objects.remove(servedModels, LLAMA)
      await new Promise((resolve) => setTimeout(resolve, 30))
      cluster.store.resume()
      await poll(record).toBeUndefined()
    })

    test('and a new one of the same name is another model', async () => {
      await served()
      const first = await apply('llama')
      await becomes('Ready', 'True Ready')
      await cluster.objects.remove(servedModels, LLAMA)
      const second = await apply('llama')
      await poll(async () => (await cluster.modelRecords()).map(({ uid }) => uid)).toEqual([second.metadata.uid])
      expect(second.metadata.uid).not.toBe(first.metadata.uid)
    })
  })

  test('what a gateway cannot reach shows in the status, and goes when it can', async () => {
    await served()
    const { metadata } = await apply('llama')
    await becomes('Ready', 'True Ready')
    cluster.store.reports = { backends: { [`${metadata.uid}/one`]: { up: 0, total: 1 } } }
    await becomes('BackendsHealthy', 'False Unreachable')
    cluster.store.reports = {}
    await becomes('BackendsHealthy', 'True Healthy')
  })

  test('the file for a cold start names Services, and pods that come and go do not write it', async () => {
    await served()
    await apply('llama')
    await poll(coldStart).toMatchObject([{ name: 'llama', backends: [{ svc: 'llama.shop.svc:8000', eps: [] }] }])
    const before = await cluster.objects.get(secrets, { namespace: 'headgate', name: 'hg-models' })
    await cluster.apply(endpointSlices, slice('llama', ['10.0.0.7']))
    await poll(async () => (await backend())?.eps).toEqual(['10.0.0.7:8080'])
    await new Promise((resolve) => setTimeout(resolve, 80)) // longer than the files linger
    expect(await cluster.objects.get(secrets, { namespace: 'headgate', name: 'hg-models' })).toEqual(before)
    await apply('llama', { aliases: ['small'] })
    await poll(coldStart).toMatchObject([{ aliases: ['small'] }])
  })

  async function coldStart(): Promise<ModelRecord[]> {
    const found = await cluster.objects.get(secrets, { namespace: 'headgate', name: 'hg-models' })
    return decodeModelsFile(Buffer.from(found?.data?.['records'] ?? '', 'base64')).map(decodeModelRecord)
  }
})
