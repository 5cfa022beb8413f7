/** A link to a new password works once, and no link outlives what it was asked for. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { manySources, openWithGitHub, send, signInThrough } from '../../../test/support/dashboard-requests.ts'
import { type DashboardWorld, type FormBrowser, PASSWORD, tokenOf } from '../../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'

const NEW = 'another quiet heron'
const OTHERS = 'a password of somebody else'
const DEAD = 'This link no longer works'

const folder = temporaryFolderOfFile()
let world: DashboardWorld
beforeAll(async () => {
  world = await openWithGitHub({ folder })
})
afterEach(() => world.clock.move(Date.now() - world.clock.now()))
afterAll(async () => {
  await world[Symbol.asyncDispose]()
})

async function askForLink(email: string, nth = 1): Promise<string> {
  await world.browser().post('/reset', { email })
  const { link } = await world.mails.wait(email, 'reset', nth)
  world.clock.move(61_000) // so that the next one may be asked for
  return tokenOf(link)
}

async function isDead(token: string): Promise<boolean> {
  const browser = world.browser()
  const [shown, used] = [await browser.get(`/reset/new?token=${token}`), await browser.post('/reset/new', { token, password: OTHERS })]
  return shown.heading === DEAD && used.heading === DEAD && used.status === 422
}

const isSignedIn = async (browser: FormBrowser): Promise<boolean> => (await browser.get('/api/me')).status === 200
const canSignIn = async (email: string, password: string): Promise<boolean> =>
  (await world.browser().post('/sign-in', { email, password })).status === 303

describe('a reset link', () => {
  test('sets a password once, ends all sessions, signs nobody in, and ends all other links of the person', async () => {
    const owner = await world.person('all@a.example')
    const [first, second] = [await askForLink('all@a.example'), await askForLink('all@a.example', 2)]
    const browser = world.browser()
    const set = await browser.post('/reset/new', { token: second, password: NEW })
    expect([set.location, set.headers.getSetCookie()]).toEqual(['/sign-in?reason=password-set', []])
    expect([await isSignedIn(owner), await isSignedIn(browser)]).toEqual([false, false])
    expect([await isDead(first), await isDead(second)]).toEqual([true, true])
    expect([await canSignIn('all@a.example', PASSWORD), await canSignIn('all@a.example', NEW)]).toEqual([false, true])
    await world.mails.wait('all@a.example', 'password-changed')
  })

  test('is dead after a change of the password', async () => {
    const owner = await world.person('change@a.example')
    const token = await askForLink('change@a.example')
    expect((await owner.call('POST', '/api/password', { current: PASSWORD, next: NEW })).status).toBe(204)
    expect(await isDead(token)).toBe(true)
    expect(await canSignIn('change@a.example', NEW)).toBe(true)
  })

  test('is dead after a first password of a person who came through a provider', async () => {
    const owner = world.browser()
    await signInThrough(owner, 'github', { email: 'hub@a.example' })
    const token = await askForLink('hub@a.example')
    expect((await owner.call('POST', '/api/password', { next: NEW })).status).toBe(204)
    expect(await isDead(token)).toBe(true)
    expect(await canSignIn('hub@a.example', NEW)).toBe(true)
  })

  test('to the former address is dead after a change of the address', async () => {
    const owner = await world.person('former@a.example')
    const token = await askForLink('former@a.example')
    await owner.call('POST', '/api/email', { email: 'latter@a.example' })
    const { link } = await world.mails.wait('latter@a.example', 'new-address')
    expect((await owner.post('/verify', { token: tokenOf(link) })).location).toBe('/settings')
    expect(await isDead(token)).toBe(true)
    expect(await canSignIn('latter@a.example', PASSWORD)).toBe(true)
  })

  test('is dead after 30 minutes, after any change to it, and after the deletion of the person', async () => {
    const owner = await world.person('late@a.example')
    const token = await askForLink('late@a.example')
    for (const changed of ['', 'x', `${token}x`, token.toUpperCase(), `${token}' or 1=1`, 'x'.repeat(9_000)])
      expect(await isDead(encodeURIComponent(changed))).toBe(true)
    world.clock.move(30 * 60_000)
    expect(await isDead(token)).toBe(true)
    world.clock.move(-31 * 60_000)
    expect((await world.browser().get(`/reset/new?token=${token}`)).heading).toBe('Set a new password')
    expect((await owner.call('POST', '/api/account/delete', { email: 'late@a.example' })).status).toBe(204)
    expect(await isDead(token)).toBe(true)
  })

  test('sets one password, also when it is used several times at once', async () => {
    await world.person('race@a.example')
    const token = await askForLink('race@a.example')
    const passwords = ['first of three herons', 'second of three herons', 'third of three herons']
    const visits = await Promise.all(passwords.map((password) => world.browser().post('/reset/new', { token, password })))
    expect(visits.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 422, 422])
    const opening = []
    for (const password of passwords) opening.push(await canSignIn('race@a.example', password))
    expect(opening).toEqual(visits.map(({ status }) => status === 303))
  })

  test('refuses a weak password and works afterwards', async () => {
    await world.person('weak@a.example')
    const token = await askForLink('weak@a.example')
    for (const password of ['', 'short', 'password1234', 'weak@a.example']) {
      const visit = await world.browser().post('/reset/new', { token, password })
      expect([visit.status, visit.heading]).toEqual([422, 'Set a new password'])
    }
    expect((await world.browser().post('/reset/new', { token, password: NEW })).status).toBe(303)
  })

  test('is mailed at most five times a day, and to nobody without an account', async () => {
    await world.person('five@a.example')
    for (let nth = 1; nth <= 5; nth++) await askForLink('five@a.example', nth)
    for (let i = 0; i < 2; i++) {
      await world.browser().post('/reset', { email: 'five@a.example' })
      await world.browser().post('/reset', { email: 'nobody@a.example' })
      world.clock.move(61_000)
    }
    await world.person('later@a.example')
    expect(world.mails.of('five@a.example', 'reset')).toHaveLength(5)
    expect(world.mails.mails.filter(({ to }) => to === 'nobody@a.example')).toEqual([])
  })
})

describe('a change of the password', () => {
  test('gives this session a new id, ends all others, and tells the owner', async () => {
    const [owner, other] = [await world.person('pass@b.example'), world.browser()]
    await other.post('/sign-in', { email: 'pass@b.example', password: PASSWORD })
    const before = owner.cookies.get('headgate.session_token')
    expect((await owner.call('POST', '/api/password', { current: PASSWORD, next: NEW })).status).toBe(204)
    expect([await isSignedIn(owner), await isSignedIn(other)]).toEqual([true, false])
    expect((await send(world, 'GET', '/api/me', { headers: { cookie: `headgate.session_token=${before}` } })).status).toBe(401)
    await world.mails.wait('pass@b.example', 'password-changed')
  })

  test('also does so for a first password, and is no way around the password that there is', async () => {
    const [owner, other] = [world.browser(), world.browser()]
    await signInThrough(owner, 'github', { email: 'first@b.example' })
    await signInThrough(other, 'github', { email: 'first@b.example' })
    const before = owner.cookies.get('headgate.session_token')
    expect((await owner.call('POST', '/api/password', { current: OTHERS, next: NEW })).json().error.code).toBe('wrong-credentials')
    expect((await owner.call('POST', '/api/password', { next: NEW })).status).toBe(204)
    expect([await isSignedIn(owner), await isSignedIn(other)]).toEqual([true, false])
    expect((await send(world, 'GET', '/api/me', { headers: { cookie: `headgate.session_token=${before}` } })).status).toBe(401)
    expect((await owner.call('POST', '/api/password', { next: OTHERS })).json().error.code).toBe('wrong-credentials')
    expect([await canSignIn('first@b.example', NEW), await canSignIn('first@b.example', OTHERS)]).toEqual([true, false])
  })
})

describe('the link of a change of the address', () => {
  async function askForChange(owner: FormBrowser, to: string): Promise<string> {
    expect((await owner.call('POST', '/api/email', { email: to })).status).toBe(202)
    return tokenOf((await world.mails.wait(to, 'new-address')).link)
  }

  test('does nothing without a session of the same person, and does not sign in', async () => {
    const [owner, stranger] = [await world.person('mine@c.example'), await world.person('stranger@c.example')]
    const token = await askForChange(owner, 'typo@c.example')
    for (const browser of [world.browser(), stranger]) {
      expect((await browser.get(`/verify?token=${token}`)).heading).toBe('Sign in first')
      for (const fields of [{ token }, { token, password: OTHERS }, { token, password: PASSWORD, with: 'password' }]) {
        const visit = await browser.post('/verify', fields)
        expect([visit.status, visit.heading]).toEqual([422, 'Sign in first'])
      }
    }
    expect((await stranger.get('/api/me')).json().person.email).toBe('stranger@c.example')
    expect((await owner.get('/api/me')).json().person.email).toBe('mine@c.example')
    expect(await canSignIn('mine@c.example', PASSWORD)).toBe(true)
  })

  test('works once, and tells the former address', async () => {
    const owner = await world.person('once@c.example')
    const token = await askForChange(owner, 'twice@c.example')
    expect((await owner.post('/verify', { token })).location).toBe('/settings')
    expect((await owner.post('/verify', { token })).heading).toBe(DEAD)
    const { text } = await world.mails.wait('once@c.example', 'address-changed')
    expect(text).not.toContain('twice@c.example') // a part of the address alone
    expect([await canSignIn('once@c.example', PASSWORD), await canSignIn('twice@c.example', PASSWORD)]).toEqual([false, true])
  })

  test('is not mailed to the address of a verified person, and the answer does not tell', async () => {
    const owner = await world.person('asker@c.example')
    await world.person('taken@c.example')
    const answers = []
    for (const email of ['taken@c.example', 'free@c.example', 'Asker@c.example']) {
      const { status, text, headers } = await owner.call('POST', '/api/email', { email })
      answers.push({ status, text, length: headers.get('content-length') })
    }
    expect(answers).toEqual([answers[0], answers[0], answers[0]])
    await world.mails.wait('free@c.example', 'new-address')
    expect(world.mails.of('taken@c.example', 'new-address')).toEqual([])
    expect(world.mails.of('asker@c.example', 'new-address')).toEqual([])
  })

  test('is mailed for ten addresses of one person a day, so that nobody floods strangers', async () => {
    const owner = await world.person('flood@c.example')
    const everywhere = world.browser(manySources)
    for (const [name, value] of owner.cookies) everywhere.cookies.set(name, value)
    const statuses = []
    for (let i = 0; i < 12; i++) statuses.push((await everywhere.call('POST', '/api/email', { email: `flooded${i}@c.example` })).status)
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 202), 429, 429])
    await world.mails.wait('flooded9@c.example', 'new-address')
    expect(world.mails.of('flooded10@c.example', 'new-address')).toEqual([])
  })

  test('takes an address from a person who never verified it, but not from one who has verified it since', async () => {
    const owner = await world.person('wants@c.example')
    const squatter = world.browser()
    await squatter.post('/sign-up', { email: 'squatted@c.example', password: OTHERS })
    const squat = await world.mails.wait('squatted@c.example', 'verify')
    const token = await askForChange(owner, 'squatted@c.example')
    expect((await owner.post('/verify', { token })).location).toBe('/settings')
    expect((await squatter.post('/verify', { token: tokenOf(squat.link) })).status).toBe(422)
    expect([await canSignIn('squatted@c.example', OTHERS), await canSignIn('squatted@c.example', PASSWORD)]).toEqual([false, true])
    const late = await askForChange(owner, 'race@c.example')
    const winner = await world.person('race@c.example')
    expect((await owner.post('/verify', { token: late })).heading).toBe(DEAD)
    expect([(await winner.get('/api/me')).json().person.email, (await owner.get('/api/me')).json().person.email]).toEqual([
      'race@c.example',
      'squatted@c.example',
    ])
  })
})
