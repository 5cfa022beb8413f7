/** Where people may have no passwords (`LOCAL_PASSWORDS=false`), no way leads to one. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createStubGitHub } from '../../../examples/stub-identity/github.ts'
import { manySources, signInThrough } from '../../../test/support/dashboard-requests.ts'
import { DashboardWorld, type FormBrowser, PASSWORD, tokenOf } from '../../../test/support/dashboard-world.ts'
import { listening } from '../../../test/support/listening.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'
import type { ProviderSettings } from './providers.ts'

const NEW = 'another quiet heron'
const client = { id: 'headgate', secret: 'secret of the stub' }

const folder = temporaryFolderOfFile()
const stops: (() => void)[] = []
let world: DashboardWorld
/** Links from the time when people had passwords. */
let resetToken: string
let verifyToken: string
let signedUp: FormBrowser
beforeAll(async () => {
  const providers = async (origin: string): Promise<readonly ProviderSettings[]> => {
    const stub = createStubGitHub({ client: { ...client, redirectURIs: [`${origin}/api/auth/callback/github`] } })
    const url = `http://127.0.0.1:${await listening(stub)}`
    stops.push(() => stub.close())
    return [{ kind: 'github', id: 'github', name: 'GitHub', clientId: client.id, clientSecret: client.secret, url, apiURL: url }]
  }
  const before = await DashboardWorld.open({ folder, providers })
  const owner = await before.person('before@a.example')
  const { url } = (await owner.call('POST', '/api/providers/github/link', {})).json()
  const body = new URLSearchParams({ email: 'before@a.example', verified: 'yes' })
  await owner.get((await fetch(url, { method: 'POST', body, redirect: 'manual' })).headers.get('location') ?? '')
  const waits = before.browser()
  await waits.post('/sign-up', { email: 'waits@a.example', password: PASSWORD })
  verifyToken = tokenOf((await before.mails.wait('waits@a.example', 'verify')).link)
  await before.browser().post('/reset', { email: 'before@a.example' })
  resetToken = tokenOf((await before.mails.wait('before@a.example', 'reset')).link)
  await before[Symbol.asyncDispose]()
  world = await DashboardWorld.open({ folder, providers, hasPasswords: false })
  signedUp = browser()
  for (const [name, value] of waits.cookies) signedUp.cookies.set(name, value)
})
afterAll(async () => {
  for (const stop of stops) stop()
  await world[Symbol.asyncDispose]()
})

const browser = (): FormBrowser => world.browser(manySources)

describe('without passwords', () => {
  test.each([
    ['/sign-up', { email: 'new@a.example', password: PASSWORD }],
    ['/sign-up', { email: 'waits@a.example', password: NEW }],
    ['/sign-in', { email: 'before@a.example', password: PASSWORD }],
    ['/reset', { email: 'before@a.example' }],
    ['/check-your-mail', { email: 'waits@a.example' }],
  ])('a form to %s is answered by "nothing here", and changes and mails nothing', async (path, fields) => {
    const { internalAdapter } = await world.dashboard.identity.auth.$context
    const visit = await browser().post(path, fields)
    expect([visit.status, visit.headers.getSetCookie()]).toEqual([404, []])
    expect(await internalAdapter.findUserByEmail('new@a.example')).toBeNull()
    expect(await internalAdapter.findUserByEmail('waits@a.example')).not.toBeNull()
    expect(world.mails.mails).toEqual([])
  })

  test('an old link sets no password and verifies no address', async () => {
    for (const [one, fields] of [
      [signedUp, {}],
      [browser(), { password: NEW }],
      [browser(), { password: PASSWORD, with: 'password' }],
    ] as const) {
      const visit = await one.post('/verify', { token: verifyToken, ...fields })
      expect([visit.status, visit.heading]).toEqual([422, 'This link no longer works'])
    }
    expect((await browser().post('/reset/new', { token: resetToken, password: NEW })).status).toBe(404)
  })

  test('a person signs in through a provider, and gets no password there either', async () => {
    const owner = browser()
    expect((await signInThrough(owner, 'github', { email: 'before@a.example' })).location).toBe('/')
    for (const body of [{ next: NEW }, { current: PASSWORD, next: NEW }]) {
      const visit = await owner.call('POST', '/api/password', body)
      expect([visit.status, visit.json().error.code]).toEqual([404, 'not-found'])
    }
    expect((await owner.call('POST', '/api/confirm', { password: PASSWORD })).json().error.code).toBe('conflict')
    expect((await owner.get('/api/me')).json()).toMatchObject({ person: { hasPassword: false }, installation: { hasPasswords: false } })
  })

  test('the last provider stays, although a password from before is stored', async () => {
    const owner = browser()
    await signInThrough(owner, 'github', { email: 'before@a.example' })
    expect((await owner.call('DELETE', '/api/providers/github')).json().error.code).toBe('conflict')
    expect((await signInThrough(browser(), 'github', { email: 'before@a.example' })).location).toBe('/')
  })

  test('the pages offer providers alone', async () => {
    for (const path of ['/sign-in', '/sign-up']) {
      const { text, status } = await browser().get(path)
      expect([status, text.includes('Continue with GitHub'), text.includes('type="password"')]).toEqual([200, true, false])
    }
    for (const path of ['/reset', '/reset/new?token=x', '/check-your-mail']) expect((await browser().get(path)).status).toBe(404)
  })
})
