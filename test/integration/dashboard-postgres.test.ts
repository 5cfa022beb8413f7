/** Several replicas of the dashboard on one Postgres: started at once, used in turn, and without their database for a while. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { accounts } from '#api/resources.ts'
import {
  allAtOnce,
  deletedBeforeTheVerification,
  replacedBeforeTheVerification,
  verifiedBeforeTheDeletion,
} from '../support/dashboard-races.ts'
import { DashboardWorld, PASSWORD, tokenOf, type Visit } from '../support/dashboard-world.ts'
import { missingPostgres, PostgresPart } from '../support/postgres.ts'
import { temporaryFolder, temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { totpCode } from '../support/totp.ts'
import { eventually } from '../support/wait-for.ts'

const missing = missingPostgres()
const folder = temporaryFolderOfFile()
const PERIOD_MS = 30_000
let postgres: PostgresPart
let databases = 0

beforeEach(({ skip }) => skip(missing !== undefined, missing))
beforeAll(async () => {
  if (missing === undefined) postgres = await PostgresPart.start(folder)
})
afterAll(async () => {
  if (missing === undefined) await postgres.stop()
})

/** Replicas on an empty database. */
async function opened(replicas = 2): Promise<DashboardWorld> {
  databases += 1
  const url = await postgres.createDatabase(`dashboard-${databases}`)
  const world = await DashboardWorld.prepare({ folder: temporaryFolder(), database: { url } })
  await world.startReplicas(replicas)
  return world
}

const statusesOf = (visits: readonly Visit[]): Record<number, number> => {
  const counts: Record<number, number> = {}
  for (const { status } of visits) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

test('three replicas that start at once on an empty database all live, and so do the ones after them', async () => {
  await using world = await opened(3)
  for (let n = 0; n < 3; n += 1) expect((await world.browser().get('/sign-in')).status).toBe(200)
  await world.person('maya@fernwood.example')
  await world.stop()
  await world.startReplicas(2)
  const browser = world.browser()
  expect((await browser.post('/sign-in', { email: 'maya@fernwood.example', password: PASSWORD })).location).toBe('/')
})

describe('the story, with each request at another replica', () => {
  test('a session of one replica works at the other, and ends at both', async () => {
    await using world = await opened()
    const browser = await world.person('maya@fernwood.example')
    for (let n = 0; n < 4; n += 1) expect((await browser.get('/api/me')).status).toBe(200)
    expect((await browser.call('POST', '/api/sign-out', {})).status).toBe(204)
    for (let n = 0; n < 4; n += 1) expect((await browser.get('/api/me')).status).toBe(401)
  })

  test('reset, change of address and deletion work, and the cluster has one Account', async () => {
    await using world = await opened()
    const email = 'ana@fernwood.example'
    const browser = await world.person(email)
    await browser.post('/reset', { email })
    const reset = await world.mails.wait(email, 'reset')
    expect((await browser.post('/reset/new', { token: tokenOf(reset.link), password: 'another quiet heron' })).location).toBe(
      '/sign-in?reason=password-set',
    )
    expect((await browser.get('/api/me')).status).toBe(401)
    expect((await browser.post('/sign-in', { email, password: 'another quiet heron' })).status).toBe(303)
    expect((await browser.call('POST', '/api/email', { email: 'new@fernwood.example' })).status).toBe(202)
    const { link } = await world.mails.wait('new@fernwood.example', 'new-address')
    expect((await browser.post('/verify', { token: tokenOf(link) })).location).toBe('/settings')
    expect((await browser.call('POST', '/api/account/delete', { email: 'new@fernwood.example' })).status).toBe(204)
    expect((await browser.post('/sign-in', { email: 'new@fernwood.example', password: 'another quiet heron' })).status).toBe(403)
    await world.mails.wait('new@fernwood.example', 'account-deleted')
    expect((await world.store.list(accounts, '')).map(({ spec }) => [spec.state, spec.owner?.email])).toEqual([
      ['Suspended', 'new@fernwood.example'],
    ])
  })

  test('each mail is sent once', async () => {
    await using world = await opened(3)
    for (let n = 0; n < 30; n += 1) await world.dashboard.identity.mail.queue(`person-${n}@fernwood.example`, 'known-address', {})
    await eventually(async () => expect(await world.dashboard.identity.outboxRows.waiting()).toBe(0))
    expect(world.mails.mails.map(({ to }) => to).toSorted()).toEqual(
      Array.from({ length: 30 }, (_, n) => `person-${n}@fernwood.example`).toSorted(),
    )
  })
})

describe('a verification at the moment at which the unverified row is deleted', () => {
  test.each([
    ['before the deletion: the person stays, with session and Account', verifiedBeforeTheDeletion],
    ['after the deletion: the link is dead, and leaves no session and no Account', deletedBeforeTheVerification],
    ['after somebody else signed up with the address: nobody is verified', replacedBeforeTheVerification],
    ['twelve of them, at two replicas: each is whole or not there', allAtOnce],
  ] as const)('%s', async (_, race) => {
    await using world = await opened(race === allAtOnce ? 2 : 1)
    await race(world)
  })
})

describe('limits are shared', () => {
  test('of forty sign-ins of one source at once, three are looked at', async () => {
    await using world = await opened()
    const browser = world.browser()
    const visits = await Promise.all(
      Array.from({ length: 40 }, () => browser.post('/sign-in', { email: 'nobody@fernwood.example', password: PASSWORD })),
    )
    expect(statusesOf(visits)).toEqual({ 403: 3, 429: 37 })
  })

  test('of twenty wrong passwords at once ten are looked at, and then the right one is refused too', async () => {
    await using world = await opened()
    const email = 'maya@fernwood.example'
    await world.person(email)
    const wrong = await Promise.all(
      Array.from({ length: 20 }, () => world.browser().post('/sign-in', { email, password: 'a wrong quiet heron' })),
    )
    expect(statusesOf(wrong)).toEqual({ 403: 20 })
    expect((await world.browser().post('/sign-in', { email, password: PASSWORD })).status).toBe(403)
    await world.mails.wait(email, 'wrong-passwords')
    await eventually(async () => expect(await world.dashboard.identity.outboxRows.waiting()).toBe(0))
    expect(world.mails.of(email, 'wrong-passwords').length).toBe(1)
    world.clock.move(15 * 60_000)
    expect((await world.browser().post('/sign-in', { email, password: PASSWORD })).status).toBe(303)
  })

  test('of ten resets at once, one sends a mail', async () => {
    await using world = await opened()
    const email = 'maya@fernwood.example'
    await world.person(email)
    await Promise.all(Array.from({ length: 10 }, () => world.browser().post('/reset', { email })))
    await world.mails.wait(email, 'reset')
    await eventually(async () => expect(await world.dashboard.identity.outboxRows.waiting()).toBe(0))
    expect(world.mails.of(email, 'reset').length).toBe(1)
  })

  test('a code of the authenticator app works once, though it comes to both at the same moment', async () => {
    await using world = await opened()
    const email = 'maya@fernwood.example'
    const browser = await world.person(email)
    const { secret } = (await browser.call('POST', '/api/two-factor/start', {})).json()
    expect((await browser.call('POST', '/api/two-factor/confirm', { code: totpCode(secret, Date.now()) })).status).toBe(204)
    const browsers = [world.browser(), world.browser()]
    for (const one of browsers) expect((await one.post('/sign-in', { email, password: PASSWORD })).location).toBe('/two-factor')
    const code = totpCode(secret, Date.now() + PERIOD_MS)
    const visits = await Promise.all(browsers.map((one) => one.post('/two-factor', { code })))
    expect(statusesOf(visits)).toEqual({ 303: 1, 403: 1 })
    const sessions = await Promise.all(browsers.map((one) => one.get('/api/me')))
    expect(statusesOf(sessions)).toEqual({ 200: 1, 401: 1 })
  })
})

describe('without the database', () => {
  test('answers say when to try again, nobody is signed out, the probe fails, and all heals by itself', async () => {
    await using world = await opened()
    const email = 'maya@fernwood.example'
    const browser = await world.person(email)
    await postgres.stop()
    for (const visit of [
      await browser.get('/api/me'),
      await browser.get('/settings'),
      await world.browser().post('/sign-in', { email, password: PASSWORD }),
      await world.browser().post('/sign-up', { email: 'sam@fernwood.example', password: PASSWORD }),
    ]) {
      expect([visit.status, visit.headers.get('retry-after')], visit.text).toEqual([503, '10'])
      expect(visit.text).toContain(visit.headers.get('x-request-id') ?? 'none')
    }
    expect((await world.browser().get('/sign-in')).status).toBe(200)
    await expect(world.dashboard.identity.ping()).rejects.toThrow()
    await postgres.start()
    await eventually(async () => expect((await browser.get('/api/me')).status).toBe(200))
    await world.dashboard.identity.ping()
    await world.person('sam@fernwood.example')
  })

  test('connections that end in the middle of transactions end no replica, and the people come again', async () => {
    await using world = await opened()
    const isOver = new AbortController()
    const killing = (async () => {
      while (!isOver.signal.aborted)
        await postgres.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = 'dashboard-${databases}'`)
    })()
    const visits = await Promise.all(
      Array.from({ length: 20 }, (_, n) => world.browser().post('/sign-up', { email: `person-${n}@fernwood.example`, password: PASSWORD })),
    )
    isOver.abort()
    await killing
    expect(visits.filter(({ status }) => status !== 303 && status !== 503).map(({ status, text }) => [status, text])).toEqual([])
    world.clock.move(61_000)
    await world.person('person-3@fernwood.example')
    expect((await world.store.list(accounts, '')).length).toBe(1)
  })
})
