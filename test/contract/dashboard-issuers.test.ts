/** The dashboard and an issuer that lies, and a strict one. The dashboard believes an ID token that it can check, and nothing else. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startAtProvider } from '../support/dashboard-requests.ts'
import { DashboardWorld, type FormBrowser, PASSWORD, tokenOf, type Visit } from '../support/dashboard-world.ts'
import { HostileIssuer, type Lie } from '../support/hostile-issuer.ts'
import { OidcServer } from '../support/oidc-server.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'

const client = { id: 'headgate', secret: 'a+b c:d&e' }
const credentials = { clientId: client.id, clientSecret: client.secret }

const folder = temporaryFolderOfFile()
let hostile: HostileIssuer
let strict: OidcServer
let world: DashboardWorld
beforeAll(async () => {
  hostile = await HostileIssuer.start({ sub: 'none', email: 'none@h.example', name: 'Nobody' })
  world = await DashboardWorld.open({
    folder,
    providers: async (origin) => {
      strict = await OidcServer.start({ client: { ...client, redirectURIs: [`${origin}/api/auth/callback/strict`] }, people: {} })
      return [
        { kind: 'oidc', id: 'hostile', name: 'Hostile', ...credentials, issuer: hostile.issuer },
        { kind: 'oidc', id: 'strict', name: 'Strict', ...credentials, issuer: strict.issuer },
      ]
    },
  })
})
afterAll(async () => {
  await world[Symbol.asyncDispose]()
  await Promise.all([hostile.stop(), strict.stop()])
})

const isSignedIn = async (browser: FormBrowser): Promise<boolean> => (await browser.get('/api/me')).status === 200
const rowOf = async (email: string) => await (await world.dashboard.identity.auth.$context).internalAdapter.findUserByEmail(email)

async function throughHostile(browser: FormBrowser, lie: Lie, person: { sub: string; email: string; name?: string }): Promise<Visit> {
  hostile.lie = lie
  hostile.person = { name: 'Somebody', ...person }
  const { headers } = await fetch(await startAtProvider(browser, 'hostile'), { redirect: 'manual' })
  return await browser.get(headers.get('location') ?? '')
}

async function throughStrict(browser: FormBrowser, subject: string): Promise<Visit> {
  return await browser.get((await strict.signIn((await startAtProvider(browser, 'strict')).href, subject)).href)
}

describe('an issuer that lies', () => {
  test('signs a person in while it tells the truth', async () => {
    const browser = world.browser()
    expect((await throughHostile(browser, 'none', { sub: 'true', email: 'true@h.example' })).location).toBe('/')
    expect(await isSignedIn(browser)).toBe(true)
  })

  test.each<[Lie, string]>([
    ['wrong-audience', 'did not work'],
    ['wrong-issuer', 'did not work'],
    ['wrong-nonce', 'did not work'],
    ['no-nonce', 'did not work'],
    ['expired', 'did not work'],
    ['forged', 'did not work'],
    ['unsigned', 'did not work'],
    ['userinfo-of-another', 'did not work'],
    ['wrong-issuer-parameter', 'did not work'],
    ['refused-code', 'did not confirm'],
    ['email-not-verified', 'gave us no verified address'],
    ['email-verified-is-text', 'gave us no verified address'],
    ['email-verified-is-absent', 'gave us no verified address'],
  ])('gets nobody in by %s, leaves no row, mails nobody, and ends no sign-up of somebody else', async (lie, words) => {
    const email = `${lie}@h.example`
    const fresh = world.browser()
    const visit = await throughHostile(fresh, lie, { sub: `fresh ${lie}`, email: `new-${email}` })
    expect([visit.status, visit.location.startsWith('/sign-in?')]).toEqual([303, true])
    expect((await fresh.get(visit.location)).text).toContain(words)
    expect([await isSignedIn(fresh), await rowOf(`new-${email}`)]).toEqual([false, null])
    const owner = world.browser()
    await owner.post('/sign-up', { email, password: PASSWORD })
    const { link } = await world.mails.wait(email, 'verify')
    expect(await isSignedIn(owner)).toBe(false)
    await throughHostile(world.browser(), lie, { sub: lie, email })
    expect((await owner.post('/verify', { token: tokenOf(link) })).location).toBe('/')
    expect(world.mails.mails.filter(({ to }) => to === `new-${email}`)).toEqual([])
  })

  test.each<Lie>(['email-not-verified', 'email-verified-is-text', 'email-verified-is-absent'])(
    'no longer signs in a known person by %s',
    async (lie) => {
      const person = { sub: `known ${lie}`, email: `known-${lie}@h.example` }
      expect((await throughHostile(world.browser(), 'none', person)).location).toBe('/')
      const browser = world.browser()
      expect((await throughHostile(browser, lie, person)).location).toMatch(/^\/sign-in\?/)
      expect(await isSignedIn(browser)).toBe(false)
    },
  )

  test('does not get into an account by its address with another subject', async () => {
    await throughHostile(world.browser(), 'none', { sub: 'first', email: 'subject@h.example' })
    const browser = world.browser()
    const visit = await throughHostile(browser, 'none', { sub: 'second', email: 'subject@h.example' })
    expect((await browser.get(visit.location)).text).toContain('already has an account here')
    expect(await isSignedIn(browser)).toBe(false)
  })

  test.each([
    ['a second receiver', 'x@h.example, evil@elsewhere.example'],
    ['a second header', 'x@h.example\r\nBcc: evil@elsewhere.example'],
    ['a name', 'Evil <evil@elsewhere.example>'],
    ['markup', '"><script>alert(1)</script>@h.example'],
    ['nothing', ''],
  ])('gets nobody in with %s in the address', async (_, email) => {
    const browser = world.browser()
    expect((await throughHostile(browser, 'none', { sub: `address ${email}`, email })).location).toMatch(/^\/sign-in\?/)
    expect(await isSignedIn(browser)).toBe(false)
  })

  test('may give any name: the name is data, and no markup of a page', async () => {
    const browser = world.browser()
    const name = `<img src=x onerror=alert(1)>\r\n${'x'.repeat(500)}`
    await throughHostile(browser, 'none', { sub: 'named', email: 'named@h.example', name })
    const me = await browser.get('/api/me')
    expect([me.headers.get('content-type'), me.headers.get('x-content-type-options')]).toEqual([
      'application/json; charset=utf-8',
      'nosniff',
    ])
    expect(me.json().person.name).toBe(`<img src=x onerror=alert(1)> ${'x'.repeat(34)}`)
  })
})

describe('a strict issuer', () => {
  test('signs a verified person in, and later again as the same person with another address', async () => {
    strict.people.set('ada', { email: 'ada@s.example', emailVerified: true, name: 'Ada' })
    const first = world.browser()
    expect((await throughStrict(first, 'ada')).location).toBe('/')
    const { person } = (await first.get('/api/me')).json()
    expect(person).toMatchObject({ email: 'ada@s.example', name: 'Ada', hasPassword: false })
    strict.people.set('ada', { email: 'other@s.example', emailVerified: true })
    const second = world.browser()
    await throughStrict(second, 'ada')
    expect((await second.get('/api/me')).json().person).toMatchObject({ id: person.id, email: 'ada@s.example' })
  })

  test('signs nobody in whose address it has not verified', async () => {
    strict.people.set('bob', { email: 'bob@s.example', emailVerified: false })
    const browser = world.browser()
    expect((await throughStrict(browser, 'bob')).location).toMatch(/^\/sign-in\?.*email_not_verified/)
    expect(await isSignedIn(browser)).toBe(false)
  })
})
