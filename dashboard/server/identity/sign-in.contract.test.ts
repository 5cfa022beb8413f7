/** Passwords cannot be guessed, and a sign-in tells nothing about who has an account. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { anyAddress, cookieHeader, manySources, send } from '../../../test/support/dashboard-requests.ts'
import { DashboardWorld, FormBrowser, PASSWORD, tokenOf, type Visit } from '../../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'

const WRONG = 'not the password of anybody'
const MINUTES = 60_000

const folder = temporaryFolderOfFile()
let world: DashboardWorld
beforeAll(async () => void (world = await DashboardWorld.open({ folder })))
afterAll(() => world[Symbol.asyncDispose]())

const signIn = (email: string, password: string, browser = world.browser()): Promise<Visit> => browser.post('/sign-in', { email, password })

describe('ten wrong passwords for one address within 15 minutes', () => {
  test('end the tries from everywhere with the same answer, mail the owner once, and end by themselves', async () => {
    await world.person('many@a.example')
    const first = await signIn('many@a.example', WRONG)
    for (let i = 1; i < 10; i++) expect((await signIn('many@a.example', `${WRONG} ${i}`)).status).toBe(403)
    const right = await signIn('many@a.example', PASSWORD)
    expect([right.status, right.text]).toEqual([403, first.text])
    expect(right.headers.getSetCookie()).toEqual([])
    await world.mails.wait('many@a.example', 'wrong-passwords')
    for (let i = 0; i < 5; i++) expect((await signIn('many@a.example', WRONG)).text).toBe(first.text)
    world.clock.move(15 * MINUTES + 1_000)
    expect((await signIn('many@a.example', PASSWORD)).status).toBe(303)
    expect(world.mails.of('many@a.example', 'wrong-passwords')).toHaveLength(1)
    world.clock.move(-15 * MINUTES - 1_000)
  })

  test('are counted exactly, also when all come at once from twenty sources', async () => {
    await world.person('burst@a.example')
    const { identity } = world.dashboard
    const checked: boolean[] = []
    const context = await identity.auth.$context
    const { verify } = context.password
    context.password.verify = async (input) => {
      checked.push(input.password === PASSWORD)
      return await verify(input)
    }
    try {
      await Promise.all(Array.from({ length: 20 }, () => signIn('burst@a.example', PASSWORD.toUpperCase())))
      expect((await signIn('burst@a.example', PASSWORD)).status).toBe(403)
    } finally {
      context.password.verify = verify
    }
    expect(checked).toHaveLength(21)
    expect(checked).not.toContain(true) // the last try was checked with another password
    await world.mails.wait('burst@a.example', 'wrong-passwords')
    expect(world.mails.of('burst@a.example', 'wrong-passwords')).toHaveLength(1)
  })

  test('are counted over passwords at sign-in, at a confirmation and at a change together', async () => {
    const browser = await world.person('ways@a.example')
    for (let i = 0; i < 5; i++) await signIn('ways@a.example', WRONG)
    for (let i = 0; i < 3; i++) expect((await browser.call('POST', '/api/confirm', { password: WRONG })).status).toBe(403)
    for (let i = 0; i < 2; i++) {
      const change = await browser.call('POST', '/api/password', { current: WRONG, next: 'another quiet heron' })
      expect([change.status, change.json().error.code]).toEqual([403, 'wrong-credentials'])
    }
    const confirm = await browser.call('POST', '/api/confirm', { password: PASSWORD })
    expect([confirm.status, confirm.json().error.code]).toEqual([429, 'too-many-requests'])
    expect(Number(confirm.headers.get('retry-after'))).toBeGreaterThan(800)
    expect((await signIn('ways@a.example', PASSWORD)).status).toBe(403)
  })

  test('do not hold after a new password by a reset link', async () => {
    await world.person('reset@a.example')
    for (let i = 0; i < 11; i++) await signIn('reset@a.example', WRONG)
    await world.browser().post('/reset', { email: 'reset@a.example' })
    const { link } = await world.mails.wait('reset@a.example', 'reset')
    await world.browser().post('/reset/new', { token: tokenOf(link), password: 'another quiet heron' })
    expect((await signIn('reset@a.example', 'another quiet heron')).status).toBe(303)
  })

  test('mail nobody where nobody has an account', async () => {
    for (let i = 0; i < 12; i++) await signIn('nobody@a.example', WRONG)
    await world.person('after@a.example') // a mail that was sent later than a warning would have been
    expect(world.mails.mails.filter(({ to }) => to === 'nobody@a.example')).toEqual([])
  })
})

describe('one source', () => {
  test('has three tries in ten seconds, whatever addresses it tries', async () => {
    const browser = world.browser()
    const statuses = []
    for (let i = 0; i < 5; i++) statuses.push((await signIn(`person${i}@b.example`, WRONG, browser)).status)
    expect(statuses).toEqual([403, 403, 403, 429, 429])
    expect((await signIn('person9@b.example', WRONG)).status).toBe(403)
  })

  test('is not several by a header that it writes itself in front of the header of the proxy', async () => {
    const address = anyAddress()
    const statuses = []
    for (let i = 0; i < 4; i++) {
      const browser = new FormBrowser(world.origin, { 'x-forwarded-for': `${anyAddress()}, ${address}` })
      statuses.push((await signIn(`person${i}@c.example`, WRONG, browser)).status)
    }
    expect(statuses).toEqual([403, 403, 403, 429])
  })

  test('is not several by other headers that name an address', async () => {
    const address = anyAddress()
    const statuses = []
    for (let i = 0; i < 4; i++) {
      const forged = anyAddress()
      const names = ['x-headgate-client', 'x-real-ip', 'x-client-ip', 'cf-connecting-ip', 'true-client-ip', 'forwarded', 'fly-client-ip']
      const headers = Object.fromEntries(names.map((name) => [name, name === 'forwarded' ? `for=${forged}` : forged]))
      const browser = new FormBrowser(world.origin, { ...headers, 'x-forwarded-for': address })
      statuses.push((await signIn(`person${i}@d.example`, WRONG, browser)).status)
    }
    expect(statuses).toEqual([403, 403, 403, 429])
  })

  test('is a whole IPv6 network of /64', async () => {
    const statuses = []
    for (let i = 1; i <= 4; i++)
      statuses.push(
        (await signIn('six@d.example', WRONG, new FormBrowser(world.origin, { 'x-forwarded-for': `2001:db8:7:7::${i}` }))).status,
      )
    expect(statuses).toEqual([403, 403, 403, 429])
  })

  test('cannot name an address at all where no proxy is trusted', async () => {
    await using direct = await DashboardWorld.open({ folder: `${folder}/direct`, trustedProxies: [] })
    const browser = new FormBrowser(direct.origin, manySources)
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await signIn(`person${i}@e.example`, WRONG, browser)).status)
    expect(statuses).toEqual([403, 403, 403, 429])
    expect(JSON.stringify(direct.lines)).not.toContain('203.')
  })
})

describe('a session', () => {
  test('has a new id at each sign-in, and a value from before the sign-in opens nothing', async () => {
    const browser = await world.person('fixed@f.example')
    const name = 'headgate.session_token'
    const first = browser.cookies.get(name)
    await signIn('fixed@f.example', PASSWORD, browser)
    expect(browser.cookies.get(name)).not.toBe(first)
    const planted = new FormBrowser(world.origin, { 'x-forwarded-for': anyAddress() })
    planted.cookies.set(name, 'planted.by-an-attacker')
    await signIn('fixed@f.example', PASSWORD, planted)
    expect(planted.cookies.get(name)).not.toContain('planted')
    expect((await send(world, 'GET', '/api/me', { headers: { cookie: `${name}=planted.by-an-attacker` } })).status).toBe(401)
  })

  test('is over on the server after `Sign out`, also for a copy of its cookie', async () => {
    const browser = await world.person('out@f.example')
    const copy = cookieHeader(browser)
    expect((await send(world, 'GET', '/api/me', { headers: { cookie: copy } })).status).toBe(200)
    expect((await browser.call('POST', '/api/sign-out', {})).status).toBe(204)
    expect((await send(world, 'GET', '/api/me', { headers: { cookie: copy } })).status).toBe(401)
    expect((await send(world, 'GET', '/settings', { headers: { cookie: copy } })).status).toBe(303)
  })

  test('ends after 30 days, however much it is used, and its row is deleted', async () => {
    await using later = await DashboardWorld.open({ folder: `${folder}/later` })
    const browser = await later.person('month@f.example')
    const day = 24 * 60 * MINUTES
    later.clock.move(30 * day - 60_000)
    expect((await browser.get('/api/me')).status).toBe(200)
    later.clock.move(60_000)
    expect((await browser.get('/api/me')).status).toBe(401)
    later.clock.move(-10 * day)
    expect((await browser.get('/api/me')).status).toBe(401)
  })

  test('is nothing without the signature of its cookie, so a token of a stolen database opens nothing', async () => {
    const browser = await world.person('stolen@f.example')
    const { internalAdapter } = await world.dashboard.identity.auth.$context
    const { id } = (await browser.get('/api/me')).json().person
    const [session] = await internalAdapter.listSessions(id)
    const token = session?.token ?? ''
    expect(decodeURIComponent(browser.cookies.get('headgate.session_token') ?? '')).toMatch(new RegExp(`^${token}\\..{40,}$`))
    for (const cookie of [token, `${token}.`, `${token}.${'A'.repeat(43)}=`, `${token}.${Buffer.from(token).toString('base64')}`])
      expect((await send(world, 'GET', '/api/me', { headers: { cookie: `headgate.session_token=${cookie}` } })).status).toBe(401)
    for (const authorization of [
      `Bearer ${token}`,
      `Bearer ${browser.cookies.get('headgate.session_token')}`,
      `Basic ${btoa(`stolen@f.example:${PASSWORD}`)}`,
    ])
      expect((await send(world, 'GET', '/api/me', { headers: { authorization } })).status).toBe(401)
  })

  test('is not a permission: it opens nothing while the address of its person is not verified', async () => {
    const browser = await world.person('undone@f.example')
    const { internalAdapter } = await world.dashboard.identity.auth.$context
    const { id } = (await browser.get('/api/me')).json().person
    await internalAdapter.updateUser(id, { emailVerified: false })
    expect((await browser.get('/api/me')).json().error.code).toBe('session-ended')
    expect((await browser.call('PATCH', '/api/me', { name: 'x' })).status).toBe(401)
    expect((await browser.get('/settings')).location).toBe('/sign-in?next=%2Fsettings')
    expect((await signIn('undone@f.example', PASSWORD)).status).toBe(403)
  })

  test('is ended by the other sessions of the same person, and by nobody else', async () => {
    const [a, b] = [await world.person('a@g.example'), await world.person('b@g.example')]
    const second = world.browser()
    await signIn('a@g.example', PASSWORD, second)
    const ids = (await a.get('/api/sessions')).json().sessions.map(({ id }: { id: string }) => id)
    expect(ids).toHaveLength(2)
    const answers = []
    for (const id of [...ids, 'unknown']) {
      const { status, text } = await b.call('DELETE', `/api/sessions/${id}`)
      answers.push([status, text.replace(/req_[\w-]+/, 'req')])
    }
    expect(answers[0]?.[0]).toBe(404)
    expect(answers).toEqual([answers[0], answers[0], answers[0]])
    expect((await a.call('DELETE', `/api/sessions/${ids[1]}`)).status).toBe(204)
    expect([(await a.get('/api/me')).status, (await second.get('/api/me')).status]).toEqual([200, 401])
  })
})
