import { hash } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { credentialProof } from '#contract/records/credential-proof.ts'
import { type BackendRecord, encodeModelRecord } from '#contract/records/model-record.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { namespace, servedModel, service, slice } from '../../../test/support/objects.ts'
import { surroundings } from '../../../test/support/observed-model.ts'
import { ObjectStore } from '../../../standalone/object-store.ts'
import { servedModels } from '#api/resources.ts'
import { servedModelKind } from '#api/served-model-kind.ts'
import type { ServedModel } from '#api/served-model.ts'
import { OwnWrites } from '#kube/own-writes.ts'
import { KubeError, type ObjectRef, refKey, uidOf } from '#kube/port.ts'
import { endpointSlices, namespaces, services } from '#kube/resources.ts'
import { addServiceIndex } from '#kube/indexes.ts'
import { desiredModel } from './desired.ts'
import { ProjectedModels } from './projected-models.ts'
import { type MountedSecrets, NamespaceRecordsFull } from '../../shards/mounted-secrets.ts'
import type { OperatorContext } from '../kind.ts'
import { ObjectController } from '../object-controller.ts'
import { createDeps, ServedModels } from './kind.ts'

type Spec = NonNullable<Parameters<typeof servedModel>[1]>

/** A controller whose queue, projection and mounted Secrets record their calls. */
class Bench {
  nowMs = Date.UTC(2026, 0, 1)
  readonly clock = new ManualClock()
  readonly objects = new ObjectStore({ now: () => (this.nowMs += 1_000) })
  readonly enqueued: string[] = []
  readonly kept: string[] = []
  readonly set: string[] = []
  /** undefined while Redis does not answer. */
  standing: ReadonlyArray<readonly [string, string]> | undefined = []
  unsynced: readonly string[] = []
  /** Why the mounted Secrets refuse every model. */
  refusal: Error | undefined
  hasRoom = false
  readonly controller: ObjectController

  constructor() {
    const informer = this.objects.informer(servedModels)
    const push = (ref: ObjectRef, level: string): void => void this.enqueued.push(`${level} ${refKey(ref)}`)
    const scope = { watchNamespaces: [], formerNamespaces: [] }
    const settings = {
      ...scope,
      maxServedModelsPerNamespace: 10_000,
      publishingNamespaces: ['*'],
      clusterAddressNamespaces: [],
      allowLoopback: false,
    }
    const context = {
      kube: this.objects,
      settings,
      leader: { assertLeading: () => undefined },
      log: { warn: () => undefined },
      informers: {
        of: () => ({
          ...{ synced: informer.synced, addIndex: () => undefined, byIndex: () => [] },
          get: (ref: ObjectRef) => informer.get(ref),
          list: () => informer.list(),
          subscribe: (listener: Parameters<typeof informer.subscribe>[0]) => informer.subscribe(listener),
          isSynced: (name: string) => !this.unsynced.includes(name),
        }),
        services: this.objects.informer(services),
        endpointSlices: this.objects.informer(endpointSlices),
        namespaces: this.objects.informer(namespaces),
      },
      projection: { available: true, want: () => undefined, present: () => undefined, forget: () => undefined },
      store: {
        meta: () => (this.standing ? Promise.resolve({ epoch: 'e' }) : Promise.reject(new Error('Redis is away'))),
        ids: () => Promise.resolve([]),
        records: () => Promise.resolve(new Map(this.standing)),
      },
      acknowledgements: {
        live: [],
        confirmation: () => ({ state: 'Waiting', ready: 0, total: 1, missing: [] }),
        expect: () => undefined,
        forget: () => undefined,
      },
      models: new ProjectedModels(),
      ownWrites: new OwnWrites(this.clock),
      enqueue: (_kind: string, ref: ObjectRef, level: string) => push(ref, level),
      enqueueAfter: (_kind: string, ref: ObjectRef, delayMs: number, level: string) =>
        push(ref, delayMs === 0 ? level : `${level} after ${delayMs} ms`),
      backlogOf: () => 0,
      secret: () => 'secret of the installation',
      recordEvent: () => undefined,
      clock: this.clock,
      random: () => 0.5,
      version: () => 1,
    } as unknown as OperatorContext
    const mounted = {
      load: () => Promise.resolve(),
      onSettled: () => undefined,
      setModel: (uid: string) => void this.set.push(uid),
      keep: (uid: string) => void this.kept.push(uid),
      deleteModel: () => undefined,
      credential: (sum: string) => (sum === SUM ? VALUE : undefined),
      refusal: () => this.refusal,
      hasRoomFor: () => this.hasRoom,
    } as unknown as MountedSecrets
    addServiceIndex(this.objects.informer(endpointSlices))
    const create = (): ServedModels => new ServedModels(context, { ...createDeps(context), mounted })
    this.controller = new ObjectController({ api: servedModelKind, create }, context)
  }

  apply(name: string, spec: Spec = {}, home = 'shop'): Promise<ServedModel> {
    return this.objects.create(servedModels, servedModel(name, spec, { namespace: home }))
  }

  async edit(model: ServedModel, spec: Spec): Promise<ServedModel> {
    const ref = { namespace: model.metadata.namespace ?? '', name: model.metadata.name }
    const present = await this.objects.get(servedModels, ref)
    return this.objects.update(servedModels, { ...(present ?? model), spec: servedModel(model.metadata.name, spec).spec })
  }

  /** Objects that `change` enqueues. */
  async after(change: () => Promise<unknown>): Promise<string[]> {
    this.enqueued.length = 0
    await change()
    return [...this.enqueued]
  }
}

const ALL: Spec = { allowedNamespaces: { from: 'All' } }
const BACKEND = { name: 'one', url: 'https://models.example', authSecretRef: { name: 'upstream' } }
const CREDENTIAL: Spec = { backends: [BACKEND] }
const URL_PLACE = { name: 'one', url: 'https://models.example', service: null, endpoints: [] }

const VALUE = 'org-owned-token'
const SUM = hash('sha256', VALUE, 'hex')

/** The record of an earlier process. @param change of the backend, by somebody else who writes in Redis */
function recordText(model: ServedModel, change: Partial<BackendRecord> = {}): string {
  const { record } = desiredModel(
    surroundings(model, [{ name: 'one', service: undefined, credential: { state: 'Adopted', sum: SUM }, reachable: undefined }]),
  )
  const [backend] = record?.backends ?? []
  if (!record || !backend) throw new Error('no record')
  const proven = { ...backend, credentialProof: credentialProof(VALUE, record.uid, backend), ...change }
  return encodeModelRecord({ ...record, backends: [proven] })
}

describe('ServedModels', () => {
  let bench: Bench
  beforeEach(() => {
    bench = new Bench()
  })

  describe('a change enqueues', () => {
    beforeEach(() => bench.controller.prepare())

    test('a new model at level create, an edited model at change and a deleted model at urgent', async () => {
      expect(await bench.after(() => bench.apply('llama'))).toEqual(['create shop/llama'])
      const model = await bench.objects.get(servedModels, { namespace: 'shop', name: 'llama' })
      expect(await bench.after(() => bench.edit(model!, { aliases: ['small'] }))).toEqual(['change shop/llama'])
      expect(await bench.after(() => bench.objects.remove(servedModels, { namespace: 'shop', name: 'llama' }))).toEqual([
        'urgent shop/llama',
      ])
    })

    test.each<[Spec, Spec, string]>([
      [ALL, {}, 'urgent'],
      [ALL, { allowedNamespaces: { from: 'Selector', selector: {} } }, 'urgent'],
      [
        { allowedNamespaces: { from: 'Selector', selector: {} } },
        { allowedNamespaces: { from: 'Selector', selector: { matchLabels: { a: 'b' } } } },
        'urgent',
      ],
      [{ allowedNamespaces: { from: 'Selector', selector: {} } }, ALL, 'change'],
      [{}, ALL, 'change'],
      [ALL, { ...ALL, aliases: ['x'] }, 'change'],
    ])('an edit at its level, and urgent if it takes the model away from a namespace: %o to %o is %s', async (before, after, level) => {
      const model = await bench.apply('llama', before)
      expect(await bench.after(() => bench.edit(model, after))).toEqual([`${level} shop/llama`])
    })

    test('nothing for a status that the operator wrote itself', async () => {
      const model = await bench.apply('llama')
      expect(await bench.after(() => bench.objects.applyStatus(servedModels, { ...model, status: { servedName: 'llama' } }))).toEqual([])
    })

    test('the users of a Service and of its slices, and no other model', async () => {
      await bench.apply('llama')
      await bench.apply('other', { backends: [{ name: 'one', service: { name: 'other', port: 80 } }] })
      await bench.apply('llama', {}, 'away')
      expect(await bench.after(() => bench.objects.create(services, service('llama')))).toEqual(['change shop/llama'])
      expect(await bench.after(() => bench.objects.create(endpointSlices, slice('llama', ['10.0.0.1'])))).toEqual([
        'change after 100 ms shop/llama',
      ])
    })

    test('models whose selector matches only the old or only the new labels of a namespace', async () => {
      await bench.apply('llama', { allowedNamespaces: { from: 'Selector', selector: { matchLabels: { team: 'ml' } } } })
      await bench.apply('other', { ...ALL, servedName: 'other' })
      expect(await bench.after(() => bench.objects.create(namespaces, namespace('green', { team: 'ml' })))).toEqual(['change shop/llama'])
      expect(await bench.after(() => bench.objects.create(namespaces, namespace('blue')))).toEqual([])
      const green = await bench.objects.get(namespaces, { namespace: '', name: 'green' })
      const relabel = (labels: Record<string, string>) =>
        bench.objects.update(namespaces, { ...green!, metadata: { name: 'green', labels } })
      expect(await bench.after(() => relabel({ team: 'ml', more: 'x' }))).toEqual([])
      expect(await bench.after(() => relabel({}))).toEqual(['urgent shop/llama'])
    })

    test('the new owner of a freed name at once, and the other candidates in the background, 100 per turn', async () => {
      for (let index = 0; index < 252; index += 1) await bench.apply(`m${index}`, { servedName: 'same' })
      const first = await bench.after(() => bench.objects.remove(servedModels, { namespace: 'shop', name: 'm0' }))
      expect(first.slice(0, 2)).toEqual(['urgent shop/m0', 'change shop/m1'])
      expect(first).toHaveLength(102)
      expect(first.slice(2).every((entry) => entry.startsWith('background '))).toBe(true)
      await bench.clock.advance(0)
      expect(new Set(bench.enqueued).size).toBe(252)
    })
  })

  test.each<[string, Error, boolean]>([
    ['beyond the share of its namespace is not mounted again until there is room', new NamespaceRecordsFull('shop', 1), false],
    ['that the API server refuses is mounted again after a while', new KubeError('Forbidden', 403, 'no'), true],
  ])('a model %s', async (_what, refusal, isRepeated) => {
    const model = await bench.apply('plain', { backends: [{ name: 'one', url: 'https://models.example' }] })
    await bench.controller.prepare()
    bench.refusal = refusal
    const { kind } = bench.controller
    const observed = () => kind.observe({ namespace: 'shop', name: model.metadata.name }) ?? {}
    await bench.clock.advance(600_000)
    expect(kind.nextStep(observed())?.do === 'mount').toBe(isRepeated)
    bench.hasRoom = true
    expect(kind.nextStep(observed())).toMatchObject({ do: 'mount' })
  })

  describe('a start', () => {
    test('projects records from memory, and keeps records that depend on a Secret unchanged', async () => {
      const plain = await bench.apply('plain', { backends: [{ name: 'one', url: 'https://models.example' }] })
      const secret = await bench.apply('secret', CREDENTIAL)
      bench.standing = [[uidOf(secret), recordText(secret)]]
      const records = await bench.controller.prepare()
      expect(records.map(({ id }) => id)).toEqual([uidOf(plain), uidOf(secret)])
      expect(records[1]?.text).toContain(`"credentialSum":"${SUM}"`)
      expect(records[1]?.text).toBe(recordText(secret))
      expect(bench.kept).toEqual([uidOf(secret)])
      expect(bench.set).toEqual([uidOf(plain)])
    })

    test.each<[string, Partial<BackendRecord>, Spec]>([
      ['whose url somebody has changed', { url: 'https://evil.example' }, { backends: [{ ...BACKEND, url: 'https://evil.example' }] }],
      ['without a proof', { credentialProof: undefined }, CREDENTIAL],
      ['with the credential of another model', { credentialProof: credentialProof(VALUE, 'another', URL_PLACE) }, CREDENTIAL],
    ])('adopts no credential from a record %s', async (_what, change, spec) => {
      const model = await bench.apply('secret', spec)
      bench.standing = [[uidOf(model), recordText(await bench.edit(model, CREDENTIAL), change)]]
      await bench.edit(model, spec)
      expect(await bench.controller.prepare()).toEqual([])
    })

    test('without Redis keeps the records that depend on a Secret', async () => {
      const secret = await bench.apply('secret', CREDENTIAL)
      bench.standing = undefined
      expect(await bench.controller.prepare()).toEqual([])
      expect(bench.controller.kind.keeps?.(uidOf(secret))).toBe(true)
    })

    test('keeps a record of a newer version until the Secret is read, and replaces a record that needs no Secret', async () => {
      const [plain, secret] = [
        await bench.apply('plain', { backends: [{ name: 'one', url: 'https://a.example' }] }),
        await bench.apply('secret', CREDENTIAL),
      ]
      bench.standing = [plain, secret].map((model) => [uidOf(model), JSON.stringify({ v: 99, namespace: 'shop' })] as const)
      expect((await bench.controller.prepare()).map(({ id }) => id)).toEqual([uidOf(plain)])
      expect([plain, secret].map((model) => bench.controller.kind.keeps?.(uidOf(model)))).toEqual([false, true])
    })

    test('keeps the records of models in unreadable namespaces, and deletes other records without a model', async () => {
      const text = (home: string) => recordText(servedModel('orphan', CREDENTIAL, { namespace: home, uid: home }))
      bench.standing = ['hidden', 'shop'].map((home) => [home, text(home)] as const)
      bench.unsynced = ['hidden']
      await bench.controller.prepare()
      expect(['hidden', 'shop'].map((uid) => bench.controller.kind.keeps?.(uid))).toEqual([true, false])
      expect(bench.kept).toEqual(['hidden'])
    })

    test('notices a model that is deleted during the start', async () => {
      await bench.apply('llama')
      await bench.controller.prepare()
      expect(await bench.after(() => bench.objects.remove(servedModels, { namespace: 'shop', name: 'llama' }))).toEqual([
        'urgent shop/llama',
      ])
    })
  })
})
