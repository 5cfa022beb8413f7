/** A sign-in through a provider proves only the facts that the provider has verified. */
import { once } from 'node:events'
import { accounts } from '#api/resources.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createStubGitHub } from '../../../examples/stub-identity/github.ts'
import { createStubOidc } from '../../../examples/stub-identity/oidc.ts'
import { chooseAtProvider, send, signInThrough, startAtProvider } from '../../../test/support/dashboard-requests.ts'
import { DashboardWorld, type FormBrowser, PASSWORD, tokenOf } from '../../../test/support/dashboard-world.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { listening } from '../../../test/support/listening.ts'
import { temporaryFolderOfFile } from '../../../test/support/temporary-folder.ts'

const client = { id: 'headgate', secret: 'secret of the stub' }
const credentials = { clientId: client.id, clientSecret: client.secret }
const MISMATCH = 'This sign-in was started in another browser'

const folder = temporaryFolderOfFile()
let world: DashboardWorld
const stops: (() => void)[] = []
let latePort: number
beforeAll(async () => {
  latePort = await freePort()
  world = await DashboardWorld.open({
    folder,
    providers: async (origin) => {
      const back = (id: string) => ({ client: { ...client, redirectURIs: [`${origin}/api/auth/callback/${id}`] } })
      const [github, google, broken] = [createStubGitHub(back('github')), createStubOidc(back('google')), createStubGitHub(back('broken'))]
      stops.push(...[github, google, broken].map((stub) => () => stub.close()))
      const [hub, issuer, half] = [await listening(github), await listening(google), await listening(broken)].map(
        (port) => `http://127.0.0.1:${port}`,
      ) as [string, string, string]
      return [
        { kind: 'github', id: 'github', name: 'GitHub', ...credentials, url: hub, apiURL: hub },
        { kind: 'oidc', id: 'google', name: 'Google', ...credentials, issuer },
        { kind: 'oidc', id: 'late', name: 'Late', ...credentials, issuer: `http://127.0.0.1:${latePort}` },
        { kind: 'github', id: 'broken', name: 'Broken', ...credentials, url: half, apiURL: `http://127.0.0.1:${latePort}/nothing` },
      ]
    },
  })
})
afterAll(async () => {
  for (const stop of stops) stop()
  await world[Symbol.asyncDispose]()
})

const isSignedIn = async (browser: FormBrowser): Promise<boolean> => (await browser.get('/api/me')).status === 200
const rowOf = async (email: string) => await (await world.dashboard.identity.auth.$context).internalAdapter.findUserByEmail(email)

/** Goes on as a browser does. @returns the page that a failed sign-in leads to */
async function failure(browser: FormBrowser, callback: string): Promise<string> {
  const visit = await browser.get(callback)
  expect([visit.status, visit.location.startsWith('/sign-in?')]).toEqual([303, true])
  expect(await isSignedIn(browser)).toBe(false)
  return (await browser.get(visit.location)).text
}

describe.each(['github', 'google'])('%s', (id) => {
  const at = (name: string): string => `${name}-${id}@p.example`

  test('signs a person in by an address that it has verified, and keeps no token of the provider', async () => {
    const browser = world.browser()
    const visit = await signInThrough(browser, id, { email: at('new') })
    expect([visit.location, await isSignedIn(browser)]).toEqual(['/', true])
    const { internalAdapter } = await world.dashboard.identity.auth.$context
    const [account] = await internalAdapter.findAccounts((await rowOf(at('new')))?.user.id ?? '')
    const line = world.lines.find((one) => one.includes(account?.userId ?? '?') && one.includes('"audit":"person.sign-in"')) ?? '{}'
    expect(JSON.parse(line)).toMatchObject({ by: id, person: account?.userId, request: expect.stringMatching(/^req_/) })
    expect((await world.store.list(accounts, '')).filter(({ spec }) => spec.owner?.email === at('new'))).toHaveLength(1)
    expect(account).toMatchObject({ providerId: id, accessToken: null, refreshToken: null, idToken: null })
    expect(world.mails.mails.filter(({ to }) => to === at('new'))).toEqual([])
  })

  test('leaves no row, no mail and no session for an address that it has not verified', async () => {
    const browser = world.browser()
    const url = await startAtProvider(browser, id)
    const text = await failure(browser, await chooseAtProvider(url, { email: at('unproven'), isVerified: false }))
    expect(text).toContain('gave us no verified address')
    expect(await rowOf(at('unproven'))).toBeNull()
    expect(world.mails.mails.filter(({ to }) => to === at('unproven'))).toEqual([])
  })

  test('lets the owner in where a stranger has signed up, and the stranger stays out', async () => {
    const attacker = world.browser()
    await attacker.post('/sign-up', { email: at('hijack'), password: PASSWORD })
    const { link } = await world.mails.wait(at('hijack'), 'verify')
    const victim = world.browser()
    expect((await signInThrough(victim, id, { email: at('hijack') })).location).toBe('/')
    expect(await isSignedIn(victim)).toBe(true)
    for (const browser of [attacker, world.browser()]) {
      expect((await browser.post('/verify', { token: tokenOf(link), password: PASSWORD })).status).toBe(422)
      expect((await browser.post('/verify', { token: tokenOf(link) })).status).toBe(422)
    }
    expect(await isSignedIn(attacker)).toBe(false)
    expect((await world.browser().post('/sign-in', { email: at('hijack'), password: PASSWORD })).status).toBe(403)
  })

  test('does not end the sign-up of somebody whose address it has not verified', async () => {
    const owner = world.browser()
    await owner.post('/sign-up', { email: at('waits'), password: PASSWORD })
    const { link } = await world.mails.wait(at('waits'), 'verify')
    await signInThrough(world.browser(), id, { email: at('waits'), isVerified: false })
    expect((await owner.post('/verify', { token: tokenOf(link) })).location).toBe('/')
  })

  test('is not joined in silence to an account with the same address; the settings join it', async () => {
    const owner = await world.person(at('same'))
    const browser = world.browser()
    const url = await startAtProvider(browser, id)
    expect(await failure(browser, await chooseAtProvider(url, { email: at('same') }))).toContain('already has an account here')
    const { url: link } = (await owner.call('POST', `/api/providers/${id}/link`, {})).json()
    expect((await owner.get(await chooseAtProvider(new URL(link), { email: at('same') }))).location).toBe(`/settings?linked=${id}`)
    await world.mails.wait(at('same'), 'provider-linked')
    expect(world.lines.some((line) => line.includes('"audit":"person.link"') && line.includes(`"provider":"${id}"`))).toBe(true)
    expect((await signInThrough(browser, id, { email: at('same') })).location).toBe('/')
    expect((await browser.get('/api/me')).json().person.id).toBe((await owner.get('/api/me')).json().person.id)
  })

  test('is reported to the owner although the browser that comes back has lost its session', async () => {
    const owner = await world.person(at('lost'))
    const { url } = (await owner.call('POST', `/api/providers/${id}/link`, {})).json()
    const callback = await chooseAtProvider(new URL(url), { email: at('lost') })
    for (const name of [...owner.cookies.keys()]) if (name.includes('session')) owner.cookies.delete(name)
    await owner.get(callback)
    await world.mails.wait(at('lost'), 'provider-linked')
  })

  test('answers only the browser that asked, once, with nothing changed', async () => {
    const browser = world.browser()
    const callback = new URL(await chooseAtProvider(await startAtProvider(browser, id), { email: at('state') }))
    expect(await failure(world.browser(), callback.href)).toContain(MISMATCH)
    const other = world.browser()
    await startAtProvider(other, id) // a sign-in of its own is under way
    expect(await failure(other, callback.href)).toContain(MISMATCH)
    for (const state of ['', 'x', `${callback.searchParams.get('state')}x`]) {
      const changed = new URL(callback)
      changed.searchParams.set('state', state)
      await failure(browser, changed.href)
    }
    expect((await browser.get(callback.href)).location).toBe('/')
    expect(await isSignedIn(browser)).toBe(true)
    const again = world.browser()
    for (const [name, value] of browser.cookies) if (!name.includes('session')) again.cookies.set(name, value)
    expect(await failure(again, callback.href)).toContain(MISMATCH)
  })

  test('is asked with a proof key, a state and our own address, whatever the Host header says', async () => {
    const browser = world.browser()
    const url = await startAtProvider(browser, id)
    const { code_challenge_method: method, code_challenge: challenge, redirect_uri: uri, state } = Object.fromEntries(url.searchParams)
    expect([method, challenge?.length, uri]).toEqual(['S256', 43, `${world.origin}/api/auth/callback/${id}`])
    expect(state?.length).toBeGreaterThanOrEqual(32)
    const [first, second] = [await startAtProvider(world.browser(), id), await startAtProvider(world.browser(), id)]
    for (const name of ['state', 'code_challenge']) expect(first.searchParams.get(name)).not.toBe(second.searchParams.get(name))
  })

  test('gives no session for a code of another sign-in or no code at all', async () => {
    const [victim, attacker] = [world.browser(), world.browser()]
    const stolen = new URL(await chooseAtProvider(await startAtProvider(victim, id), { email: at('code') }))
    const own = new URL(await chooseAtProvider(await startAtProvider(attacker, id), { email: at('evil') }))
    own.searchParams.set('code', stolen.searchParams.get('code') ?? '')
    await failure(attacker, own.href) // the proof key belongs to the other sign-in
    const none = new URL(await chooseAtProvider(await startAtProvider(world.browser(), id), { email: at('evil') }))
    none.searchParams.delete('code')
    await failure(world.browser(), none.href)
    expect(await rowOf(at('code'))).toBeNull()
  })

  test('never puts its own words into a page', async () => {
    const browser = world.browser()
    const state = (await startAtProvider(browser, id)).searchParams.get('state') ?? ''
    const words = new URLSearchParams({ error: '<b>evil</b>', error_description: 'call+evil.example <script>', state, iss: 'x' })
    const text = await failure(browser, `/api/auth/callback/${id}?${words.toString()}`)
    expect(text).not.toMatch(/evil|<script>|<b>evil/)
  })
})

describe('two providers', () => {
  test('are not mixed up: an answer meant for one counts for no other', async () => {
    const browser = world.browser()
    const callback = await chooseAtProvider(await startAtProvider(browser, 'github'), { email: 'mixed@p.example' })
    await failure(browser, callback.replace('/callback/github', '/callback/google'))
    expect(await rowOf('mixed@p.example')).toBeNull()
  })
})

describe('two providers with one address', () => {
  test('are not joined in silence', async () => {
    const first = world.browser()
    await signInThrough(first, 'github', { email: 'one@p.example' })
    const second = world.browser()
    const callback = await chooseAtProvider(await startAtProvider(second, 'google'), { email: 'one@p.example' })
    expect(await failure(second, callback)).toContain('already has an account here')
    expect((await first.get('/api/providers')).json().providers.filter((one: { isLinked: boolean }) => one.isLinked)).toHaveLength(1)
  })

  test('can be unlinked while another way is left, and the owner is told', async () => {
    const owner = await world.person('unlink@p.example')
    const { url } = (await owner.call('POST', '/api/providers/github/link', {})).json()
    await owner.get(await chooseAtProvider(new URL(url), { email: 'other-address@p.example' }))
    expect((await owner.call('DELETE', '/api/providers/github')).status).toBe(204)
    await world.mails.wait('unlink@p.example', 'provider-unlinked')
    expect((await owner.get('/api/providers')).json().providers.filter((one: { isLinked: boolean }) => one.isLinked)).toEqual([])
    const browser = world.browser()
    await signInThrough(browser, 'github', { email: 'other-address@p.example' })
    expect((await browser.get('/api/me')).json().person.email).toBe('other-address@p.example') // a person of its own now
  })

  test('cannot both be taken away: one way to sign in stays', async () => {
    const browser = world.browser()
    await signInThrough(browser, 'github', { email: 'stay@p.example' })
    const last = await browser.call('DELETE', '/api/providers/github')
    expect([last.status, last.json().error.code]).toEqual([409, 'conflict'])
    expect((await signInThrough(world.browser(), 'github', { email: 'stay@p.example' })).location).toBe('/')
  })
})

describe('a provider that does not answer', () => {
  test('is said so, stops nobody from signing in another way, and works once it answers', async () => {
    const down = await world.browser().post('/sign-in/late', {})
    expect([down.status, down.text.includes('Late does not answer')]).toEqual([503, true])
    await world.person('meanwhile@p.example')
    const late = createStubOidc({ client: { ...client, redirectURIs: [`${world.origin}/api/auth/callback/late`] } })
    await once(late.listen(latePort, '127.0.0.1'), 'listening')
    expect((await signInThrough(world.browser(), 'late', { email: 'late@p.example' })).location).toBe('/')
    const browser = world.browser()
    const callback = await chooseAtProvider(await startAtProvider(browser, 'late'), { email: 'late@p.example' })
    late.close()
    late.closeAllConnections()
    expect(await failure(browser, callback)).toContain('Late')
  })

  test('between the two steps leads back to sign-in, not to an error of ours', async () => {
    const browser = world.browser()
    const callback = await chooseAtProvider(await startAtProvider(browser, 'broken'), { email: 'broken@p.example' })
    expect(await failure(browser, callback)).toContain('Broken')
    expect(await rowOf('broken@p.example')).toBeNull()
  })

  test('is not asked for at all by a name that is not set up', async () => {
    expect((await world.browser().post('/sign-in/unknown', {})).status).toBe(404)
    expect((await send(world, 'GET', '/api/auth/callback/unknown?code=x&state=y')).status).toBe(404)
    expect((await world.browser().post('/sign-in/__proto__', {})).status).toBe(404)
  })
})
