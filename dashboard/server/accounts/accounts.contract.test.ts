/** Which Account a person gets, over a real database and the object store. */
import { join } from 'node:path'
import { accounts } from '#api/resources.ts'
import { type Informer, KubeError } from '#kube/port.ts'
import type { Account } from '#api/account.ts'
import { describe, expect, test } from 'vitest'
import { MortalProcess } from '../../../test/support/crashing-database.ts'
import { DashboardWorld, type DashboardWorldOptions, PASSWORD, tokenOf } from '../../../test/support/dashboard-world.ts'
import { FakeKubePort } from '../../../test/support/fake-kube-port.ts'
import { account } from '../../../test/support/objects.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { ObjectStore } from '../../../standalone/object-store.ts'
import { accountNameOf } from './accounts.ts'

const MAYA = 'maya@fernwood.example'
const OWNED = { owner: { email: MAYA } } as const
const ref = (name: string) => ({ namespace: '', name })

async function opened(options: Partial<DashboardWorldOptions> = {}): Promise<DashboardWorld> {
  return await DashboardWorld.open({ folder: temporaryFolder(), ...options })
}

async function userId(world: DashboardWorld, email = MAYA): Promise<string> {
  const found = await (await world.dashboard.identity.auth.$context).internalAdapter.findUserByEmail(email)
  return found?.user.id ?? ''
}

async function names(world: DashboardWorld): Promise<string[]> {
  return (await world.store.list(accounts, '')).map(({ metadata }) => metadata.name)
}

describe('an Account that exists already', () => {
  test('is given to the person with its address, whatever the case of the letters', async () => {
    await using world = await opened()
    await world.store.create(accounts, account('acme', { owner: { email: 'Maya@Fernwood.Example' } }))
    const browser = await world.person(MAYA)
    expect((await browser.get('/api/me')).json().account).toMatchObject({ state: 'Active', name: 'acme', plan: 'pro' })
    expect(await names(world)).toEqual(['acme'])
    expect(world.lines.some((line) => line.includes('"audit":"account.adopt"'))).toBe(true)
  })

  test.each([
    ['there are two with this address', [account('acme', OWNED), account('other', OWNED)]],
    ['the one is Suspended', [account('acme', { ...OWNED, state: 'Suspended' })]],
    ['the one is of another address', [account('acme', { owner: { email: 'maya@elsewhere.example' } })]],
    ['the one has no owner', [account('acme')]],
  ])('is given to nobody if %s: the person gets a new one', async (_, existing) => {
    await using world = await opened()
    for (const one of existing) await world.store.create(accounts, one)
    const browser = await world.person(MAYA)
    const name = accountNameOf(await userId(world))
    expect((await browser.get('/api/me')).json().account).toMatchObject({ state: 'Active', name, plan: 'default' })
    expect(await names(world)).toEqual([...existing.map(({ metadata }) => metadata.name), name])
  })

  test('is given to nobody if it has a member', async () => {
    await using world = await opened()
    const first = await world.person(MAYA)
    const { name } = (await first.get('/api/me')).json().account
    const stored = (await world.store.get(accounts, ref(name)))!
    await world.store.patch(accounts, ref(name), [
      { op: 'add', path: '/spec/owner', value: { ...stored.spec.owner, email: 'sam@fernwood.example' } },
    ])
    const second = await world.person('sam@fernwood.example')
    expect((await second.get('/api/me')).json().account.name).toBe(accountNameOf(await userId(world, 'sam@fernwood.example')))
  })

  test('is the answer to a second creation, as after a lost answer or beside another replica', async () => {
    const port = new FakeKubePort()
    await using world = await opened({ store: port.store, kube: () => port })
    port.after = ({ verb }) => {
      if (verb === 'create') throw new KubeError('Unreachable', 0, 'the answer was lost')
    }
    const browser = await world.person(MAYA)
    port.after = () => undefined
    // the cache has the Account, and the membership is not confirmed yet
    expect((await browser.get('/api/me')).json().account.state).toBe('Active')
    const id = await userId(world)
    await world.store.remove(accounts, ref(accountNameOf(id)))
    await world.dashboard.identity.members.remove(id)
    port.before = async ({ verb }) => {
      if (verb === 'create') await world.store.create(accounts, account(accountNameOf(id), OWNED)) // another replica is faster
    }
    expect((await browser.get('/api/me')).json().account).toMatchObject({ state: 'Active', name: accountNameOf(id) })
    expect(await names(world)).toEqual([accountNameOf(id)])
  })

  test('keeps the owner that its administrator wrote, unless the administrator has marked the Account', async () => {
    await using world = await opened()
    const marked = account('marked', { owner: { email: 'sam@fernwood.example' } })
    await world.store.create(accounts, account('acme', OWNED))
    await world.store.create(accounts, {
      ...marked,
      metadata: { ...marked.metadata, annotations: { 'headgate.dev/owner-follows-person': 'true' } },
    })
    for (const [name, email, written] of [
      ['acme', MAYA, MAYA],
      ['marked', 'sam@fernwood.example', 'new-sam@fernwood.example'],
    ] as const) {
      const browser = await world.person(email)
      expect((await browser.get('/api/me')).json().account.name).toBe(name)
      await browser.call('POST', '/api/email', { email: `new-${email}` })
      const { link } = await world.mails.wait(`new-${email}`, 'new-address')
      expect((await browser.post('/verify', { token: tokenOf(link) })).location).toBe('/settings')
      expect((await browser.get('/api/me')).json()).toMatchObject({ person: { email: `new-${email}` }, account: { name } })
      expect((await world.store.get(accounts, ref(name)))?.spec.owner?.email).toBe(written)
      expect(await world.dashboard.identity.members.of(await userId(world, `new-${email}`))).toMatchObject({ isEmailDue: false })
    }
  })

  test('comes back to its person after the database was lost, and the money with it', async () => {
    const store = new ObjectStore()
    await using before = await opened({ store })
    const { name } = (await (await before.person(MAYA)).get('/api/me')).json().account
    await before.stop()
    await using after = await opened({ store })
    expect((await (await after.person(MAYA)).get('/api/me')).json().account.name).toBe(name)
    expect(await names(after)).toEqual([name])
  })
})

describe('an Account that the administrator deletes', () => {
  test.each(['made by the dashboard', 'adopted'])('stays closed: neither a visit nor the sweep makes one again (%s)', async (origin) => {
    await using world = await opened()
    if (origin === 'adopted') await world.store.create(accounts, account('acme', OWNED))
    const browser = await world.person(MAYA)
    const [name = ''] = await names(world)
    await world.store.remove(accounts, ref(name))
    expect((await browser.get('/api/me')).json().account).toEqual({ state: 'Closed' })
    await world.dashboard.sweep()
    await browser.post('/sign-in', { email: MAYA, password: PASSWORD })
    expect(await names(world)).toEqual([])
  })

  test('is not made again under its own name if it was adopted just before a crash', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'dashboard.db')
    const process = new MortalProcess({ write: /insert into "headgateMember"/, when: 'after' })
    await using world = await opened({ folder, database: { file, open: process.open } })
    await world.store.create(accounts, account('acme', OWNED))
    await world.person(MAYA)
    expect(process.isDead).toBe(true)
    await world.stop()
    await world.store.remove(accounts, ref('acme'))
    await world.start({ database: { file } })
    const browser = world.browser()
    await browser.post('/sign-in', { email: MAYA, password: PASSWORD })
    expect((await browser.get('/api/me')).json().account).toEqual({ state: 'Closed' })
    expect(await names(world)).toEqual([])
  })
})

describe('the sweep', () => {
  test('creates the Accounts of verified people who have none, and of no others', async () => {
    const port = new FakeKubePort()
    await using world = await opened({ store: port.store, kube: () => port })
    port.before = unreachable
    await world.person(MAYA)
    await world.browser().post('/sign-up', { email: 'unverified@fernwood.example', password: PASSWORD })
    await world.mails.wait('unverified@fernwood.example', 'verify')
    port.before = () => undefined
    expect(await names(world)).toEqual([])
    await world.dashboard.sweep()
    expect(await names(world)).toEqual([accountNameOf(await userId(world))])
  })

  test('asks an API server that does not answer once, and not once for each person', async () => {
    const port = new FakeKubePort()
    await using world = await opened({ store: port.store, kube: () => port })
    port.before = unreachable
    for (const name of ['a', 'b', 'c']) await world.person(`${name}@fernwood.example`)
    port.calls.length = 0
    await world.dashboard.sweep()
    expect(port.calls.length).toBe(1)
    port.before = () => undefined
    await world.dashboard.sweep()
    expect((await names(world)).length).toBe(3)
  })
})

describe('while the API server does not answer', () => {
  test('people sign up, verify and sign in; the page says what is missing; and the Account comes later', async () => {
    const port = new FakeKubePort()
    await using world = await opened({ store: port.store, kube: () => port })
    port.before = unreachable
    const browser = await world.person(MAYA)
    const me = (await browser.get('/api/me')).json()
    expect([me.person.email, me.account]).toEqual([MAYA, { state: 'Unknown' }])
    expect(Date.parse(me.readOnlySince)).toBeLessThanOrEqual(Date.now())
    await browser.call('POST', '/api/sign-out', {})
    expect((await browser.post('/sign-in', { email: MAYA, password: PASSWORD })).location).toBe('/')
    port.before = () => undefined
    const healed = (await browser.get('/api/me')).json()
    expect([healed.account.state, healed.readOnlySince]).toEqual(['Active', undefined])
  })

  test('no request waits for the first list of the Accounts, and none makes a second Account of a person who has one', async () => {
    const store = new ObjectStore()
    const unsynced = informerOf(store, { isSynced: false })
    await using world = await opened({ store, informer: () => unsynced.informer })
    await store.create(accounts, account('acme', OWNED))
    const browser = await world.person(MAYA)
    expect((await browser.get('/api/me')).json().account).toEqual({ state: 'Unknown' })
    unsynced.isSynced = true
    expect((await browser.get('/api/me')).json().account).toMatchObject({ state: 'Active', name: 'acme' })
  })

  test('the page shows the last known Account, and since when', async () => {
    const outage: { sinceMs: number | undefined } = { sinceMs: undefined }
    await using world = await opened({ outage })
    const browser = await world.person(MAYA)
    outage.sinceMs = Date.UTC(2026, 0, 1)
    const me = (await browser.get('/api/me')).json()
    expect([me.account.state, me.readOnlySince]).toEqual(['Active', '2026-01-01T00:00:00.000Z'])
  })

  test('a new address is stored, and the Account gets it by the sweep, without a sign-in', async () => {
    const port = new FakeKubePort()
    await using world = await opened({ store: port.store, kube: () => port })
    const browser = await world.person(MAYA)
    await browser.call('POST', '/api/email', { email: 'new@fernwood.example' })
    const { link } = await world.mails.wait('new@fernwood.example', 'new-address')
    port.before = unreachable
    expect((await browser.post('/verify', { token: tokenOf(link) })).location).toBe('/settings')
    expect((await browser.get('/api/me')).json().person.email).toBe('new@fernwood.example')
    port.before = () => undefined
    await world.dashboard.sweep()
    expect((await world.store.list(accounts, '')).map(({ spec }) => spec.owner?.email)).toEqual(['new@fernwood.example'])
  })

  test('a deletion is refused with a way on, and nothing of it is begun', async () => {
    const port = new FakeKubePort()
    await using world = await opened({ store: port.store, kube: () => port })
    const browser = await world.person(MAYA)
    port.before = unreachable
    const refused = await browser.call('POST', '/api/account/delete', { email: MAYA })
    expect([refused.status, refused.headers.get('retry-after'), refused.json().error.code]).toEqual([503, '10', 'unavailable'])
    expect(refused.json().error.message).toBe('The cluster does not answer. Your keys go on working. Try again in a moment.')
    expect(refused.json().error.requestID).toBe(refused.headers.get('x-request-id'))
    port.before = () => undefined
    await world.dashboard.sweep()
    expect((await browser.get('/api/me')).json().account.state).toBe('Active')
    expect((await browser.call('POST', '/api/account/delete', { email: MAYA })).status).toBe(204)
  })

  test('a deletion that was begun ends by itself when the API server answers again, and makes no Account', async () => {
    const port = new FakeKubePort()
    await using world = await opened({ store: port.store, kube: () => port })
    const browser = await world.person(MAYA)
    port.before = ({ verb }) => {
      if (verb === 'patch') unreachable()
    }
    expect((await browser.call('POST', '/api/account/delete', { email: MAYA })).status).toBe(503)
    port.before = () => undefined
    await world.dashboard.sweep()
    expect((await browser.get('/api/me')).status).toBe(401)
    expect((await world.store.list(accounts, '')).map(({ spec }) => spec.state)).toEqual(['Suspended'])
    await world.mails.wait(MAYA, 'account-deleted')
  })
})

test('a person who is gone, or has not verified the address, gets no membership and no Account', async () => {
  await using world = await opened()
  await world.browser().post('/sign-up', { email: MAYA, password: PASSWORD })
  await world.mails.wait(MAYA, 'verify')
  const { members } = world.dashboard.identity
  for (const id of [await userId(world), 'nobody']) {
    expect(await members.add(id, accountNameOf(id), false)).toBeUndefined()
    expect(await members.of(id)).toBeUndefined()
  }
  await world.dashboard.sweep()
  expect(await names(world)).toEqual([])
})

test('a person who is being deleted gets no Account any more', async () => {
  const port = new FakeKubePort()
  await using world = await opened({ store: port.store, kube: () => port })
  port.before = unreachable
  const browser = await world.person(MAYA)
  await browser.get('/api/me')
  await world.dashboard.identity.members.beginDeletion(await userId(world))
  port.before = () => undefined
  expect((await browser.get('/api/me')).json().account).toEqual({ state: 'Closed' })
  expect(await names(world)).toEqual([])
})

function unreachable(): never {
  throw new KubeError('Unreachable', 0, 'no answer')
}

/** The cache of a process whose first list has not come. */
function informerOf(store: ObjectStore, state: { isSynced: boolean }): { isSynced: boolean; readonly informer: Informer<Account> } {
  const real = store.informer<Account>(accounts)
  const informer = new Proxy(real, {
    get: (target, name) => {
      if (name === 'isSynced') return () => state.isSynced
      if (name === 'synced') return state.isSynced ? Promise.resolve() : new Promise<never>(() => undefined)
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return {
    informer,
    get isSynced() {
      return state.isSynced
    },
    set isSynced(isSynced) {
      state.isSynced = isSynced
    },
  }
}
