/** A change that would give an account away needs a proof of identity of the last ten minutes. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { manySources, turnOnTwoFactor } from '../../../test/support/dashboard-requests.ts'
import { DashboardWorld, type FormBrowser, PASSWORD } from '../../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'
import { ROUTES } from '../routes.ts'

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

  test('go on after the right code alone', async () => {
    const browser = await world.person('code@a.example')
    const app = await turnOnTwoFactor(browser)
    world.clock.move(11 * MINUTES)
    expect((await browser.call('POST', '/api/confirm', { code: app.wrongCode })).json().error.code).toBe('wrong-credentials')
    expect((await ask(browser, SENSITIVE[0]!)).code).toBe('confirm')
    expect((await browser.call('POST', '/api/confirm', { code: ` ${app.freshCode.slice(0, 3)} ${app.freshCode.slice(3)}` })).status).toBe(
      204,
    )
    expect((await browser.get('/api/me')).status).toBe(200)
    expect((await ask(browser, SENSITIVE[0]!)).status).toBe(422)
  })

  test('go on after a backup code, which works once', async () => {
    const browser = await world.person('backup@a.example')
    const { backupCodes } = await turnOnTwoFactor(browser)
    world.clock.move(11 * MINUTES)
    expect((await browser.call('POST', '/api/confirm', { code: backupCodes[0] })).status).toBe(204)
    expect((await ask(browser, SENSITIVE[0]!)).status).toBe(422)
    world.clock.move(11 * MINUTES)
    expect((await browser.call('POST', '/api/confirm', { code: backupCodes[0] })).json().error.code).toBe('wrong-credentials')
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
    const everywhere = world.browser(manySources)
    for (const [name, value] of browser.cookies) everywhere.cookies.set(name, value)
    for (let i = 0; i < 10; i++) expect((await everywhere.call('POST', '/api/confirm', { password: NEW })).status).toBe(403)
    const refused = await everywhere.call('POST', '/api/confirm', { password: PASSWORD })
    expect([refused.status, refused.json().error.code, Number(refused.headers.get('retry-after')) > 0]).toEqual([
      429,
      'too-many-requests',
      true,
    ])
    world.clock.move(15 * MINUTES + 1_000)
    expect((await everywhere.call('POST', '/api/confirm', { password: PASSWORD })).status).toBe(204)
  })

  test('needs a session, and a field that is a text', async () => {
    expect((await world.browser().call('POST', '/api/confirm', { password: PASSWORD })).status).toBe(401)
    const browser = await world.person('text@b.example')
    for (const body of [{}, { password: [PASSWORD] }, { password: { $ne: '' } }, { code: 123_456 }, { password: 'x'.repeat(513) }])
      expect((await browser.call('POST', '/api/confirm', body)).json().error.code).toBe('invalid')
  })
})
