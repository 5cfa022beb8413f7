/** A change that would give an account away needs a proof of identity of the last ten minutes. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { manySources, openWithGitHub, signInThrough, turnOnTwoFactor } from '../../../test/support/dashboard-requests.ts'
import { DashboardWorld, type FormBrowser, PASSWORD } from '../../../test/support/dashboard-world.ts'
import { temporaryFolder, temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'
import { ROUTES } from '../routes.ts'
import { WRONG_PASSWORDS } from './throttle.ts'

const MINUTES = 60_000
const NEW = 'another quiet heron'

const folder = temporaryFolderOfFile()
let world: DashboardWorld
beforeAll(async () => void (world = await DashboardWorld.open({ folder })))
afterEach(() => world.clock.move(Date.now() - world.clock.now()))
afterAll(() => world[Symbol.asyncDispose]())

/** A request that each of the sensitive routes refuses for another reason than the age of the session, and that changes nothing. */
const SENSITIVE: readonly (readonly [method: string, path: string, body: object | undefined, status: number])[] = [
  ['POST', '/api/email', { email: 'no address' }, 422],
  ['POST', '/api/password', { current: PASSWORD, next: 'short' }, 422],
  ['POST', '/api/providers/unknown/link', {}, 404],
  ['DELETE', '/api/providers/unknown', undefined, 404],
  ['POST', '/api/two-factor/start', {}, 200],
  ['POST', '/api/two-factor/confirm', { code: 'x' }, 403],
  ['POST', '/api/two-factor/off', {}, 409],
  ['POST', '/api/two-factor/backup-codes', {}, 409],
  ['POST', '/api/account/delete', { email: 'x@example.com' }, 422],
]

const ask = async (browser: FormBrowser, [method, path, body]: (typeof SENSITIVE)[number]) => {
  const { status, text } = await browser.call(method, path, body)
  return { status, code: text === '' ? undefined : (JSON.parse(text) as { error?: { code: string } }).error?.code }
}

/** The same session, used from another address at each request: limits per source never apply. */
function everywhere(owner: FormBrowser): FormBrowser {
  const browser = world.browser(manySources)
  for (const [name, value] of owner.cookies) browser.cookies.set(name, value)
  return browser
}

describe('the sensitive routes', () => {
  test('are these', () => {
    const ofTable = ROUTES.flatMap((route) =>
      route.access !== 'anyone' && route.isSensitive ? [`${route.method} ${route.path.replace(':provider', 'unknown')}`] : [],
    )
    expect(ofTable).toEqual(SENSITIVE.map(([method, path]) => `${method} ${path}`))
  })

  test('refuse a session of ten minutes, change nothing, and go on for ten minutes after a password', async () => {
    const browser = await world.person('old@a.example')
    world.clock.move(9 * MINUTES)
    for (const one of SENSITIVE) expect([one[1], (await ask(browser, one)).status]).toEqual([one[1], one[3]])
    world.clock.move(MINUTES)
    for (const one of SENSITIVE) expect([one[1], await ask(browser, one)]).toEqual([one[1], { status: 403, code: 'confirm' }])
    for (const [path, body] of [
      ['/api/email', { email: 'evil@a.example' }],
      ['/api/password', { current: PASSWORD, next: NEW }],
      ['/api/password', { next: NEW }],
      ['/api/account/delete', { email: 'old@a.example' }],
    ] as const)
      expect((await browser.call('POST', path, body)).json().error.code).toBe('confirm')
    expect((await browser.call('POST', '/api/confirm', { password: NEW })).json().error.code).toBe('wrong-credentials')
    expect((await ask(browser, SENSITIVE[0]!)).code).toBe('confirm')
    expect((await browser.call('POST', '/api/confirm', { password: PASSWORD })).status).toBe(204)
    world.clock.move(10 * MINUTES - 2_000)
    for (const one of SENSITIVE) expect([one[1], (await ask(browser, one)).status]).toEqual([one[1], one[3]])
    world.clock.move(2_000)
    for (const one of SENSITIVE) expect((await ask(browser, one)).code).toBe('confirm')
  })

  test('go on with two-factor on after the password and a code, grouped or not, and after neither of them alone', async () => {
    const owner = await world.person('code@a.example')
    const app = await turnOnTwoFactor(owner)
    const browser = everywhere(owner)
    world.clock.move(11 * MINUTES)
    const grouped = ` ${app.freshCode.slice(0, 3)} ${app.freshCode.slice(3)}`
    for (const [body, field] of [
      [{ password: PASSWORD }, 'code'],
      [{ password: PASSWORD, code: '' }, 'code'],
      [{ password: PASSWORD, code: app.wrongCode }, 'code'],
      [{ password: NEW, code: app.freshCode }, 'password'],
      [{ password: '', code: app.freshCode }, 'password'],
    ] as const) {
      const { error } = (await browser.call('POST', '/api/confirm', body)).json()
      expect([error.code, Object.keys(error.fields)]).toEqual(['wrong-credentials', [field]])
    }
    expect((await browser.call('POST', '/api/confirm', { code: app.freshCode })).json().error.code).toBe('invalid')
    expect((await ask(browser, SENSITIVE[0]!)).code).toBe('confirm')
    expect((await browser.call('POST', '/api/two-factor/off', {})).json().error.code).toBe('confirm')
    expect((await browser.call('POST', '/api/confirm', { password: PASSWORD, code: grouped })).status).toBe(204)
    expect((await ask(browser, SENSITIVE[0]!)).status).toBe(422)
  })

  test('go on after a backup code with the password, with its dash or without, and each works once', async () => {
    const owner = await world.person('backup@a.example')
    const { backupCodes } = await turnOnTwoFactor(owner)
    const browser = everywhere(owner)
    const [first = '', second = ''] = backupCodes
    for (const code of [first, second.replace('-', '')]) {
      world.clock.move(11 * MINUTES)
      expect((await ask(browser, SENSITIVE[0]!)).code).toBe('confirm')
      expect((await browser.call('POST', '/api/confirm', { password: PASSWORD, code })).status).toBe(204)
      expect((await ask(browser, SENSITIVE[0]!)).status).toBe(422)
      expect((await browser.call('POST', '/api/confirm', { password: PASSWORD, code })).json().error.code).toBe('wrong-credentials')
    }
  })

  test('go on for one session alone when one code comes from two at the same moment', async () => {
    const [one, other] = [await world.person('twice@a.example'), world.browser()]
    const app = await turnOnTwoFactor(one)
    await other.post('/sign-in', { email: 'twice@a.example', password: PASSWORD })
    expect((await other.post('/two-factor', { code: app.backupCodes[0]!, with: 'backup-code' })).location).toBe('/')
    world.clock.move(11 * MINUTES)
    const proof = { password: PASSWORD, code: app.freshCode }
    const visits = await Promise.all([one, other].map((browser) => browser.call('POST', '/api/confirm', proof)))
    expect(visits.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([204, 403])
    const asked = await Promise.all([one, other].map((browser) => ask(browser, SENSITIVE[0]!)))
    expect(asked.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([403, 422])
  })

  test('do not go on for another session of the same person, nor for another person', async () => {
    const [one, other] = [await world.person('both@a.example'), world.browser()]
    await other.post('/sign-in', { email: 'both@a.example', password: PASSWORD })
    const stranger = await world.person('stranger@a.example')
    world.clock.move(11 * MINUTES)
    expect((await one.call('POST', '/api/confirm', { password: PASSWORD })).status).toBe(204)
    expect((await ask(one, SENSITIVE[0]!)).status).toBe(422)
    expect((await ask(other, SENSITIVE[0]!)).code).toBe('confirm')
    expect((await ask(stranger, SENSITIVE[0]!)).code).toBe('confirm')
  })
})

describe('a confirmation', () => {
  test('takes ten wrong passwords within 15 minutes, from wherever they come', async () => {
    const browser = await world.person('ten@b.example')
    const thief = everywhere(browser)
    for (let i = 0; i < 10; i++) expect((await thief.call('POST', '/api/confirm', { password: NEW })).status).toBe(403)
    const refused = await thief.call('POST', '/api/confirm', { password: PASSWORD })
    expect([refused.status, refused.json().error.code, Number(refused.headers.get('retry-after')) > 0]).toEqual([
      429,
      'too-many-requests',
      true,
    ])
    world.clock.move(15 * MINUTES + 1_000)
    expect((await thief.call('POST', '/api/confirm', { password: PASSWORD })).status).toBe(204)
  })

  test('takes ten wrong codes within 15 minutes after the right password, and then not the right one either', async () => {
    const owner = await world.person('codes@b.example')
    const app = await turnOnTwoFactor(owner)
    const browser = everywhere(owner)
    const { throttle } = world.dashboard.identity
    const confirm = async (code: string) => {
      await throttle.clear(WRONG_PASSWORDS, 'codes@b.example') // a thief who has the password can do that by a sign-in
      return await browser.call('POST', '/api/confirm', { password: PASSWORD, code })
    }
    for (let i = 0; i < 10; i++) expect((await confirm(app.wrongCode)).status).toBe(403)
    expect((await confirm(app.freshCode)).status).toBe(429)
    expect((await confirm(app.backupCodes[0] ?? '')).status).toBe(429)
  })

  test('of a person without a password is a new sign-in through the provider, with the code', async () => {
    await using hub = await openWithGitHub({ folder: temporaryFolder() })
    const owner = hub.browser()
    await signInThrough(owner, 'github', { email: 'hub@b.example' })
    const app = await turnOnTwoFactor(owner)
    hub.clock.move(11 * MINUTES)
    expect((await owner.call('POST', '/api/email', { email: 'no address' })).json().error.code).toBe('confirm')
    const [backupCode = ''] = app.backupCodes
    for (const proof of [{ password: PASSWORD, code: backupCode }, { password: '', code: backupCode }, { password: PASSWORD }])
      expect((await owner.call('POST', '/api/confirm', proof)).json().error.code).toBe('conflict')
    expect((await owner.call('POST', '/api/two-factor/off', {})).json().error.code).toBe('confirm')
    hub.clock.move(-11 * MINUTES) // the library gives sessions the time of the machine
    expect((await signInThrough(owner, 'github', { email: 'hub@b.example' })).location).toBe('/two-factor')
    expect((await owner.call('POST', '/api/email', { email: 'no address' })).status).not.toBe(422)
    expect((await owner.post('/two-factor', { code: backupCode, with: 'backup-code' })).location).toBe('/')
    expect((await owner.call('POST', '/api/email', { email: 'no address' })).status).toBe(422)
  })

  test('needs a session, and a field that is a text', async () => {
    expect((await world.browser().call('POST', '/api/confirm', { password: PASSWORD })).status).toBe(401)
    const browser = await world.person('text@b.example')
    for (const body of [
      {},
      { password: [PASSWORD] },
      { password: { $ne: '' } },
      { password: PASSWORD, code: 123_456 },
      { password: 'x'.repeat(513) },
    ])
      expect((await browser.call('POST', '/api/confirm', body)).json().error.code).toBe('invalid')
  })
})
