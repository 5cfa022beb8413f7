/** With two-factor on, nobody gets in without a code, by whatever way, and each code counts once. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manySources, openWithGitHub, send, signInThrough, turnOnTwoFactor } from '../../../test/support/dashboard-requests.ts'
import { type DashboardWorld, type FormBrowser, PASSWORD, tokenOf, type Visit } from '../../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'

const SESSION = 'headgate.session_token'

const folder = temporaryFolderOfFile()
let world: DashboardWorld
beforeAll(async () => {
  world = await openWithGitHub({ folder })
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
})

/** A browser that has given the right password, and must give a code. */
async function atCode(email: string, password = PASSWORD): Promise<FormBrowser> {
  const browser = world.browser(manySources)
  expect((await browser.post('/sign-in', { email, password })).location).toBe('/two-factor')
  return browser
}

const giveCode = (browser: FormBrowser, code: string): Promise<Visit> => browser.post('/two-factor', { code })
const giveBackup = (browser: FormBrowser, code: string): Promise<Visit> => browser.post('/two-factor', { code, with: 'backup-code' })
const isSignedIn = async (browser: FormBrowser): Promise<boolean> => (await browser.get('/api/me')).status === 200

describe('two-factor', () => {
  test('keeps the right password out until the code follows, and gives the session a new id', async () => {
    const first = await world.person('on@a.example')
    const [before, second] = [first.cookies.get(SESSION), world.browser()]
    await second.post('/sign-in', { email: 'on@a.example', password: PASSWORD })
    const app = await turnOnTwoFactor(first)
    expect(first.cookies.get(SESSION)).not.toBe(before)
    expect((await send(world, 'GET', '/api/me', { headers: { cookie: `${SESSION}=${before}` } })).status).toBe(401)
    expect(await isSignedIn(first)).toBe(true)
    expect(await isSignedIn(second)).toBe(false) // it never gave a code
    const browser = await atCode('on@a.example')
    expect([await isSignedIn(browser), browser.cookies.has(SESSION)]).toEqual([false, false])
    expect((await giveCode(browser, app.freshCode)).location).toBe('/')
    expect(await isSignedIn(browser)).toBe(true)
    await world.mails.wait('on@a.example', 'two-factor-on')
  })

  test('takes a code once: not for a second sign-in, nor for a confirmation, nor after it turned two-factor on', async () => {
    const owner = await world.person('once@a.example')
    const app = await turnOnTwoFactor(owner)
    expect((await giveCode(await atCode('once@a.example'), app.usedCode)).status).toBe(403)
    expect((await giveCode(await atCode('once@a.example'), app.freshCode)).location).toBe('/')
    const again = await atCode('once@a.example')
    const refused = await giveCode(again, app.freshCode)
    expect([refused.status, refused.text.includes('This code has been used'), await isSignedIn(again)]).toEqual([403, true, false])
    expect((await owner.call('POST', '/api/confirm', { password: PASSWORD, code: app.freshCode })).status).toBe(403)
  })

  test('takes a code once, also by five sign-ins at the same time', async () => {
    const app = await turnOnTwoFactor(await world.person('race@a.example'))
    const browsers = await Promise.all(Array.from({ length: 5 }, () => atCode('race@a.example')))
    const visits = await Promise.all(browsers.map((browser) => giveCode(browser, app.freshCode)))
    const [passed, ...others] = (await Promise.all(browsers.map(isSignedIn))).filter(Boolean)
    expect([passed, others]).toEqual([true, []])
    expect(visits.filter(({ location }) => location === '/')).toHaveLength(1)
  })

  test('takes each backup code once, also at the same time', async () => {
    const app = await turnOnTwoFactor(await world.person('backup@a.example'))
    const [first = '', second = ''] = app.backupCodes
    expect(app.backupCodes).toHaveLength(10)
    expect((await giveBackup(await atCode('backup@a.example'), first)).location).toBe('/')
    const again = await giveBackup(await atCode('backup@a.example'), first)
    expect([again.status, again.heading]).toEqual([403, 'Enter a backup code'])
    const browsers = await Promise.all(Array.from({ length: 4 }, () => atCode('backup@a.example')))
    await Promise.all(browsers.map((browser) => giveBackup(browser, second)))
    expect((await Promise.all(browsers.map(isSignedIn))).filter(Boolean)).toHaveLength(1)
  })

  test('ends the former backup codes when new ones are made', async () => {
    const owner = await world.person('renew@a.example')
    const app = await turnOnTwoFactor(owner)
    const { backupCodes } = (await owner.call('POST', '/api/two-factor/backup-codes', {})).json()
    expect((await giveBackup(await atCode('renew@a.example'), app.backupCodes[0] ?? '')).status).toBe(403)
    expect((await giveBackup(await atCode('renew@a.example'), backupCodes[0])).location).toBe('/')
  })

  test('ends the challenge after five wrong codes, and locks after ten: the right code is refused too', async () => {
    const app = await turnOnTwoFactor(await world.person('guess@a.example'))
    const browser = await atCode('guess@a.example')
    for (let i = 0; i < 5; i++) expect((await giveCode(browser, app.wrongCode)).status).toBe(403)
    expect((await giveCode(browser, app.freshCode)).location).toBe('/sign-in?reason=two-factor-ended')
    const second = await atCode('guess@a.example')
    for (let i = 0; i < 5; i++) await giveCode(second, app.wrongCode)
    expect((await giveCode(await atCode('guess@a.example'), app.freshCode)).location).toBe('/sign-in?reason=two-factor-ended')
    expect((await giveBackup(await atCode('guess@a.example'), app.backupCodes[0] ?? '')).location).toBe('/sign-in?reason=two-factor-ended')
  })

  test('ends a challenge that waits when the password is changed or reset meanwhile', async () => {
    const owner = await world.person('meanwhile@a.example')
    const app = await turnOnTwoFactor(owner)
    const waiting = await atCode('meanwhile@a.example')
    expect((await owner.call('POST', '/api/password', { current: PASSWORD, next: 'another quiet heron' })).status).toBe(204)
    expect((await giveCode(waiting, app.freshCode)).location).toBe('/sign-in?reason=two-factor-ended')
    const second = await atCode('meanwhile@a.example', 'another quiet heron')
    await world.browser().post('/reset', { email: 'meanwhile@a.example' })
    const { link } = await world.mails.wait('meanwhile@a.example', 'reset')
    expect((await world.browser().post('/reset/new', { token: tokenOf(link), password: PASSWORD })).status).toBe(303)
    expect((await giveCode(second, app.freshCode)).location).toBe('/sign-in?reason=two-factor-ended')
  })

  test('is asked for after a reset link, too: the link alone signs nobody in', async () => {
    const app = await turnOnTwoFactor(await world.person('link@a.example'))
    const browser = world.browser()
    await browser.post('/reset', { email: 'link@a.example' })
    const { link } = await world.mails.wait('link@a.example', 'reset')
    await browser.post('/reset/new', { token: tokenOf(link), password: 'another quiet heron' })
    expect(await isSignedIn(browser)).toBe(false)
    expect((await giveCode(await atCode('link@a.example', 'another quiet heron'), app.freshCode)).location).toBe('/')
  })

  test('is not left by a code of somebody else, nor by a changed cookie', async () => {
    await turnOnTwoFactor(await world.person('mine@a.example'))
    const other = await turnOnTwoFactor(await world.person('other@a.example'))
    const browser = await atCode('mine@a.example')
    expect((await giveCode(browser, other.freshCode)).status).toBe(403)
    const value = browser.cookies.get('headgate.two_factor') ?? ''
    const otherLetter = value[8] === 'x' ? 'y' : 'x'
    for (const changed of [`${value.slice(0, 8)}${otherLetter}${value.slice(9)}`, 'x', '']) {
      browser.cookies.set('headgate.two_factor', changed)
      expect((await giveCode(browser, other.freshCode)).location).toBe('/sign-in?reason=two-factor-ended')
    }
  })

  test('answers a request that does not fit, and stays as it is', async () => {
    const owner = await world.person('fits@a.example')
    const code = async (path: string, body: object = {}) => (await owner.call('POST', `/api/two-factor/${path}`, body)).json().error.code
    expect([await code('off'), await code('backup-codes'), await code('confirm', { code: '123456' })]).toEqual([
      'conflict',
      'conflict',
      'wrong-credentials',
    ])
    const { freshCode } = await turnOnTwoFactor(owner)
    expect([await code('start'), await code('confirm', { code: freshCode })]).toEqual(['conflict', 'conflict'])
    expect((await owner.get('/api/me')).json().person.twoFactor).toEqual({ isOn: true, backupCodesLeft: 10 })
  })
})

describe('a sign-in through a provider', () => {
  test('needs the code as well, and its own answer opens nothing', async () => {
    const owner = world.browser()
    expect((await signInThrough(owner, 'github', { email: 'hub@b.example' })).location).toBe('/')
    const app = await turnOnTwoFactor(owner)
    const browser = world.browser(manySources)
    const visit = await signInThrough(browser, 'github', { email: 'hub@b.example' })
    expect([visit.status, visit.location]).toEqual([303, '/two-factor'])
    expect(await isSignedIn(browser)).toBe(false)
    for (const line of visit.headers.getSetCookie()) {
      const cookie = line.split(';')[0] ?? ''
      expect((await send(world, 'GET', '/api/me', { headers: { cookie } })).status).toBe(401)
    }
    expect((await giveCode(browser, app.wrongCode)).status).toBe(403)
    expect((await giveCode(browser, app.freshCode)).location).toBe('/')
    expect(await isSignedIn(browser)).toBe(true)
    const again = world.browser(manySources)
    await signInThrough(again, 'github', { email: 'hub@b.example' })
    expect((await giveCode(again, app.freshCode)).status).toBe(403)
    expect(await isSignedIn(again)).toBe(false)
  })

  test('is locked by ten wrong codes as the password is', async () => {
    const owner = world.browser()
    await signInThrough(owner, 'github', { email: 'locked@b.example' })
    const app = await turnOnTwoFactor(owner)
    for (let round = 0; round < 2; round++) {
      const browser = world.browser(manySources)
      await signInThrough(browser, 'github', { email: 'locked@b.example' })
      for (let i = 0; i < 5; i++) await giveCode(browser, app.wrongCode)
    }
    const last = world.browser(manySources)
    await signInThrough(last, 'github', { email: 'locked@b.example' })
    expect((await giveCode(last, app.freshCode)).location).toBe('/sign-in?reason=two-factor-ended')
    expect(await isSignedIn(last)).toBe(false)
  })
})
