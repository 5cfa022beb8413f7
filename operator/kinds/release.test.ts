import { beforeEach, expect, test } from 'vitest'
import { ObjectStore } from '../../standalone/object-store.ts'
import { apiKey, SHOP } from '../../test/support/objects.ts'
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { apiKeyKind } from '#api/apikey-kind.ts'
import { apiKeys } from '#api/resources.ts'
import { KubeError, type KubePort } from '#kube/port.ts'
import { releaseAll } from './release.ts'

let objects: ObjectStore

beforeEach(() => {
  objects = new ObjectStore()
})

const create = (name: string, finalizers: readonly string[] = [FINALIZER]): Promise<ApiKey> =>
  objects.create(apiKeys, apiKey(name, {}, { finalizers }))
const finalizers = async (name: string): Promise<readonly string[]> =>
  (await objects.get(apiKeys, { namespace: SHOP, name }))?.metadata.finalizers ?? []

/** Patches go through `patch`; reads to the store. */
function portWith(patch: KubePort['patch']): { kube: KubePort } {
  return { kube: { patch, get: (...args) => objects.get(...args) } as KubePort }
}

test('every ApiKey loses the finalizer of the operator, and keeps other finalizers', async () => {
  const keys = [await create('a'), await create('b', ['first/one', FINALIZER, 'last/one']), await create('c', ['somebody/else'])]
  expect(await releaseAll(apiKeyKind, keys, { kube: objects })).toEqual({ released: 2, failed: 0 })
  expect([await finalizers('a'), await finalizers('b'), await finalizers('c')]).toEqual([[], ['first/one', 'last/one'], ['somebody/else']])
})

test('an ApiKey that is being deleted is then removed', async () => {
  const key = await create('a')
  await objects.remove(apiKeys, { namespace: SHOP, name: 'a' })
  expect(await releaseAll(apiKeyKind, [key], { kube: objects })).toEqual({ released: 1, failed: 0 })
  expect(await objects.get(apiKeys, { namespace: SHOP, name: 'a' })).toBeUndefined()
})

test('an ApiKey that has changed, for example by another finalizer in front, is read again', async () => {
  const key = await create('a')
  await objects.patch(apiKeys, { namespace: SHOP, name: 'a' }, [{ op: 'add', path: '/metadata/finalizers/0', value: 'first/one' }])
  expect(await releaseAll(apiKeyKind, [key], { kube: objects })).toEqual({ released: 1, failed: 0 })
  expect(await finalizers('a')).toEqual(['first/one'])
})

test('an ApiKey that is absent or without the finalizer counts as released', async () => {
  const [deleted, free] = [await create('deleted'), await create('free')]
  for (const name of ['deleted', 'free'])
    await objects.patch(apiKeys, { namespace: SHOP, name }, [{ op: 'remove', path: '/metadata/finalizers' }])
  await objects.remove(apiKeys, { namespace: SHOP, name: 'deleted' })
  expect(await releaseAll(apiKeyKind, [deleted, free], { kube: objects })).toEqual({ released: 2, failed: 0 })
})

test('an ApiKey that cannot be released does not stop the others', async () => {
  const keys = await Promise.all(Array.from({ length: 100 }, (_, index) => create(`key-${index}`)))
  const deps = portWith((resource, ref, operations) =>
    Number(ref.name.slice(4)) < 40 ? Promise.reject(new KubeError('Forbidden', 403, 'no')) : objects.patch(resource, ref, operations),
  )
  expect(await releaseAll(apiKeyKind, keys, deps)).toEqual({ released: 60, failed: 40 })
})

test('an ApiKey that changes all the time counts as failed after five tries', async () => {
  let tries = 0
  const deps = portWith(() => {
    tries += 1
    return Promise.reject(new KubeError('Conflict', 409, 'changed'))
  })
  expect(await releaseAll(apiKeyKind, [await create('a')], deps)).toEqual({ released: 0, failed: 1 })
  expect(tries).toBe(5)
})
