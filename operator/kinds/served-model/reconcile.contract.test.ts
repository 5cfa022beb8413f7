import { hash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type BackendRecord, decodeModelRecord, type ModelRecord } from '#contract/records/model-record.ts'
import { unpackShard } from '#contract/records/shard-text.ts'
import { secret, servedModel, service, SHOP, slice } from '../../../test/support/objects.ts'
import type { WorldCall } from '../../../test/support/operator-process.ts'
import { OperatorWorld } from '../../../test/support/operator-world.ts'
import { servedModels } from '#api/resources.ts'
import type { ServedModel } from '#api/served-model.ts'
import { KubeError } from '#kube/port.ts'
import { endpointSlices, secrets, services } from '#kube/resources.ts'
import { servedModelRow } from './kind.ts'

type Spec = NonNullable<Parameters<typeof servedModel>[1]>
const LLAMA = { namespace: SHOP, name: 'llama' }
const TOKEN_LABEL = { 'headgate.dev/upstream-auth': 'true' }
const FOR_MODELS_EXAMPLE = { labels: TOKEN_LABEL, annotations: { 'headgate.dev/upstream-hosts': 'models.example' } }
const sumOf = (value: string): string => hash('sha256', value, 'hex')

describe('reconcile of a ServedModel', () => {
  let world: OperatorWorld

  beforeEach(async () => {
    world = new OperatorWorld([servedModelRow])
    await world.start({ publishingNamespaces: ['headgate', SHOP] })
  })
  afterEach(() => world.stop())

  const settled = async <T>(read: () => Promise<T>): Promise<T> => {
    await world.settle()
    return await read()
  }
  const apply = (name: string, spec: Spec = {}, metadata: Parameters<typeof servedModel>[2] = {}) =>
    world.apply(servedModels, servedModel(name, spec, metadata))
  const served = () => Promise.all([world.apply(services, service('llama')), world.apply(endpointSlices, slice('llama', ['10.0.0.1']))])
  const record = async (name = 'llama'): Promise<ModelRecord | undefined> => (await world.modelRecords()).find((one) => one.name === name)
  const backend = async (name = 'llama'): Promise<BackendRecord | undefined> => (await record(name))?.backends[0]
  const condition = (type: string, name = 'llama') => world.condition(servedModels, name, type)
  const becomes = async (type: string, value: string, name = 'llama'): Promise<void> => {
    expect(await settled(() => condition(type, name))).toBe(value)
  }
  const readyModel = async (spec?: Spec): Promise<ServedModel> => {
    await served()
    const model = await apply('llama', spec)
    await becomes('Ready', 'True Ready')
    return model
  }

  test('of a namespace that is left out of the list keeps its record, also if Redis is away at the start', async () => {
    await readyModel()
    world.storeDown = true
    await world.restart({ watchNamespaces: ['shpo'] })
    world.storeDown = false
    await world.pass(10)
    await world.settle()
    expect(await record()).toBeDefined()
  })

  test('a model with a Service reaches the gateways with the addresses of its pods, and is Ready', async () => {
    await readyModel({ servedName: 'llama-3.1-8b', backends: [{ name: 'one', service: { name: 'llama', port: 8000 }, weight: 3 }] })
    expect(await record()).toMatchObject({
      servedName: 'llama-3.1-8b',
      allowedNamespaces: ['shop'],
      backends: [{ endpoints: ['10.0.0.1:8080'], weight: 3 }],
    })
  })

  test('an edit that meets a conflict in the mounted Secrets is written again at once', async () => {
    await served()
    await apply('llama')
    await world.settle()
    world.conflictFive('models')
    await apply('llama', { aliases: ['again'] })
    await world.during(world.sleep(5_000))
    expect(await coldStart()).toMatchObject([{ aliases: ['again'] }])
  })

  test('the record follows the pods without an edit of the ServedModel', async () => {
    await readyModel()
    await world.apply(endpointSlices, slice('llama', ['10.0.0.1', '10.0.0.2']))
    expect(await settled(async () => (await backend())?.endpoints)).toEqual(['10.0.0.1:8080', '10.0.0.2:8080'])
    await world.objects.remove(endpointSlices, { namespace: SHOP, name: 'llama-1' })
    expect(await settled(async () => (await backend())?.endpoints)).toEqual([])
    await becomes('BackendsHealthy', 'False NoEndpoints')
    await world.apply(endpointSlices, slice('llama', ['10.0.0.3']))
    await becomes('Ready', 'True Ready')
  })

  test('the record follows a Service that is created later or deleted', async () => {
    await apply('llama')
    await becomes('Accepted', 'False ServiceNotFound')
    expect(await record()).toBeUndefined()
    await served()
    await becomes('Ready', 'True Ready')
    await world.objects.remove(services, LLAMA)
    await becomes('Accepted', 'False ServiceNotFound')
    expect(await record()).toBeUndefined()
  })

  const restart = async (settings: Parameters<typeof world.start>[0] = {}): Promise<void> => {
    await world.restart({ publishingNamespaces: ['headgate', SHOP], ...settings })
  }
  const accepted = (name = 'llama') => world.message(servedModels, name, 'Accepted')
  const edited = async (name = 'llama'): Promise<void> => {
    const annotations = { 'headgate.dev/reconcile-at': String(performance.now()) }
    const model = await world.objects.get(servedModels, { namespace: SHOP, name })
    if (model) await world.objects.update(servedModels, { ...model, metadata: { ...model.metadata, annotations } })
  }
  /** The mounted Secrets, by entry. */
  const credentials = async (): Promise<Record<string, string>> => {
    const data = (await world.shards('upstream')).flatMap((shard) => Object.entries(shard.data ?? {}))
    return Object.fromEntries(data.map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]))
  }
  const mounted = async (): Promise<string[]> => Object.values(await credentials()).sort()
  const withoutSecret = ({ plural, name }: WorldCall): void => {
    if (plural === 'secrets' && name === 'upstream') throw new KubeError('Forbidden', 403, 'get secrets shop/upstream: 403 Forbidden')
  }

  describe('the credential of a backend', () => {
    const withCredential: Spec = {
      backends: [{ name: 'one', url: 'https://models.example', authSecretRef: { name: 'upstream', key: 'token' } }],
    }
    const issue = (value: string, metadata: Parameters<typeof secret>[2] = FOR_MODELS_EXAMPLE) =>
      world.apply(secrets, secret('upstream', { token: value }, metadata))
    const readyWith = async (value: string): Promise<void> => {
      await issue(value)
      await apply('llama', withCredential)
      await becomes('Ready', 'True Ready')
    }

    test.each<[string, Parameters<typeof secret>[1], Parameters<typeof secret>[2], string, string]>([
      ['without the label', { token: 'x' }, {}, 'SecretNotFound', 'lacks the label headgate.dev/upstream-auth'],
      ['without that entry', { other: 'x' }, FOR_MODELS_EXAMPLE, 'SecretNotFound', 'has no data key "token"'],
      ['whose value no header can carry', { token: 'two\nlines' }, FOR_MODELS_EXAMPLE, 'SecretNotFound', 'is not one line'],
      ['that lists no host', { token: 'x' }, { labels: TOKEN_LABEL }, 'CredentialHostNotAllowed', 'upstream-hosts: "models.example"'],
    ])('a Secret %s is not sent to any host, and an Event says why', async (...[, entries, metadata, reason, message]) => {
      await world.apply(secrets, secret('upstream', entries, metadata))
      await apply('llama', withCredential)
      await becomes('Accepted', `False ${reason}`)
      expect(await accepted()).toContain(message)
      expect(world.events).toContainEqual({ name: 'llama', reason, note: expect.stringContaining(message) })
      expect(await world.modelRecords()).toEqual([])
      expect(await mounted()).toEqual([])
    })

    test('a rotation reaches the record together with the former check sum, and both values stay mounted', async () => {
      await readyWith('first')
      await issue('second')
      await edited()
      expect(await settled(() => backend())).toMatchObject({ credentialSum: sumOf('second'), formerCredentialSum: sumOf('first') })
      expect(await settled(mounted)).toEqual(['first', 'second'])
    })

    test('models that share a Secret follow a rotation together', async () => {
      await issue('first')
      await apply('llama', withCredential)
      await apply('other', { ...withCredential, servedName: 'other' })
      await becomes('Ready', 'True Ready')
      await becomes('Ready', 'True Ready', 'other')
      await issue('second')
      await edited()
      expect(await settled(async () => (await backend('other'))?.credentialSum)).toBe(sumOf('second'))
    })

    test('the deletion of the Secret takes the backend away from the gateways', async () => {
      await readyWith('x')
      await world.objects.remove(secrets, { namespace: SHOP, name: 'upstream' })
      await edited()
      await becomes('Accepted', 'False SecretNotFound')
      expect(await record()).toBeUndefined()
    })

    describe('with an unreadable Secret', () => {
      test('stays in use as last read, and the status says so until a read succeeds', async () => {
        await readyWith('x')
        world.beforeCall = withoutSecret
        await edited()
        await becomes('Accepted', 'Unknown SecretUnreadable')
        await becomes('Ready', 'True Ready')
        expect(await backend()).toMatchObject({ credentialSum: sumOf('x') })
        world.beforeCall = () => undefined
        await world.pass(400) // longer than the longest back-off
        await becomes('Accepted', 'True Accepted')
      })

      test('stops neither a start nor other models; record and mounted value stay', async () => {
        await readyWith('x')
        expect(await settled(mounted)).toEqual(['x'])
        const before = await record()
        world.beforeCall = withoutSecret
        await restart()
        await served()
        await apply('other')
        await becomes('Ready', 'True Ready', 'other')
        await becomes('Accepted', 'Unknown SecretUnreadable')
        expect(await record()).toMatchObject({ backends: before?.backends })
        expect(await mounted()).toEqual(['x'])
        expect(world.events).toContainEqual({ name: 'llama', reason: 'SecretUnreadable', note: expect.stringContaining('403') })
      })

      test('does not keep other edits of the model from the gateways', async () => {
        await issue('x')
        await apply('llama', { ...withCredential, allowedNamespaces: { from: 'All' } })
        expect(await settled(async () => (await record())?.allowedNamespaces)).toBe('*')
        world.beforeCall = withoutSecret
        await restart()
        await apply('llama', { ...withCredential, allowedNamespaces: { from: 'Same' } })
        expect(await settled(async () => (await record())?.allowedNamespaces)).toEqual([SHOP])
        expect(await backend()).toMatchObject({ credentialSum: sumOf('x') })
      })
    })
  })

  test('a header that is never forwarded is a condition with its field; the model is Ready, and the others reach the record', async () => {
    await served()
    await apply('llama', { forwardHeaders: ['X-Conversation-Id', 'Cookie'] })
    await becomes('Accepted', 'False HeaderRefused')
    expect(await accepted()).toContain('forwardHeaders[1]: "Cookie"')
    await becomes('Ready', 'True Ready')
    expect((await record())?.forwardHeaders).toEqual(['x-conversation-id'])
    await apply('llama', { forwardHeaders: ['X-Conversation-Id'] })
    await becomes('Accepted', 'True Accepted')
  })

  describe('publishing', () => {
    const ALL: Spec = { allowedNamespaces: { from: 'All' } }

    test('to selected namespaces needs the right to read their labels', async () => {
      world.mayReadNamespaces = false
      await restart()
      await served()
      await apply('llama', { allowedNamespaces: { from: 'Selector', selector: { matchLabels: { team: 'ml' } } } })
      await becomes('Accepted', 'False PublishingNotAllowed')
      expect(await accepted()).toContain('scope.namespaceLabels')
      expect((await record())?.allowedNamespaces).toEqual([SHOP])
    })

    test.each<[string, () => Promise<unknown>, string[]]>([
      ['deleted', () => world.objects.remove(servedModels, LLAMA), ['other']],
      ['renamed', () => apply('llama', { ...ALL, servedName: 'y' }), ['llama', 'other']],
    ])('a name whose owner is %s passes to another namespace, with Events', async (_what, end, named) => {
      await restart({ publishingNamespaces: ['*'] })
      await served()
      await apply('llama', { ...ALL, servedName: 'x' })
      await world.pass(5)
      await world.apply(
        servedModels,
        servedModel('other', { ...ALL, servedName: 'x', backends: [{ name: 'one', url: 'https://o.example' }] }, { namespace: 'away' }),
      )
      await becomes('Ready', 'True Ready')
      await end()
      expect(await settled(async () => world.events.filter(({ reason }) => reason === 'NameTakenOver').map(({ name }) => name))).toEqual(
        named,
      )
      expect(world.events.find(({ reason }) => reason === 'NameTakenOver')?.note).toContain('"x" is now served by ServedModel away/other')
    })
  })

  describe('the bound of a namespace', () => {
    test('keeps the youngest waiting without record, name and credential; a freed place goes to the oldest of them', async () => {
      await restart({ maxServedModelsPerNamespace: 1 })
      await readyModel({ servedName: 'x' })
      for (const name of ['second', 'third']) {
        await world.pass(5)
        await apply(name, { servedName: 'x', aliases: [name] })
      }
      for (const name of ['second', 'third']) await becomes('Accepted', 'False NamespaceLimitReached', name)
      expect((await world.modelRecords()).map(({ name }) => name)).toEqual(['llama'])
      expect(world.events.filter(({ reason }) => reason === 'NamespaceLimitReached')).toHaveLength(2)
      await world.objects.remove(servedModels, LLAMA)
      await becomes('Ready', 'True Ready', 'second')
      await becomes('Accepted', 'True Accepted', 'second')
      await becomes('Accepted', 'False NamespaceLimitReached', 'third')
    })
  })

  test('without a gateway the operator does not repeat reads or writes, and the first gateway makes the model Ready', async () => {
    await world.serve([])
    await served()
    await apply('llama')
    await becomes('Ready', 'False NotProgrammed')
    expect(await settled(coldStart)).toHaveLength(1)
    const calls = world.writes.length
    await world.settle()
    expect(world.writes.slice(calls)).toEqual([])
    await world.serve(['gateway-0'])
    await becomes('Ready', 'True Ready')
  })

  test('a restart writes nothing new', async () => {
    await readyModel({ aliases: ['small'] })
    expect(await settled(coldStart)).toHaveLength(1)
    const [before, revision] = [await record(), (await world.memory.meta())?.revision]
    await restart()
    const calls = world.writes.length
    await world.settle()
    expect(await record()).toEqual(before)
    expect((await world.memory.meta())?.revision).toBe(revision)
    expect(world.writes.slice(calls)).toEqual([])
  })

  describe('deletion', () => {
    test('takes the record from the gateways, and record and credential from the mounted Secrets', async () => {
      await served()
      await world.apply(secrets, secret('upstream', { token: 'x' }, { labels: TOKEN_LABEL })) // a Service needs no host
      await apply('llama', {
        backends: [{ name: 'one', service: { name: 'llama', port: 8000 }, authSecretRef: { name: 'upstream', key: 'token' } }],
      })
      await becomes('Ready', 'True Ready')
      expect(await settled(coldStart)).toHaveLength(1)
      await world.objects.remove(servedModels, LLAMA)
      expect(await settled(() => record())).toBeUndefined()
      expect(await settled(coldStart)).toEqual([])
    })

    test('during an outage of Redis takes effect after the outage', async () => {
      await readyModel()
      world.storeDown = true
      await world.objects.remove(servedModels, LLAMA)
      await world.settle()
      world.storeDown = false
      expect(await settled(() => record())).toBeUndefined()
    })

    test('and a new one of the same name is another model', async () => {
      const first = await readyModel()
      await world.objects.remove(servedModels, LLAMA)
      const second = await apply('llama')
      expect(await settled(async () => (await world.modelRecords()).map(({ uid }) => uid))).toEqual([second.metadata.uid])
      expect(second.metadata.uid).not.toBe(first.metadata.uid)
    })
  })

  test('the status shows endpoints that a gateway cannot reach, until the gateway reaches them', async () => {
    const { metadata } = await readyModel()
    world.reports = { backends: { [`${metadata.uid}/one`]: { up: 0, total: 1 } } }
    await becomes('BackendsHealthy', 'False Unreachable')
    world.reports = {}
    await becomes('BackendsHealthy', 'True Healthy')
  })

  test('the files for a cold start name Services, so new pods cause no write of the files', async () => {
    await served()
    await apply('llama')
    expect(await settled(coldStart)).toMatchObject([{ name: 'llama', backends: [{ service: 'llama.shop.svc:8000', endpoints: [] }] }])
    const before = await world.shards('models')
    await world.apply(endpointSlices, slice('llama', ['10.0.0.7']))
    expect(await settled(async () => (await backend())?.endpoints)).toEqual(['10.0.0.7:8080'])
    await world.settle()
    expect(await world.shards('models')).toEqual(before)
    await apply('llama', { aliases: ['small'] })
    expect(await settled(coldStart)).toMatchObject([{ aliases: ['small'] }])
  })

  async function coldStart(): Promise<ModelRecord[]> {
    const packed = (await world.shards('models')).flatMap(({ data }) => Object.values(data ?? {}))
    const shards = await Promise.all(packed.map((text) => unpackShard(Buffer.from(text, 'base64'))))
    return shards.flat().map(decodeModelRecord)
  }
})
