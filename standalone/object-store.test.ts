import { describe, expect, it } from 'vitest'
import type { ApiKey } from '#api/apikey.ts'
import { isKubeError, type KubeObject, uidOf } from '#kube/port.ts'
import { apiKeys } from '#api/resources.ts'
import { secrets, type Secret } from '#kube/resources.ts'
import { apiKey } from '../test/support/objects.ts'
import { ObjectStore, type StoreChange } from './object-store.ts'

const NOW = Date.UTC(2026, 0, 1, 12, 0, 0, 789)

describe('ObjectStore', () => {
  const key = (name = 'bot'): ApiKey => apiKey(name)
  const owned = (name: string, owner: KubeObject, namespace = 'shop'): Secret => {
    const reference = { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.metadata.name, uid: uidOf(owner) }
    return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, ownerReferences: [reference] } }
  }

  it('stamps the injected time in whole seconds and the injected uid', async () => {
    const store = new ObjectStore({ now: () => NOW, newUid: () => 'u-1' })
    const { metadata } = await store.create(apiKeys, key())
    expect(metadata).toMatchObject({ uid: 'u-1', creationTimestamp: '2026-01-01T12:00:00Z', resourceVersion: '1' })
  })

  it('keeps its own copy, frozen: neither the caller nor a reader can change what is stored', async () => {
    const store = new ObjectStore()
    const models = ['a']
    const created = await store.create(apiKeys, { ...key(), spec: { state: 'Active', models } })
    models.push('b')
    expect((await store.get(apiKeys, { namespace: 'shop', name: 'bot' }))?.spec.models).toEqual(['a'])
    expect(Object.isFrozen(created.spec.models)).toBe(true)
  })

  it('an informer reports present objects first, then each addition, change and removal', async () => {
    const store = new ObjectStore()
    await store.create(apiKeys, key('old'))
    const informer = store.informer(apiKeys)
    const seen: Array<readonly [string | undefined, string | undefined]> = []
    informer.subscribe((before, after) => seen.push([before?.spec.state, after?.spec.state]))
    await informer.synced
    const created = await store.create(apiKeys, key())
    await store.update(apiKeys, { ...created, spec: { ...created.spec, state: 'Suspended' } })
    await store.remove(apiKeys, { namespace: 'shop', name: 'bot' })
    expect(seen).toEqual([
      [undefined, 'Active'],
      [undefined, 'Active'],
      ['Active', 'Suspended'],
      ['Suspended', undefined],
    ])
    expect([...informer.list()].map((object) => object.metadata.name)).toEqual(['old'])
    expect(informer.get({ namespace: 'shop', name: 'bot' })).toBeUndefined()
  })

  it('a write that cannot be persisted rejects and changes nothing', async () => {
    let full = false
    const store = new ObjectStore({
      persist: () => {
        if (full) throw new Error('no space left on device')
      },
    })
    const created = await store.create(apiKeys, key())
    full = true
    const refusal: unknown = await store
      .update(apiKeys, { ...created, spec: { ...created.spec, state: 'Revoked' } })
      .catch((error: unknown) => error)
    expect(isKubeError(refusal, 'Unreachable')).toBe(true)
    expect(await store.get(apiKeys, { namespace: 'shop', name: 'bot' })).toEqual(created)
  })

  it('continues with higher versions after a restore and collects children whose owner was deleted in between', async () => {
    const first = new ObjectStore()
    const owner = await first.create(apiKeys, key())
    const child = await first.create(secrets, owned('child', owner))
    const orphan = await first.create(secrets, owned('other', owner))
    const deleted = [{ apiVersion: owner.apiVersion, kind: 'ApiKey', name: 'deleted', uid: 'deleted' }]
    const changes: StoreChange[] = []
    const second = new ObjectStore({ persist: (change) => changes.push(change) })
    second.restore([
      { resource: apiKeys, object: owner },
      { resource: secrets, object: child },
      { resource: secrets, object: { ...orphan, metadata: { ...orphan.metadata, ownerReferences: deleted } } },
    ])
    expect(changes.map(({ ref, after }) => [ref.name, after])).toEqual([['other', undefined]])
    expect(await second.get(secrets, { namespace: 'shop', name: 'child' })).toEqual(child)
    const next = await second.create(apiKeys, key('next'))
    expect(Number(next.metadata.resourceVersion)).toBeGreaterThan(Number(orphan.metadata.resourceVersion))
  })

  it('garbage collection reaches grandchildren, and ignores an owner of another namespace', async () => {
    const store = new ObjectStore()
    const owner = await store.create(apiKeys, key())
    const child = await store.create(secrets, owned('child', owner))
    await store.create(secrets, owned('grandchild', child))
    await store.create(secrets, owned('abroad', owner, 'lab'))
    expect((await store.list(secrets, '')).map((object) => object.metadata.name)).toEqual(['child', 'grandchild'])
    await store.remove(apiKeys, { namespace: 'shop', name: 'bot' })
    expect(await store.list(secrets, '')).toEqual([])
  })
})

it('a dry run answers as a creation would, and stores nothing', async () => {
  const store = new ObjectStore()
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'shop' } }
  expect((await store.create(secrets, secret, { dryRun: true })).metadata.uid).toBeDefined()
  expect(await store.list(secrets, '')).toEqual([])
  await store.create(secrets, secret)
  await expect(store.create(secrets, secret, { dryRun: true })).rejects.toMatchObject({ code: 'AlreadyExists', namespace: 'shop' })
})
