import { afterEach, beforeEach, expect, test } from 'vitest'
import { accounts, apiKeys, credits, plans, servedModels } from '#api/resources.ts'
import { apiVersionOf, type Informer, type KubeObject } from '#kube/port.ts'
import { DashboardWorld, type FormBrowser } from '../../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { UsageOfAccounts } from '../../../test/support/usage-of-accounts.ts'
import { ObjectStore } from '../../../standalone/object-store.ts'
import { ROUTES } from '../routes.ts'

const FORM = { name: 'docs-search', models: ['*'], attempt: 'an-attempt-of-this-dialog' }

/** Kinds that have not been listed yet. */
const unlisted = new Set<string>()
let world: DashboardWorld
let maya: FormBrowser
let operator: UsageOfAccounts
/** The key of maya. */
let id: string

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
  operator = await UsageOfAccounts.start()
  world = await DashboardWorld.open({
    money: { url: operator.url },
    folder: temporaryFolder(),
    store,
    caches: () => ({
      accounts: cacheOf(accounts.kind, store.informer(accounts)),
      credits: cacheOf(credits.kind, store.informer(credits)),
      apiKeys: cacheOf(apiKeys.kind, store.informer(apiKeys)),
      plans: cacheOf(plans.kind, store.informer(plans)),
      models: cacheOf(servedModels.kind, store.informer(servedModels)),
    }),
  })
  maya = await world.person('maya@fernwood.example')
  id = (await maya.call('POST', '/api/keys', FORM)).json().key.id
  const account = (await maya.get('/api/me')).json().account.name
  operator.used.push({ account, key: `headgate-accounts/${id}`, model: 'llama', counts: { requests: 3 } })
})
afterEach(async () => {
  unlisted.clear()
  operator[Symbol.dispose]()
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

const KINDS = [accounts, apiKeys, plans, servedModels, credits].map(({ kind }) => kind)
const READS = ROUTES.filter(({ method, access }) => method === 'GET' && access !== 'anyone').map(({ path }) => path)

test.each(READS)('GET %s says the same as later, or 503 with Retry-After, whichever list a dashboard lacks', async (path) => {
  const read = async (): Promise<[status: number, text: string, retryAfter: string | null]> => {
    const { status, text, headers } = await maya.get(path.replace(':key', id))
    return [status, text.replaceAll(/"(?:exportedAt|lastUsedAt|asOf)":\s*"[^"]*"/g, ''), headers.get('retry-after')]
  }
  const later = await read()
  for (const kind of KINDS) {
    unlisted.add(kind)
    const now = await read()
    if (now[0] === 503) expect(now[2], kind).toBe('10')
    else expect(now, kind).toEqual(later)
    unlisted.clear()
  }
})

test.each([
  ['PATCH', '', { name: 'renamed', models: ['*'] }],
  ['POST', '/suspend', {}],
  ['POST', '/replace', { overlapSeconds: 0 }],
  ['POST', '/end-former', {}],
])('without the list of Plans %s /api/keys/<id>%s changes nothing that its answer cannot show', async (method, action, body) => {
  const before = await world.store.list(apiKeys, '')
  unlisted.add(plans.kind)
  expect((await maya.call(method, `/api/keys/${id}${action}`, body)).status).toBe(503)
  expect(await world.store.list(apiKeys, '')).toEqual(before)
  unlisted.clear()
  expect((await maya.call(method, `/api/keys/${id}${action}`, body)).status).toBe(200)
})

test('the own data of a person whose account cannot be read are no file that says there is none', async () => {
  unlisted.add(accounts.kind)
  const sam = await world.person('sam@fernwood.example') // whose account is made, or adopted, once the Accounts are known
  const { status, headers } = await sam.get('/api/export')
  expect([status, headers.get('retry-after')]).toEqual([503, '10'])
  expect((await sam.get('/api/me')).json()).toMatchObject({ account: { state: 'Unknown' } })
  unlisted.clear()
  expect((await sam.get('/api/export')).json().account).toMatchObject({ spec: { state: 'Active' } })
})
