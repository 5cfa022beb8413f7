import { afterEach, beforeEach, expect, test } from 'vitest'
import { apiKeys, plans, servedModels } from '#api/resources.ts'
import { apiVersionOf, type Informer, type KubeObject } from '#kube/port.ts'
import { DashboardWorld, type FormBrowser } from '../../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { ObjectStore } from '../../../standalone/object-store.ts'

const FORM = { name: 'docs-search', models: ['*'], attempt: 'an-attempt-of-this-dialog' }

/** Kinds that have not been listed yet. */
const unlisted = new Set<string>()
let world: DashboardWorld
let maya: FormBrowser

/** The cache of a kind, which has nothing before its first list. */
function cacheOf<T extends KubeObject>(kind: string, full: Informer<T>): Informer<T> {
  const isListed = (): boolean => !unlisted.has(kind)
  return {
    synced: full.synced,
    isSynced: isListed,
    get: (ref) => (isListed() ? full.get(ref) : undefined),
    list: () => (isListed() ? full.list() : []),
    subscribe: (listener) => full.subscribe(listener),
    addIndex: (name, valuesOf) => full.addIndex(name, valuesOf),
    byIndex: (name, value) => (isListed() ? full.byIndex(name, value) : []),
  }
}

beforeEach(async () => {
  const store = new ObjectStore()
  await store.create(plans, {
    apiVersion: apiVersionOf(plans),
    kind: plans.kind,
    metadata: { name: 'default' },
    spec: { models: ['*'], maxKeys: 3 },
  })
  world = await DashboardWorld.open({
    folder: temporaryFolder(),
    store,
    caches: () => ({
      apiKeys: cacheOf(apiKeys.kind, store.informer(apiKeys)),
      plans: cacheOf(plans.kind, store.informer(plans)),
      models: cacheOf(servedModels.kind, store.informer(servedModels)),
    }),
  })
  maya = await world.person('maya@fernwood.example')
  await maya.call('POST', '/api/keys', FORM)
})
afterEach(async () => {
  unlisted.clear()
  await world[Symbol.asyncDispose]()
})

test.each([
  [apiKeys.kind, '/api/keys'],
  [plans.kind, '/api/keys'],
  [plans.kind, '/api/plan'],
  [servedModels.kind, '/api/plan'],
])('a dashboard that has just started, without the list of its %ss, answers 503 on %s and says nothing false', async (kind, path) => {
  unlisted.add(kind)
  expect((await maya.get(path)).status).toBe(503)
  unlisted.clear()
  expect((await maya.get(path)).status).toBe(200)
  expect((await maya.get('/api/keys')).json().keys).toHaveLength(1)
})

test.each([apiKeys.kind, plans.kind])('without the list of its %ss a dashboard makes no key, and none beyond the plan', async (kind) => {
  unlisted.add(kind)
  expect((await maya.call('POST', '/api/keys', { ...FORM, attempt: 'another-attempt-of-the-dialog' })).status).toBe(503)
  expect(await world.store.list(apiKeys, '')).toHaveLength(1)
})
