/** What people and requests write is data: no markup, no header, no address to go on to, no host of a link. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { chooseAtProvider, manySources, openWithGitHub, send, sendToHost, startAtProvider } from '../../test/support/dashboard-requests.ts'
import { type DashboardWorld, FormBrowser, PASSWORD, tokenOf } from '../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../test/support/temporary-folder.ts'

const MARKUP = `"><script>alert(1)</script><img src=x onerror='alert(2)'>\`\${7*7}`

const folder = temporaryFolderOfFile()
let world: DashboardWorld
beforeAll(async () => {
  world = await openWithGitHub({ folder })
})
afterEach(() => world.clock.move(Date.now() - world.clock.now()))
afterAll(async () => {
  await world[Symbol.asyncDispose]()
})

const browser = (): FormBrowser => new FormBrowser(world.origin, manySources)

const FOREIGN = [
  'http://evil.example',
  'https:evil.example',
  '//evil.example',
  '///evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  '/a/../..//evil.example',
  '/./\\evil.example',
  '/%2e%2e//evil.example',
  '/..//evil.example/%2f..',
  '/\t/evil.example',
  '/\n/evil.example',
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  'data:text/html,x',
  '.evil.example',
  '@evil.example',
  ' //evil.example',
  '%2f%2fevil.example',
  'settings',
  '/api/export',
  `/${'x'.repeat(2_000)}`,
]

describe('the place to go on to', () => {
  beforeAll(async () => void (await world.person('own@n.example')))

  test.each(FOREIGN)('is never %j', async (next) => {
    const signedIn = browser()
    expect((await signedIn.post('/sign-in', { email: 'own@n.example', password: PASSWORD, next })).location).toBe('/')
    expect((await signedIn.get(`/sign-in?next=${encodeURIComponent(next)}`)).location).toBe('/')
    for (const path of ['/sign-in', '/sign-up', '/two-factor', '/check-your-mail', '/sign-in?reason=session-ended']) {
      const { text } = await browser().get(`${path}${path.includes('?') ? '&' : '?'}next=${encodeURIComponent(next)}`)
      expect(text).not.toMatch(/evil\.example|javascript:|name="next"/i)
    }
  })

  test('after a provider is our own path, and the provider is told nothing else', async () => {
    for (const next of ['//evil.example', '/a/../..//evil.example', 'http://evil.example', '/settings']) {
      const one = browser()
      const url = await startAtProvider(one, 'github', { next })
      expect(decodeURIComponent(url.href)).not.toContain('evil.example')
      const { location } = await one.get(await chooseAtProvider(url, { email: 'next@n.example' }))
      expect(location).toBe(next === '/settings' ? '/settings' : '/')
    }
  })

  test('cannot be given to the callback of a provider', async () => {
    const one = browser()
    const callback = new URL(await chooseAtProvider(await startAtProvider(one, 'github'), { email: 'more@n.example' }))
    for (const name of ['callbackURL', 'redirect_uri', 'redirectTo', 'next', 'errorCallbackURL', 'newUserCallbackURL'])
      callback.searchParams.set(name, 'http://evil.example')
    expect((await one.get(callback.href)).location).toBe('/')
    callback.searchParams.set('state', 'x')
    expect((await one.get(callback.href)).location).toMatch(/^\/sign-in\?/)
  })

  test('goes on where it is a page of ours', async () => {
    for (const next of ['/settings', '/settings?linked=github', '/verify?token=a.b-c_d']) {
      const visit = await browser().post('/sign-in', { email: 'own@n.example', password: PASSWORD, next })
      expect(visit.location).toBe(next)
    }
  })
})

describe('a link of a mail', () => {
  test('and a redirect have the host of the settings, whatever the request says', async () => {
    const forged = {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
      forwarded: 'host=evil.example',
    }
    const post = async (path: string, fields: Readonly<Record<string, string>>) =>
      await sendToHost(world, 'evil.example', path, {
        headers: { ...forged, ...manySources, origin: world.origin, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(fields).toString(),
      })
    await post('/sign-up', { email: 'host@h.example', password: PASSWORD })
    const verify = await world.mails.wait('host@h.example', 'verify')
    expect(verify.link.startsWith(`${world.origin}/verify?token=`)).toBe(true)
    await world.browser().post('/verify', { token: tokenOf(verify.link), password: PASSWORD })
    await post('/reset', { email: 'host@h.example' })
    expect((await world.mails.wait('host@h.example', 'reset')).link.startsWith(`${world.origin}/reset/new?token=`)).toBe(true)
    const answer = await post('/sign-in', { email: 'host@h.example', password: PASSWORD })
    expect([answer.status, answer.location]).toEqual([303, '/'])
    const provider = await post('/sign-in/github', {})
    expect(provider.text).not.toContain('evil.example')
    expect(world.mails.mails.filter(({ text }) => text.includes('evil.example'))).toEqual([])
  })
})

describe('a header', () => {
  test('cannot be begun by what people write', async () => {
    const name = await world.person('crlf@c.example')
    for (const text of ['a\r\nSet-Cookie: x=y', 'a\nb', 'a\u0000b', 'a\u001bb', 'x'.repeat(64)])
      expect((await name.call('PATCH', '/api/me', { name: text })).status).toBe(422)
    for (const email of [
      'a@c.example\r\nBcc: evil@c.example',
      'a@c.example,evil@c.example',
      'a@c.example evil@c.example',
      'Evil <evil@c.example>',
      'evil&x@c.example',
      'évil@c.example',
      `evil@${'a'.repeat(250)}.example`,
    ]) {
      expect((await browser().post('/sign-up', { email, password: PASSWORD })).status).toBe(422)
      await browser().post('/reset', { email })
      expect((await name.call('POST', '/api/email', { email })).json().error.fields).toHaveProperty('email')
    }
    expect(world.mails.mails.filter(({ to }) => to.includes('evil'))).toEqual([])
    const { headers, location } = await browser().get('/sign-in?reason=x%0d%0aSet-Cookie:%20x=y&next=/%0d%0aSet-Cookie:x=y')
    expect([headers.get('set-cookie'), location]).toEqual([null, ''])
  })
})

describe('markup', () => {
  test('of a form stays text in each page that shows it again', async () => {
    const visits = [
      await browser().post('/sign-up', { email: MARKUP, password: MARKUP, next: MARKUP }),
      await browser().post('/sign-in', { email: MARKUP, password: MARKUP, next: MARKUP }),
      await browser().post('/reset', { email: MARKUP }),
      await browser().post('/check-your-mail', { email: MARKUP }),
      await browser().post('/verify', { token: MARKUP, password: MARKUP, with: MARKUP }),
      await browser().post('/reset/new', { token: MARKUP, password: MARKUP }),
      await browser().post('/two-factor', { code: MARKUP, with: MARKUP, next: MARKUP }),
    ]
    for (const { text } of visits) expect(text).not.toMatch(/<script>|<img|onerror='/)
  })

  test('of an address bar stays text, or is not shown at all', async () => {
    const value = encodeURIComponent(MARKUP)
    const names = ['token', 'with', 'next', 'reason', 'error', 'error_description', 'provider', 'email', 'code']
    const query = names.map((name) => `${name}=${value}`).join('&')
    for (const path of ['/sign-in', '/sign-up', '/verify', '/reset', '/reset/new', '/two-factor', '/check-your-mail', `/${value}`]) {
      const { text } = await browser().get(`${path}?${query}`)
      expect(text).not.toMatch(/<script>|<img|onerror=/)
    }
  })

  test('of a browser, a proxy or a name comes back as JSON that no browser takes for a page', async () => {
    const evil = new FormBrowser(world.origin, {
      'user-agent': '<script>alert(1)</script>',
      'x-forwarded-for': '<script>alert(2)</script>',
    })
    await world.person('agent@m.example')
    await evil.post('/sign-in', { email: 'agent@m.example', password: PASSWORD })
    await evil.call('PATCH', '/api/me', { name: '<script>alert(3)</script>' })
    for (const path of ['/api/me', '/api/sessions', '/api/export']) {
      const { headers, status } = await evil.get(path)
      expect([status, headers.get('content-type'), headers.get('x-content-type-options')]).toEqual([
        200,
        'application/json; charset=utf-8',
        'nosniff',
      ])
    }
    const { sessions } = (await evil.get('/api/sessions')).json()
    expect(sessions[0].agent).toBe('<script>alert(1)</script>')
    expect(sessions[0].address).not.toContain('<')
    expect((await evil.get('/api/export')).headers.get('content-disposition')).toBe('attachment; filename=headgate-data.json')
  })

  test('stays text in mails', async () => {
    const owner = await world.person('mails@m.example')
    await owner.call('PATCH', '/api/me', { name: '<b>x</b>' })
    await owner.call('POST', '/api/email', { email: "o'brien@m.example" })
    const { link } = await world.mails.wait("o'brien@m.example", 'new-address')
    expect((await owner.get(link)).text).toContain('o&#39;brien@m.example')
    expect(world.mails.mails.some(({ text }) => text.includes('<b>x</b>'))).toBe(false)
  })

  test('of a request that is refused does not come back', async () => {
    const value = encodeURIComponent(MARKUP)
    for (const path of [`/api/${value}`, `/api/auth/callback/${value}`, `/${value}`, `/assets/${value}`]) {
      const { text } = await send(world, 'GET', path)
      expect(text).not.toMatch(/alert\(1\)/)
    }
  })
})
