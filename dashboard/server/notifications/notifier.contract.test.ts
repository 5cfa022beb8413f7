/** Mails about money and keys, over a database file and the object store: over restarts, replicas, crashes and lost databases. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Account } from '#api/account.ts'
import type { Condition } from '#api/metadata.ts'
import { accounts, apiKeys, credits, plans } from '#api/resources.ts'
import type { Credit } from '#api/credit.ts'
import { apiVersionOf } from '#kube/port.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MortalProcess } from '../../../test/support/crashing-database.ts'
import { DashboardWorld, type FormBrowser, PASSWORD, tokenOf } from '../../../test/support/dashboard-world.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { ObjectStore } from '../../../standalone/object-store.ts'
import type { MailName } from '../mail/templates/mails.ts'

const MAYA = 'maya@fernwood.example'
const DAY_MS = 86_400_000
const ABOUT_PEOPLE: ReadonlySet<string> = new Set<MailName>(['verify', 'known-address', 'account-deleted'])

let folder: string
let world: DashboardWorld
let maya: FormBrowser

beforeEach(async () => {
  folder = temporaryFolder()
  world = await DashboardWorld.open({ folder })
  await world.store.create(plans, {
    ...{ apiVersion: apiVersionOf(plans), kind: plans.kind, metadata: { name: 'default' } },
    spec: { models: ['*'], maxKeys: 200 },
  })
  maya = await world.person(MAYA)
})
afterEach(async () => await world[Symbol.asyncDispose]())

const condition = (type: string, at: number): Condition => ({
  ...{ type, status: 'True', reason: type, message: '' },
  lastTransitionTime: `${new Date(at).toISOString().slice(0, 19)}Z`,
})

async function accountOf(email = MAYA): Promise<Account> {
  const account = (await world.store.list(accounts, '')).find(({ spec }) => spec.owner?.email === email)
  if (account === undefined) throw new Error(`${email} has no Account`)
  return account
}

/** A Credit as the operator leaves it: booked. */
async function bookIn(store: ObjectStore, name: string, amount: string, account: string): Promise<void> {
  const spec: Credit['spec'] = { accountRef: { name: account }, amount, type: 'TopUp', reference: `pi_${name}` }
  const credit = await store.create(credits, { apiVersion: apiVersionOf(credits), kind: credits.kind, metadata: { name }, spec })
  await store.applyStatus(credits, { ...credit, status: { conditions: [condition('Booked', world.clock.now())] } })
}

async function book(name: string, amount: string, email = MAYA): Promise<void> {
  await bookIn(world.store, name, amount, (await accountOf(email)).metadata.name)
}

/** The balance as the operator shows it. */
async function show(amount: string): Promise<void> {
  const balance = { amount, currency: 'EUR', asOf: '2026-11-24T12:00:00Z' }
  const conditions = Number(amount) < 0.01 ? [condition('BalanceExhausted', 0)] : []
  await world.store.applyStatus(accounts, { ...(await accountOf()), status: { balance, conditions } })
}

/** Mails about accounts, after every replica and the outbox have done all that there is to do. */
async function mailed(): Promise<readonly string[]> {
  await settled()
  return world.mails.mails.filter(({ name }) => !ABOUT_PEOPLE.has(name)).map(({ to, name }) => `${to.split('@')[0]} ${name}`)
}

async function settled(): Promise<void> {
  await world.dashboard.notify()
  await expect.poll(() => world.dashboard.identity.outboxRows.waiting()).toBe(0)
}

async function restart(): Promise<void> {
  await world.stop()
  await world.start()
}

let attempts = 0
async function makeKey(name: string): Promise<{ readonly id: string; readonly value: string }> {
  const made = await maya.call('POST', '/api/keys', { name, models: ['*'], attempt: `attempt-of-this-test-${(attempts += 1)}` })
  const { key, value } = made.json()
  return { id: key.id, value }
}

describe('people of an account', () => {
  test('are told of a Credit, once, also after a restart', async () => {
    await settled()
    await book('a', '25.00')
    expect(await mailed()).toEqual(['maya credit-added'])
    const { text } = await world.mails.wait(MAYA, 'credit-added')
    expect(text).toMatch(/25\.00 EUR was added[^]*pi_a/)
    expect(text.match(/https?:\/\/\S+/g)).toEqual([`${world.origin}/billing`])
    await restart()
    await book('b', '-5.00')
    expect(await mailed()).toEqual(['maya credit-added', 'maya credit-reversed'])
  })

  test('are told by the background work too, some seconds later', async () => {
    await settled()
    await book('a', '25.00')
    world.clock.move(5_000)
    await world.mails.wait(MAYA, 'credit-added')
  })

  test('are told of a low and of an empty balance once for each crossing', async () => {
    for (const amount of ['0.00', '20.00', '4.99', '4.50', '0.00', '-1.00']) {
      await show(amount)
      await settled()
    }
    expect(await mailed()).toEqual(['maya balance-low', 'maya balance-empty'])
    await restart()
    for (const amount of ['20.00', '4.00']) {
      await show(amount)
      await settled()
    }
    expect(await mailed()).toEqual(['maya balance-low', 'maya balance-empty', 'maya balance-low'])
  })

  test('are told of a new key without its value, of its end a week before, and of its revocation', async () => {
    const { id, value } = await makeKey('docs-search')
    expect(await mailed()).toEqual(['maya key-created'])
    const { text } = await world.mails.wait(MAYA, 'key-created')
    expect(text).toContain(`docs-search (${value.slice(0, 8)}…)`)
    expect(text).not.toContain(value.slice(0, 9))
    expect(text).not.toContain(value.slice(-4))

    const expiresAt = `${new Date(world.clock.now() + 20 * DAY_MS).toISOString().slice(0, 19)}Z`
    expect((await maya.call('PATCH', `/api/keys/${id}`, { name: 'docs-search', models: ['*'], expiresAt })).status).toBe(200)
    expect(await mailed()).toHaveLength(1)
    world.clock.move(13 * DAY_MS + 60_000)
    expect(await mailed()).toEqual(['maya key-created', 'maya key-expires'])
    await restart()
    world.clock.move(DAY_MS)
    expect(await mailed()).toHaveLength(2)

    const key = await world.store.get(apiKeys, { namespace: 'headgate-accounts', name: id })
    await world.store.patch(apiKeys, { namespace: 'headgate-accounts', name: id }, [
      { op: 'replace', path: '/spec', value: { ...key?.spec, state: 'Revoked' } },
    ])
    expect(await mailed()).toEqual(['maya key-created', 'maya key-expires', 'maya key-revoked'])
    await restart()
    expect(await mailed()).toHaveLength(3)
  })

  test('are those of the account alone, with the address of now, and nobody after they have gone', async () => {
    await world.person('sam@fernwood.example')
    await settled()
    await book('a', '25.00', 'sam@fernwood.example')
    expect(await mailed()).toEqual(['sam credit-added'])
    const { account } = (await maya.get('/api/me')).json()
    await maya.call('POST', '/api/account/delete', { email: MAYA })
    await bookIn(world.store, 'late', '5.00', account.name)
    expect(await mailed()).toEqual(['sam credit-added'])
  })
})

describe('history', () => {
  test('is not mailed by a new database: neither old Credits, nor keys, nor an empty balance', async () => {
    const { id } = await makeKey('docs-search')
    await maya.call('POST', `/api/keys/${id}/revoke`, { name: 'docs-search' })
    await makeKey('checkout')
    await book('a', '25.00')
    await show('0.00')
    await world.stop()
    const before = world.mails.mails.length
    rmSync(join(folder, 'dashboard.db'))
    world.clock.move(DAY_MS / 24)
    await world.start()
    maya = world.browser()
    await maya.post('/sign-up', { email: MAYA, password: PASSWORD })
    const { link } = await world.mails.wait(MAYA, 'verify', 2)
    await maya.post('/verify', { token: tokenOf(link) })
    expect(await world.store.list(accounts, '')).toHaveLength(1) // the former one, found by the address
    await settled()
    expect(world.mails.mails.slice(before).map(({ name }) => name)).toEqual(['verify'])
    await book('b', '5.00')
    await show('7.00')
    await settled()
    await show('0.00')
    await settled()
    expect(world.mails.mails.slice(before).map(({ name }) => name)).toEqual(['verify', 'credit-added', 'balance-empty'])
  })

  test('is not mailed by an older database, after a time', async () => {
    await settled()
    await world.stop()
    await book('a', '25.00')
    world.clock.move(2 * DAY_MS + 2_000)
    await world.start()
    expect(await mailed()).toEqual([])
  })

  test('of less than two days is news: the dashboard was away, and loses no mail', async () => {
    await settled()
    await world.stop()
    await book('a', '25.00')
    world.clock.move(DAY_MS)
    await world.start()
    expect(await mailed()).toEqual(['maya credit-added'])
  })
})

describe('many', () => {
  test('5,000 Credits at once are one mail with their exact sum', async () => {
    await settled()
    for (let nth = 0; nth < 5_000; nth += 1) await book(`c${nth}`, '0.01')
    expect(await mailed()).toEqual(['maya credits'])
    expect((await world.mails.wait(MAYA, 'credits')).text).toContain('5000 times: 50.00 EUR was added')
    await restart()
    expect(await mailed()).toHaveLength(1)
  })

  test('Credits one after the other are 20 mails a day, of which the last says so, and one mail of the rest on the next day', async () => {
    await settled()
    for (let nth = 0; nth < 25; nth += 1) {
      await book(`c${nth}`, '1.00')
      await settled()
    }
    const sent = world.mails.mails.filter(({ name }) => name === 'credit-added')
    expect(sent).toHaveLength(20)
    expect(sent.map(({ text }) => /last mail of this kind today/.test(text))).toEqual([...Array<boolean>(19).fill(false), true])
    world.clock.move(DAY_MS)
    expect((await mailed()).slice(20)).toEqual(['maya credits'])
    expect((await world.mails.wait(MAYA, 'credits')).text).toContain('5 times: 5.00 EUR was added')
  })
})

describe('several replicas and crashes', () => {
  test('of two replicas that have read the same state the first one stores its mails, and the other one nothing', async () => {
    await settled()
    const { told, outboxRows } = world.dashboard.identity
    const { name } = (await accountOf()).metadata
    const before = await told.state(name)
    if (before === undefined) throw new Error('nothing is stored')
    const change = { account: name, revision: before.revision, state: before.state, told: ['credit x'], forgotten: [], mails: [] }
    expect(await told.store(change)).toBe(true)
    const later = { ...change, told: ['credit y'], forgotten: ['credit x'], mails: ['a mail'] }
    expect([await told.store(later), await told.store({ ...later, revision: undefined })]).toEqual([false, false])
    expect([...(await told.among(name, ['credit x', 'credit y']))]).toEqual(['credit x'])
    expect(await outboxRows.waiting()).toBe(0)
    expect(await told.store({ ...later, revision: before.revision + 1, mails: [] })).toBe(true)
    expect([...(await told.among(name, ['credit x', 'credit y']))]).toEqual(['credit y'])
  })

  test('two replicas that look at the same moment send each mail once', async () => {
    await settled()
    await world.stop()
    await world.startReplicas(2)
    const ABOUT_ACCOUNT = ['credit-added', 'key-created']
    const mails = (): readonly string[] => world.mails.mails.map(({ name }) => name).filter((name) => ABOUT_ACCOUNT.includes(name))
    for (let round = 1; round <= 5; round += 1) {
      await book(`c${round}`, '1.00')
      await makeKey(`key ${round}`)
      await expect
        .poll(async () => {
          await world.notifyAll() // one may find the file locked by the other, and looks again
          return mails().length
        })
        .toBe(2 * round)
    }
    await world.notifyAll()
    await expect.poll(() => world.dashboard.identity.outboxRows.waiting()).toBe(0)
    expect(mails().toSorted()).toEqual(ABOUT_ACCOUNT.flatMap((name) => Array<string>(5).fill(name)))
  })

  test.each(['before', 'after'] as const)(
    'a process that dies %s any write of a mail neither loses nor stores a mail twice',
    async (when) => {
      const store = new ObjectStore()
      for (let write = 1; ; write += 1) {
        const own = temporaryFolder()
        await using one = await DashboardWorld.open({ folder: own, store })
        const email = `sam-${when}-${write}@fernwood.example`
        await one.person(email)
        await one.dashboard.notify()
        await one.stop()
        const process = new MortalProcess()
        await one.start({ database: { file: join(own, 'dashboard.db'), open: process.open } })
        await one.dashboard.notify()
        const { metadata } = (await store.list(accounts, '')).find(({ spec }) => spec.owner?.email === email) ?? {}
        await bookIn(store, `c-${when}-${write}`, '5.00', metadata?.name ?? '')
        process.dieAtNext(write, when)
        const whole = await one.dashboard.notify().then(
          () => !process.isDead,
          () => false,
        )
        await one.stop().catch(() => undefined)
        await one.start({ database: { file: join(own, 'dashboard.db') } })
        await one.dashboard.notify()
        one.clock.move(150_000)
        await expect.poll(() => one.mails.of(email, 'credit-added').length, { message: `write ${write}` }).toBeGreaterThan(0)
        expect(one.mails.of(email, 'credit-added').length, `write ${write}`).toBeLessThanOrEqual(whole ? 1 : 2)
        if (whole) return expect(write).toBeGreaterThan(4)
        expect(write).toBeLessThan(40)
      }
    },
  )
})
