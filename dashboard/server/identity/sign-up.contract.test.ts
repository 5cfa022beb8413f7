/** Nobody gets into an account by signing up with an address that is not theirs. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manySources, send } from '../../../test/support/dashboard-requests.ts'
import { DashboardWorld, type FormBrowser, PASSWORD, tokenOf } from '../../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'

const ATTACKERS = 'a password of the attacker'
const VICTIMS = 'grey seals bask at noon'

const folder = temporaryFolderOfFile()
let world: DashboardWorld
beforeAll(async () => void (world = await DashboardWorld.open({ folder })))
afterAll(() => world[Symbol.asyncDispose]())

async function signUp(email: string, password: string, nth = 1): Promise<{ browser: FormBrowser; token: string }> {
  const browser = world.browser()
  expect((await browser.post('/sign-up', { email, password })).location).toBe('/check-your-mail')
  return { browser, token: tokenOf((await world.mails.wait(email, 'verify', nth)).link) }
}

async function isSignedIn(browser: FormBrowser): Promise<boolean> {
  return (await browser.get('/api/me')).status === 200
}

async function canSignIn(email: string, password: string): Promise<boolean> {
  return (await world.browser().post('/sign-in', { email, password })).status === 303
}

const rowOf = async (email: string) => await (await world.dashboard.identity.auth.$context).internalAdapter.findUserByEmail(email)

describe('the link of an attacker who signed up with the address of a victim', () => {
  test('leads the victim to a new password, and the password and the browser of the attacker stay out', async () => {
    const attacker = await signUp('victim@a.example', ATTACKERS)
    const victim = world.browser()
    expect((await victim.get(`/verify?token=${attacker.token}`)).heading).toBe('Choose a password')
    const without = await victim.post('/verify', { token: attacker.token })
    expect([without.status, await isSignedIn(victim)]).toEqual([422, false])
    expect((await victim.post('/verify', { token: attacker.token, password: VICTIMS })).location).toBe('/')
    expect(await isSignedIn(victim)).toBe(true)
    expect(await isSignedIn(attacker.browser)).toBe(false)
    expect(await canSignIn('victim@a.example', ATTACKERS)).toBe(false)
    expect(await canSignIn('victim@a.example', VICTIMS)).toBe(true)
  })

  test('does nothing by being opened, also many times and in the browser of the attacker', async () => {
    const { browser, token } = await signUp('victim@b.example', ATTACKERS)
    for (const one of [browser, world.browser(), browser]) expect((await one.get(`/verify?token=${token}`)).status).toBe(200)
    expect((await rowOf('victim@b.example'))?.user.emailVerified).toBe(false)
    expect(await canSignIn('victim@b.example', ATTACKERS)).toBe(false)
  })

  test('does not verify in a third browser that signed up with another address', async () => {
    const { token } = await signUp('victim@c.example', ATTACKERS)
    const { browser } = await signUp('third@c.example', PASSWORD)
    expect((await browser.get(`/verify?token=${token}`)).heading).toBe('Choose a password')
    expect((await browser.post('/verify', { token })).status).toBe(422)
    expect((await rowOf('victim@c.example'))?.user.emailVerified).toBe(false)
  })

  test('is worth nothing after the victim has set a password by a reset link', async () => {
    const attacker = await signUp('victim@d.example', ATTACKERS)
    const victim = world.browser()
    await victim.post('/reset', { email: 'victim@d.example' })
    const reset = await world.mails.wait('victim@d.example', 'reset')
    expect((await victim.post('/reset/new', { token: tokenOf(reset.link), password: VICTIMS })).status).toBe(303)
    expect((await attacker.browser.post('/verify', { token: attacker.token })).status).toBe(422)
    expect(await isSignedIn(attacker.browser)).toBe(false)
    expect(await canSignIn('victim@d.example', ATTACKERS)).toBe(false)
    expect(await canSignIn('victim@d.example', VICTIMS)).toBe(true)
  })
})

describe('a link in another browser', () => {
  test('verifies with the password of the sign-up, and with no other', async () => {
    const { token } = await signUp('two@e.example', PASSWORD)
    const phone = world.browser()
    expect((await phone.get(`/verify?token=${token}&with=password`)).text).toContain('signed up as')
    const wrong = await phone.post('/verify', { token, with: 'password', password: ATTACKERS })
    expect([wrong.status, wrong.text.includes('not the password from sign-up')]).toEqual([422, true])
    expect((await phone.post('/verify', { token, with: 'password', password: PASSWORD })).location).toBe('/')
    expect(await isSignedIn(phone)).toBe(true)
    expect(await canSignIn('two@e.example', PASSWORD)).toBe(true)
  })

  test('takes ten wrong passwords in all, and then refuses the right one too', async () => {
    const { token } = await signUp('guessed@e.example', PASSWORD)
    const guesser = world.browser(manySources)
    for (let i = 0; i < 10; i++) await guesser.post('/verify', { token, with: 'password', password: `guess number ${i} of many` })
    expect((await guesser.post('/verify', { token, with: 'password', password: PASSWORD })).status).toBe(422)
    expect((await rowOf('guessed@e.example'))?.user.emailVerified).toBe(false)
  })

  test('refuses a new password that is short, common or the address', async () => {
    const { token } = await signUp('weak@e.example', PASSWORD)
    for (const password of ['short', 'password1234', 'weak@e.example', 'x'.repeat(129)])
      expect((await world.browser().post('/verify', { token, password })).status).toBe(422)
    expect((await rowOf('weak@e.example'))?.user.emailVerified).toBe(false)
  })
})

describe('a second sign-up with an address that nobody has verified', () => {
  test('replaces the first one: its link and its password are dead', async () => {
    const attacker = await signUp('victim@f.example', ATTACKERS)
    world.clock.move(61_000)
    const victim = await signUp('victim@f.example', VICTIMS, 2)
    expect((await attacker.browser.get(`/verify?token=${attacker.token}`)).heading).toBe('This link no longer works')
    expect((await attacker.browser.post('/verify', { token: attacker.token })).status).toBe(422)
    expect((await attacker.browser.get(`/verify?token=${victim.token}`)).heading).toBe('Choose a password')
    expect((await victim.browser.post('/verify', { token: victim.token })).location).toBe('/')
    expect(await canSignIn('victim@f.example', ATTACKERS)).toBe(false)
    expect(await canSignIn('victim@f.example', VICTIMS)).toBe(true)
  })

  test('changes nothing before a mail may be sent again, so nobody can end the link of somebody else at once', async () => {
    const victim = await signUp('victim@g.example', VICTIMS)
    const before = await rowOf('victim@g.example')
    const attacker = world.browser()
    expect((await attacker.post('/sign-up', { email: 'victim@g.example', password: ATTACKERS })).location).toBe('/check-your-mail')
    expect((await rowOf('victim@g.example'))?.user.id).toBe(before?.user.id)
    expect((await victim.browser.post('/verify', { token: victim.token })).location).toBe('/')
    expect(world.mails.of('victim@g.example', 'verify')).toHaveLength(1)
    expect(await canSignIn('victim@g.example', ATTACKERS)).toBe(false)
    expect(await canSignIn('victim@g.example', VICTIMS)).toBe(true)
  })

  test('mails at most five times a day, whichever way the mail is asked for, and leaves the last link working', async () => {
    let last = await signUp('victim@h.example', VICTIMS)
    for (let nth = 2; nth <= 5; nth++) {
      world.clock.move(61_000)
      last = await signUp('victim@h.example', VICTIMS, nth)
    }
    for (let i = 0; i < 3; i++) {
      world.clock.move(61_000)
      await world.browser().post('/sign-up', { email: 'victim@h.example', password: ATTACKERS })
      expect((await world.browser().post('/check-your-mail', { email: 'victim@h.example' })).status).toBe(200)
    }
    expect((await last.browser.post('/verify', { token: last.token })).location).toBe('/')
    expect(world.mails.of('victim@h.example', 'verify')).toHaveLength(5)
  })
})

describe('a sign-up', () => {
  test('with the address of a verified person changes nothing, and tells the owner alone', async () => {
    const owner = await world.person('owner@i.example')
    const before = await rowOf('owner@i.example')
    const attacker = world.browser()
    world.clock.move(61_000)
    expect((await attacker.post('/sign-up', { email: 'Owner@I.example', password: ATTACKERS })).location).toBe('/check-your-mail')
    await world.mails.wait('owner@i.example', 'known-address')
    expect((await rowOf('owner@i.example'))?.user.id).toBe(before?.user.id)
    expect([await isSignedIn(owner), await canSignIn('owner@i.example', ATTACKERS)]).toEqual([true, false])
  })

  test('ignores fields that a person may not set', async () => {
    const browser = world.browser()
    const more = {
      emailVerified: 'true',
      id: 'chosen',
      role: 'admin',
      name: '<b>x</b>',
      image: 'http://evil.example/',
      twoFactorEnabled: 'true',
    }
    await browser.post('/sign-up', { email: 'more@i.example', password: PASSWORD, ...more })
    const row = (await rowOf('more@i.example'))?.user
    expect(row).toMatchObject({ emailVerified: false, name: '' })
    expect(row).not.toMatchObject({ id: 'chosen' })
    expect([row?.image ?? null, (row as { role?: unknown } | undefined)?.role]).toEqual([null, undefined])
  })

  test('takes each password of 12 to 128 characters, however many bytes a character has', async () => {
    for (const [at, password] of [`heron ${'🦩🌊'.repeat(61)}`, 'zwölf Reiher'].entries()) {
      const browser = await world.person(`long${at}@i.example`, password)
      expect(await isSignedIn(browser)).toBe(true)
      expect(await canSignIn(`long${at}@i.example`, password)).toBe(true)
    }
  })

  test('is not lost while others sign up and mails are stored at the same time', async () => {
    const emails = Array.from({ length: 20 }, (_, at) => `crowd${at}@i.example`)
    const visits = await Promise.all([
      ...emails.map((email) => world.browser().post('/sign-up', { email, password: PASSWORD })),
      ...emails.map(() => world.browser().post('/reset', { email: 'owner@i.example' })),
    ])
    expect(visits.map(({ status }) => status)).toEqual([...emails.map(() => 303), ...emails.map(() => 200)])
    for (const email of emails) await world.mails.wait(email, 'verify')
  })

  test('leaves no session and no proof for a stranger who tampers with the cookie of the sign-up', async () => {
    const { browser, token } = await signUp('proof@i.example', PASSWORD)
    const value = browser.cookies.get('headgate.sign_up') ?? ''
    const flipped = value.slice(0, 30) + (value[30] === 'A' ? 'B' : 'A') + value.slice(31)
    for (const tampered of [flipped, '', '%', 'a', Buffer.from('{"userId":"x"}').toString('base64url')]) {
      const visit = await send(world, 'GET', `/verify?token=${token}`, { headers: { cookie: `headgate.sign_up=${tampered}` } })
      expect([visit.status, visit.heading]).toEqual([200, 'Choose a password'])
    }
  })
})

describe('the link of a mail', () => {
  test('works once: a second use signs nobody in', async () => {
    const { browser, token } = await signUp('once@j.example', PASSWORD)
    expect((await browser.post('/verify', { token })).status).toBe(303)
    for (const one of [world.browser(), browser]) {
      const again = await one.post('/verify', { token, password: ATTACKERS })
      expect([again.status, again.heading, again.headers.getSetCookie()]).toEqual([422, 'This link no longer works', []])
    }
    expect(await canSignIn('once@j.example', ATTACKERS)).toBe(false)
  })

  test('does not work after any change to it', async () => {
    const { browser, token } = await signUp('whole@j.example', PASSWORD)
    const [head = '', payload = '', signature = ''] = token.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as object
    const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
    const tampered = [
      '',
      'x',
      `${head}.${payload}.`,
      `${head}.${encode({ ...claims, email: 'owner@i.example' })}.${signature}`,
      `${encode({ alg: 'none' })}.${payload}.`,
      `${encode({ alg: 'HS512' })}.${payload}.${signature}`,
      `${head}.${payload}.${signature.slice(0, -2)}`,
      `${token}.${token}`,
      'x'.repeat(9_000),
    ]
    for (const one of tampered) {
      const visit = await browser.post('/verify', { token: one })
      expect([visit.status, visit.heading]).toEqual([422, 'This link no longer works'])
    }
    expect((await rowOf('whole@j.example'))?.user.emailVerified).toBe(false)
    expect((await browser.post('/verify', { token })).status).toBe(303)
  })
})
