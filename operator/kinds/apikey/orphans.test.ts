import { beforeEach, describe, expect, test } from 'vitest'
import { decodeKeyRecord } from '#contract/records/key-record.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import { ObjectStore } from '../../../standalone/object-store.ts'
import { FaultyProjectionStore } from '../../../test/support/faulty-projection-store.ts'
import { ManualClock, settle } from '../../../test/support/manual-clock.ts'
import { apiKey, SHOP } from '../../../test/support/objects.ts'
import { entryFor, verifierOf } from '../../../test/support/observed-key.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import { Keyring } from '../../shards/keyring.ts'
import { addStandardIndexes } from '#kube/indexes.ts'
import { type Informer, KubeError, type KubePort, uidOf } from '#kube/port.ts'
import { createReconcile, type Reconcile, type Requeue } from '../../loop/reconciler.ts'
import { Projection } from '../../projection/projection.ts'
import type { SubjectLedger } from '../../books/subject-ledger.ts'
import { createOrphans } from './orphans.ts'

const BOT = { namespace: SHOP, name: 'bot' }

describe('a keyring entry without an ApiKey in the cache', () => {
  let clock: ManualClock
  let objects: ObjectStore
  let store: FaultyProjectionStore
  let keyring: Keyring
  let projection: Projection
  let cached: ApiKey | undefined
  let isSynced: boolean
  let isWritten: boolean
  let isWatched: boolean
  let ended: string[]
  let reads: number
  let fail: Error | undefined
  let uid: string
  let reconcile: Reconcile

  beforeEach(async () => {
    clock = new ManualClock()
    objects = new ObjectStore({ now: () => clock.now() })
    store = new FaultyProjectionStore()
    const created = await objects.create(apiKeys, apiKey('bot', {}, { finalizers: [FINALIZER] }))
    uid = uidOf(created)
    addStandardIndexes(objects.informer<ApiKey>(apiKeys))
    const assertLeading = (): void => undefined
    keyring = new Keyring({
      kube: objects,
      namespace: 'headgate',
      clock,
      shards: 1,
      maxModelBytesPerNamespace: Infinity,
      assertLeading,
      warn: () => undefined,
    })
    await keyring.load()
    keyring.commit(entryFor(created, [verifierOf(1)]), 'change')
    await keyring.flush()
    projection = new Projection({
      ...{ store, clock, assertLeading, fence: () => 1, raiseFence: () => Promise.resolve(), onFenced: () => undefined },
      ...{ installation: () => '', takesOver: false, log: { info: () => undefined }, keeps: () => true },
      ...{ outage: { failed: () => undefined, works: () => undefined } },
      ...{ onWritten: () => void (isWritten = true), onAvailability: () => undefined, onForeign: () => undefined },
    })
    await projection.start([], 0)
    isWritten = false
    cached = undefined
    isSynced = true
    isWatched = true
    ended = []
    reads = 0
    fail = undefined
    const get: KubePort['get'] = (resource, ref) => {
      reads += 1
      return fail ? Promise.reject(fail) : objects.get(resource, ref)
    }
    const cache = {
      ...{ synced: Promise.resolve(), isSynced: () => isSynced, get: () => cached, list: () => (cached ? [cached] : []) },
      ...{ subscribe: () => undefined, addIndex: () => undefined, byIndex: () => (cached ? [cached] : []) },
    } as Informer<ApiKey>
    const orphans = createOrphans({
      ...{ keyring, projection, clock, leader: { assertLeading }, apiKeys: cache, version: () => 1 },
      kube: { get } as KubePort,
      settings: {
        get watchNamespaces() {
          return isWatched ? [SHOP] : ['elsewhere']
        },
      },
      subjects: { deleted: (gone: string) => void ended.push(gone) } as SubjectLedger,
      log: { warn: () => undefined } as never,
    })
    reconcile = createReconcile(orphans, { clock, random: () => 0.5, log: { warn: () => undefined } as never })
  })

  async function run(): Promise<Requeue> {
    let end = await reconcile({ namespace: SHOP, name: uid }, 'urgent')
    for (let turns = 0; end.at !== undefined && end.requeueAfterMs === undefined && turns < 5; turns += 1)
      end = await reconcile({ namespace: SHOP, name: uid }, end.at)
    await settle()
    if (!isWritten) return end
    isWritten = false // the finished write enqueues the orphan
    return await run()
  }

  async function onGateways(): Promise<string | undefined> {
    const texts = await store.memory.records(projection.epoch, 'key', [uid])
    return texts.has(uid) ? decodeKeyRecord(texts.get(uid) ?? '').state : undefined
  }

  async function entry(): Promise<KeyringEntry | undefined> {
    await keyring.flush()
    return keyring.get(uid)
  }

  /** Does the same as `kubectl patch` of the finalizers on an object that is being deleted. */
  async function removeByForce(): Promise<void> {
    await objects.remove(apiKeys, BOT)
    await objects.patch(apiKeys, BOT, [{ op: 'remove', path: '/metadata/finalizers' }])
  }

  test('is refused before any live read, and ended when a live read shows that the ApiKey is deleted', async () => {
    await removeByForce()
    fail = new KubeError('Unreachable', 0, 'no answer')
    expect(await run()).toMatchObject({ requeueAfterMs: 1_000 })
    expect(await onGateways()).toBe('Revoked')
    fail = undefined
    await clock.advance(1_000)
    await run()
    expect(await entry()).toMatchObject({ state: 'Revoked', deletedMs: clock.now(), verifiers: [{ state: 'Revoked' }] })
    expect(await onGateways()).toBeUndefined()
    expect(ended).toEqual([uid])
    expect(await run()).toEqual({})
    expect(ended).toHaveLength(1)
  })

  test('counts as deleted if another ApiKey has its name', async () => {
    await removeByForce()
    await objects.create(apiKeys, apiKey('bot'))
    await run()
    expect(await entry()).toMatchObject({ state: 'Revoked' })
  })

  test('works again if a live read finds the ApiKey and only the cache lacks it', async () => {
    await run()
    expect(await onGateways()).toBe('Active')
    expect(await entry()).toMatchObject({ state: 'Active', deletedMs: null })
    expect(ended).toEqual([])
  })

  test('stays refused while a live read finds the ApiKey being deleted', async () => {
    await objects.remove(apiKeys, BOT)
    await run()
    expect(await onGateways()).toBe('Revoked')
    expect(ended).toEqual([])
  })

  test('is read live every minute and works in between: the ApiKey may be deleted while the cache is outdated', async () => {
    expect(await run()).toMatchObject({ requeueAfterMs: 60_000 })
    expect(reads).toBe(1)
    await clock.advance(60_000)
    store.written.length = 0
    await run()
    expect(reads).toBe(2)
    expect(store.written).toEqual([])
    await removeByForce()
    await clock.advance(60_000)
    await run()
    expect(await entry()).toMatchObject({ state: 'Revoked' })
    expect(await onGateways()).toBeUndefined()
  })

  test('is left to its ApiKey when the cache has the ApiKey', async () => {
    cached = await objects.get(apiKeys, BOT)
    expect(await run()).toEqual({})
    expect(store.written).toEqual([])
    expect(reads).toBe(0)
  })

  test('of a namespace that is no longer watched is ended at once, without a live read, which may be forbidden', async () => {
    isWatched = false
    fail = new Error('forbidden')
    await run()
    expect(await entry()).toMatchObject({ state: 'Revoked' })
    expect(await onGateways()).toBeUndefined()
  })

  test('of a namespace without a first list stays unchanged: a missing Role says nothing about a key', async () => {
    isSynced = false
    expect(await run()).toMatchObject({ requeueAfterMs: 60_000 })
    expect(await entry()).toMatchObject({ state: 'Active' })
    expect(store.written).toEqual([])
    expect(reads).toBe(0)
  })

  test('is ended in the keyring during an outage of Redis, and on the gateways afterwards', async () => {
    await removeByForce()
    store.stop()
    await run()
    expect(await entry()).toMatchObject({ state: 'Revoked' })
    store.resume()
    await clock.advance(2_000)
    expect(await onGateways()).toBeUndefined()
  })

  test('of a properly deleted ApiKey is no orphan', async () => {
    keyring.commit({ ...((await entry()) as KeyringEntry), state: 'Revoked', deletedMs: 5 }, 'urgent')
    await keyring.flush()
    expect(await run()).toEqual({})
    expect(ended).toEqual([])
  })
})
