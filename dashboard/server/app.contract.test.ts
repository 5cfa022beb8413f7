/** What the server answers to requests that no page of the dashboard sends. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cookieHeader, manySources, send } from '../../test/support/dashboard-requests.ts'
import { DashboardWorld, type FormBrowser, PASSWORD } from '../../test/support/dashboard-world.ts'
import { temporaryFolderOfFile } from '../../test/support/temporary-folder.ts'
import { can } from './accounts/members.ts'
import { ROUTES } from './routes.ts'

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

const folder = temporaryFolderOfFile()
let world: DashboardWorld
let owner: FormBrowser
beforeAll(async () => {
  world = await DashboardWorld.open({ folder })
  owner = await world.person('owner@a.example')
})
afterAll(() => world[Symbol.asyncDispose]())

const pathOf = (path: string): string => path.replace(':provider', 'github').replace(':session', 'x')
const CHANGES = ROUTES.filter(({ method }) => method !== 'GET')
const typeOf = (path: string): string => (path.startsWith('/api/') ? JSON_TYPE : FORM_TYPE)

/** A request of the owner's browser, as a page of another site can cause it. */
const asOwner = (method: string, path: string, headers: Readonly<Record<string, string>>, body?: string) =>
  send(world, method, path, {
    headers: { ...manySources, cookie: cookieHeader(owner), ...headers },
    ...(body === undefined ? {} : { body }),
  })

describe('a request from another site', () => {
  const ORIGINS = [undefined, 'null', 'http://evil.example', 'http://localhost', 'http://localhost:1', 'http://localhost.evil.example']

  test.each(CHANGES.map(({ method, path }) => [method, path] as const))('changes nothing by %s %s', async (method, path) => {
    const body = method === 'DELETE' ? undefined : path.startsWith('/api/') ? '{}' : 'email=owner%40a.example'
    for (const origin of [...ORIGINS, world.origin.replace('http:', 'https:'), `${world.origin}.evil.example`, `${world.origin}/`]) {
      const headers = { ...(body === undefined ? {} : { 'content-type': typeOf(path) }), ...(origin === undefined ? {} : { origin }) }
      const visit = await asOwner(method, pathOf(path), headers, body)
      expect([visit.status, visit.headers.getSetCookie()]).toEqual([403, []])
      if (path.startsWith('/api/')) expect(visit.json().error.code).toBe('wrong-origin')
      else expect(visit.heading).toBe('This page was open for too long')
    }
    expect((await owner.get('/api/me')).status).toBe(200)
  })

  test('may read nothing: no answer allows another origin', async () => {
    for (const path of ['/api/me', '/sign-in', '/']) {
      const { headers } = await asOwner('GET', path, { origin: 'http://evil.example' })
      expect([...headers].filter(([name]) => name.startsWith('access-control'))).toEqual([])
    }
    const preflight = { origin: 'http://evil.example', 'access-control-request-method': 'POST' }
    const { status, headers } = await asOwner('OPTIONS', '/api/email', preflight)
    expect([status, [...headers].filter(([name]) => name.startsWith('access-control'))]).toEqual([403, []])
  })
})

describe('a body', () => {
  test.each(CHANGES.filter(({ method }) => method !== 'DELETE').map(({ method, path }) => [method, path] as const))(
    'of another type than its own is refused by %s %s',
    async (method, path) => {
      const others = [
        JSON_TYPE,
        FORM_TYPE,
        'text/plain',
        'multipart/form-data; boundary=x',
        `text/plain; ${JSON_TYPE}`,
        'application/jsonp',
        '',
      ]
      for (const type of others.filter((one) => one !== typeOf(path))) {
        const headers = { origin: world.origin, 'content-type': type }
        const visit = await asOwner(method, pathOf(path), headers, '{"email":"owner@a.example"}')
        expect([type, visit.status]).toEqual([type, 415])
      }
    },
  )

  test.each([
    ['5 MB', JSON.stringify({ name: 'x'.repeat(5_000_000) })],
    ['an object in 2,000 objects', `${'{"name":'.repeat(2_000)}1${'}'.repeat(2_000)}`.slice(0, 9_000)],
    ['no JSON', '{"name":'],
    ['a text', '"name"'],
    ['an array', '["name"]'],
    ['null', 'null'],
    ['an array for a text', '{"name":["x"]}'],
    ['an object for a text', '{"name":{"toString":"x"}}'],
    ['a number for a text', '{"name":1}'],
    ['a name of the prototype', '{"__proto__":{"name":"x"}}'],
  ])('of %s is refused in words, and changes nothing', async (_, body) => {
    const visit = await asOwner('PATCH', '/api/me', { origin: world.origin, 'content-type': JSON_TYPE }, body)
    expect([visit.status, visit.json().error.code]).toEqual([422, 'invalid'])
    expect(visit.text).not.toMatch(/at .*\.(ts|js)|node_modules|SyntaxError/)
    expect((await owner.get('/api/me')).json().person.name).toBe('')
  })

  test('of 5 MB or with a field twice is refused by a form, too', async () => {
    const headers = { origin: world.origin, 'content-type': FORM_TYPE }
    const big = await asOwner('POST', '/sign-in', headers, `email=x&password=${'x'.repeat(5_000_000)}`)
    expect([big.status, big.text.includes('node_modules')]).toEqual([422, false])
    const twice = await asOwner('POST', '/sign-in', headers, `email=owner%40a.example&email=b&password=${PASSWORD}&password=x`)
    expect(twice.status).toBe(403)
  })

  test('cannot set what a person may not: only the fields of the route count', async () => {
    const fields = {
      name: 'Maya',
      id: 'x',
      email: 'evil@a.example',
      emailVerified: false,
      role: 'admin',
      twoFactorEnabled: true,
      plan: 'gold',
    }
    const { id, email } = (await owner.get('/api/me')).json().person
    const visit = await owner.call('PATCH', '/api/me', fields)
    expect(visit.json()).toMatchObject({
      person: { name: 'Maya', id, email, role: 'owner', twoFactor: { isOn: false } },
      account: { plan: 'default' },
    })
    await owner.call('PATCH', '/api/me', { name: '' })
  })
})

describe('the routes', () => {
  test.each(ROUTES.filter(({ access }) => access !== 'anyone').map(({ method, path }) => [method, path] as const))(
    '%s %s needs a session',
    async (method, path) => {
      const headers = { origin: world.origin, ...(method === 'GET' || method === 'DELETE' ? {} : { 'content-type': JSON_TYPE }) }
      const body = method === 'GET' || method === 'DELETE' ? {} : { body: '{}' }
      for (const cookie of ['', 'headgate.session_token=x', 'headgate.session_token=x.y; headgate.session_data=e30'])
        for (const extra of [{}, { authorization: 'Bearer x' }, { 'x-headgate-client': '127.0.0.1' }]) {
          const visit = await send(world, method, pathOf(path), { headers: { ...headers, ...extra, cookie }, ...body })
          if (path.startsWith('/api/')) expect([visit.status, visit.json().error.code]).toEqual([401, 'session-ended'])
          else expect([visit.status, visit.location]).toEqual([303, `/sign-in?next=${encodeURIComponent(pathOf(path))}`])
        }
    },
  )

  test('below /api and the two paths of the app are for members, and the others are these', () => {
    expect(ROUTES.flatMap(({ method, path, access }) => (access === 'anyone' ? [`${method} ${path}`] : []))).toEqual([
      'GET /sign-up',
      'POST /sign-up',
      'GET /check-your-mail',
      'POST /check-your-mail',
      'GET /verify',
      'POST /verify',
      'GET /sign-in',
      'POST /sign-in',
      'POST /sign-in/:provider',
      'GET /api/auth/callback/:provider',
      'GET /two-factor',
      'POST /two-factor',
      'GET /reset',
      'POST /reset',
      'GET /reset/new',
      'POST /reset/new',
    ])
  })

  test('ask for an action that the only role may do, and a role that is none may do nothing', () => {
    for (const { access } of ROUTES) if (access !== 'anyone') expect(can('owner', access)).toBe(true)
    expect(can('owner', 'books.write' as 'account.read')).toBe(false)
  })

  test('of the identity library are not there', async () => {
    const gets = ['get-session', 'list-sessions', 'ok', 'error', 'verify-email?token=x', 'reset-password/x', 'delete-user/callback?token=x']
    const posts = [
      'sign-in/email',
      'sign-in/social',
      'sign-up/email',
      'update-user',
      'update-session',
      'change-email',
      'delete-user',
      'set-password',
    ]
    const more = [
      'two-factor/enable',
      'two-factor/disable',
      'two-factor/send-otp',
      'two-factor/view-backup-codes',
      'callback/github',
      'revoke-session',
    ]
    for (const path of [...gets, ...more]) expect((await asOwner('GET', `/api/auth/${path}`, {})).status).toBe(404)
    for (const path of [...gets, ...posts, ...more]) {
      const headers = { origin: world.origin, 'content-type': JSON_TYPE }
      const body = JSON.stringify({ email: 'owner@a.example', password: PASSWORD, name: 'x', newEmail: 'x@a.example' })
      expect([path, (await asOwner('POST', `/api/auth/${path}`, headers, body)).status]).toEqual([path, 404])
    }
  })

  test('answer odd paths and headers in words', async () => {
    const odd = [
      '/%',
      '/sign-in/%ff',
      '/api/%00',
      '//evil.example/sign-in',
      '/assets/../../package.json',
      '/assets/%2e%2e/web/icon.svg',
      '/api',
      '/.env',
    ]
    for (const path of odd) {
      const { status, text } = await asOwner('GET', path, {})
      expect([path, status >= 400 && status < 500, /node_modules|at .*\.ts/.test(text)]).toEqual([path, true, false])
    }
    for (const cookie of ['=', ';;;', 'headgate.session_token=%E0%A4%A', `headgate.sign_up=${'x'.repeat(4_000)}`, 'a'.repeat(8_000)])
      expect((await send(world, 'GET', '/check-your-mail', { headers: { cookie } })).status).toBe(303)
  })
})

describe('the headers', () => {
  const POLICY = "default-src 'self';base-uri 'none';object-src 'none';form-action 'self';frame-ancestors 'none'"

  test.each(['/sign-in', '/', '/api/me', '/icon.svg', '/nothing', '/api/nothing', '/verify?token=x'])(
    'of %s let nothing foreign in',
    async (path) => {
      const { headers } = await asOwner('GET', path, {})
      expect(Object.fromEntries(headers)).toMatchObject({
        'content-security-policy': POLICY,
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'x-request-id': expect.stringMatching(/^req_/),
      })
      for (const name of ['x-powered-by', 'server', 'strict-transport-security', 'etag'])
        expect([name, headers.get(name)]).toEqual([name, null])
      if (path !== '/icon.svg') expect(headers.get('cache-control')).toBe('no-store')
    },
  )

  test('are there on refusals of all kinds, too', async () => {
    const refusals = [
      await asOwner('POST', '/api/email', { origin: 'http://evil.example' }, '{}'),
      await asOwner('POST', '/sign-in', { origin: world.origin, 'content-type': 'text/plain' }, 'x'),
      await asOwner('PATCH', '/api/me', { origin: world.origin, 'content-type': JSON_TYPE }, '{'),
    ]
    for (const { headers } of refusals) {
      expect(headers.get('content-security-policy')).toBe(POLICY)
      expect(headers.get('cache-control')).toBe('no-store')
    }
  })
})
