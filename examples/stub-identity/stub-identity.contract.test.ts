import { createHash, createPublicKey, randomBytes, verify, type JsonWebKey } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:http'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { createStubGitHub } from './github.ts'
import { Issued } from './issued.ts'
import { createStubOidc } from './oidc.ts'
import { chosenPerson, STUB_PEOPLE } from './people.ts'
import { signInPage } from './sign-in-page.ts'

const HOME = 'http://localhost:8090/api/auth/callback/stub'
const client = { id: 'headgate', secret: 'a+b c:d&e', redirectURIs: [HOME] }
const verifier = randomBytes(32).toString('base64url')
const challenge = createHash('sha256').update(verifier).digest('base64url')

let clock: ManualClock
let server = createServer() // not every test starts one
let base: string

async function start(made: Server): Promise<void> {
  server = made
  await once(server.listen(0, '127.0.0.1'), 'listening')
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
beforeEach(() => {
  clock = new ManualClock()
})
afterEach(async () => {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
})

type Fields = Readonly<Record<string, string>>

/** An authorization request as the page sends it. @param change parameters that differ; '' leaves one out */
function authorize(path: string, change: Fields = {}, form: Fields = { person: 'ada' }): Promise<Response> {
  const asked = {
    client_id: client.id,
    redirect_uri: HOME,
    response_type: 'code',
    scope: 'openid email profile user:email',
    state: 'the state',
    nonce: 'the nonce',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...change,
  }
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== ''))
  return fetch(`${base}${path}?${query.toString()}`, { method: 'POST', body: new URLSearchParams(form), redirect: 'manual' })
}

async function answerTo(response: Promise<Response>): Promise<Fields> {
  const { status, headers } = await response
  expect(status).toBe(303)
  const url = new URL(headers.get('location')!)
  expect(url.origin + url.pathname).toBe(HOME)
  return Object.fromEntries(url.searchParams)
}

async function codeFrom(path: string, change: Fields = {}, form?: Fields): Promise<string> {
  return (await answerTo(authorize(path, change, form)))['code']!
}

function exchange(path: string, code: string, change: Fields = {}, headers: Fields = { accept: 'application/json' }): Promise<Response> {
  const asked = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: HOME,
    code_verifier: verifier,
    client_id: client.id,
    client_secret: client.secret,
    ...change,
  }
  const body = new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== ''))
  return fetch(base + path, { method: 'POST', body, headers })
}

const bodyOf = async (response: Promise<Response>): Promise<Record<string, unknown>> => (await response).json() as Promise<Fields>
const other = (length: number): string => 'x'.repeat(length)

describe.each([
  {
    name: 'GitHub',
    authorizePath: '/login/oauth/authorize',
    tokenPath: '/login/oauth/access_token',
    refused: 200,
    create: () => createStubGitHub({ client, clock }),
  },
  {
    name: 'OpenID Connect',
    authorizePath: '/authorize',
    tokenPath: '/token',
    refused: 400,
    create: () => createStubOidc({ client, clock }),
  },
])('the stand-in for $name', ({ authorizePath, tokenPath, refused, create }) => {
  beforeEach(() => start(create()))

  it('gives a code and the state of the request to a person on the page', async () => {
    expect(await answerTo(authorize(authorizePath))).toMatchObject({ code: expect.stringMatching(/^.{32}$/), state: 'the state' })
    const { status, headers } = await exchange(tokenPath, await codeFrom(authorizePath))
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  })

  it('redirects nowhere for another client or a redirect URI that is not registered letter by letter', async () => {
    for (const change of [
      { client_id: 'other' },
      { redirect_uri: '' },
      { redirect_uri: `${HOME}/` },
      { redirect_uri: `${HOME}?a=b` },
      { redirect_uri: HOME.replace('localhost', 'evil.example') },
    ]) {
      const { status, headers } = await authorize(authorizePath, change)
      expect([status, headers.get('location')]).toEqual([400, null])
    }
  })

  it('refuses a request without PKCE, or with another method than S256', async () => {
    for (const change of [
      { code_challenge: '' },
      { code_challenge_method: 'plain' },
      { code_challenge_method: '' },
      { code_challenge: 'short' },
    ])
      expect(await answerTo(authorize(authorizePath, change))).toMatchObject({ error: 'invalid_request', state: 'the state' })
  })

  it('gives no token for another code verifier, and ends the code', async () => {
    for (const wrong of ['', other(43), challenge]) {
      const code = await codeFrom(authorizePath)
      const response = await exchange(tokenPath, code, { code_verifier: wrong })
      expect([response.status, await response.json()]).toEqual([refused, expect.objectContaining({ error: expect.any(String) })])
      expect(await bodyOf(exchange(tokenPath, code))).not.toHaveProperty('access_token')
    }
  })

  it('gives no token for another redirect URI than that of the code', async () => {
    for (const wrong of ['', `${HOME}/`])
      expect(await bodyOf(exchange(tokenPath, await codeFrom(authorizePath), { redirect_uri: wrong }))).not.toHaveProperty('access_token')
  })

  it('gives a token once for each code, and none for an unknown code or after 60 seconds', async () => {
    const code = await codeFrom(authorizePath)
    expect(await bodyOf(exchange(tokenPath, code))).toHaveProperty('access_token')
    expect(await bodyOf(exchange(tokenPath, code))).not.toHaveProperty('access_token')
    expect(await bodyOf(exchange(tokenPath, other(32)))).not.toHaveProperty('access_token')
    const [soon, late] = [await codeFrom(authorizePath), await codeFrom(authorizePath)]
    clock.skip(59_999)
    expect(await bodyOf(exchange(tokenPath, soon))).toHaveProperty('access_token')
    clock.skip(1)
    expect(await bodyOf(exchange(tokenPath, late))).not.toHaveProperty('access_token')
  })

  it('takes the secret from the form or from Basic, not from both, and refuses another secret without using up the code', async () => {
    const code = await codeFrom(authorizePath)
    const basic = (id: string, secret: string): Fields => ({
      accept: 'application/json',
      authorization: `Basic ${Buffer.from([id, secret].map(encodeURIComponent).join(':')).toString('base64')}`,
    })
    for (const change of [{ client_secret: 'wrong' }, { client_secret: '' }, { client_id: 'other' }])
      expect(await bodyOf(exchange(tokenPath, code, change))).toHaveProperty('error')
    expect(await bodyOf(exchange(tokenPath, code, { client_secret: '' }, basic(client.id, 'wrong')))).toHaveProperty('error')
    expect(await bodyOf(exchange(tokenPath, code, {}, basic(client.id, client.secret)))).toHaveProperty('error')
    const right = exchange(tokenPath, code, { client_secret: '', client_id: '' }, basic(client.id, client.secret))
    expect(await bodyOf(right)).toHaveProperty('access_token')
  })

  it('says that the person has cancelled', async () => {
    expect(await answerTo(authorize(authorizePath, {}, { cancel: 'yes' }))).toMatchObject({ error: 'access_denied', state: 'the state' })
  })

  it('shows the page again for a form without a person', async () => {
    for (const form of [{}, { person: 'unknown' }, { email: 'no address' }, { email: `${other(260)}@a` }] as Fields[]) {
      const response = await authorize(authorizePath, {}, form)
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('names no person')])
    }
  })

  it('shows a page with forms alone: no script, nothing from elsewhere, nobody may frame the page', async () => {
    const query = new URLSearchParams({
      client_id: client.id,
      redirect_uri: HOME,
      response_type: 'code',
      scope: 'openid',
      code_challenge: challenge,
      code_challenge_method: 'S256',
      login_hint: '"><script>alert(1)</script>',
    })
    const response = await fetch(`${base}${authorizePath}?${query.toString()}`)
    const page = await response.text()
    expect(page).toContain('<h1>Sign in as</h1>')
    expect(page).toContain('Ada Lovelace (ada@example.com)')
    expect(page).not.toContain('<script')
    expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  })

  it('answers 404 for other routes, and 413 for a long form', async () => {
    expect((await fetch(`${base}/toString`)).status).toBe(404)
    expect((await exchange(tokenPath, other(20_000))).status).toBe(413)
  })
})

describe('the stand-in for GitHub', () => {
  const AUTHORIZE = '/login/oauth/authorize'
  const TOKEN = '/login/oauth/access_token'
  beforeEach(() => start(createStubGitHub({ client, clock })))

  const tokenOf = async (change: Fields = {}, form?: Fields): Promise<string> =>
    String((await bodyOf(exchange(TOKEN, await codeFrom(AUTHORIZE, change, form))))['access_token'])
  const read = (path: string, token: string): Promise<Response> => fetch(base + path, { headers: { authorization: `Bearer ${token}` } })

  it('answers errors with the status 200 and the words of GitHub', async () => {
    expect(await bodyOf(exchange(TOKEN, 'unknown'))).toEqual({ error: 'bad_verification_code' })
    expect(await bodyOf(exchange(TOKEN, 'unknown', { client_secret: 'x' }))).toEqual({ error: 'incorrect_client_credentials' })
    const moved = exchange(TOKEN, await codeFrom(AUTHORIZE), { redirect_uri: 'http://localhost:8090/' })
    expect(await bodyOf(moved)).toEqual({ error: 'redirect_uri_mismatch' })
    const text = await (await exchange(TOKEN, 'unknown', {}, {})).text()
    expect(text).toBe('error=bad_verification_code')
  })

  it('shows the address in /user/emails alone, with its verification', async () => {
    const token = await tokenOf({ scope: 'read:user user:email' }, { person: 'niklaus' })
    expect(await (await read('/user', token)).json()).toEqual({
      login: 'niklaus',
      id: expect.any(Number),
      type: 'User',
      name: 'Niklaus Wirth',
      email: null,
    })
    expect(await (await read('/user/emails', token)).json()).toEqual([
      { email: expect.stringContaining('noreply'), primary: false, verified: true, visibility: null },
      { email: 'niklaus@example.com', primary: true, verified: false, visibility: 'private' },
    ])
  })

  it('shows nothing without a token, and no address without the scope', async () => {
    expect((await read('/user', 'unknown')).status).toBe(401)
    expect((await read('/user/emails', await tokenOf({ scope: 'read:user' }))).status).toBe(404)
  })

  it('ends access tokens after an hour', async () => {
    const token = await tokenOf()
    clock.skip(3_600_000)
    expect((await read('/user', token)).status).toBe(401)
  })

  it('keeps the id of an account when its address changes', async () => {
    const idFor = async (form: Fields): Promise<unknown> =>
      ((await (await read('/user', await tokenOf({}, form))).json()) as { id: number }).id
    const id = await idFor({ email: 'old@example.com', account: 'me' })
    expect(await idFor({ email: 'new@example.com', account: 'me' })).toBe(id)
    expect(await idFor({ email: 'old@example.com', account: 'you' })).not.toBe(id)
    expect(await idFor({ email: 'old@example.com' })).not.toBe(id)
  })
})

describe('the stand-in for an OpenID Connect issuer', () => {
  beforeEach(() => start(createStubOidc({ client, clock })))

  /** The claims of an ID token, once its signature is checked against the published keys. */
  async function verified(idToken: unknown): Promise<Record<string, unknown>> {
    const [header = '', payload = '', signature = ''] = String(idToken).split('.')
    const { kid, alg } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string; alg: string }
    const { keys } = (await (await fetch(`${base}/jwks`)).json()) as { keys: (JsonWebKey & { kid: string })[] }
    const key = keys.find((one) => one.kid === kid)!
    expect(key).not.toHaveProperty('d')
    const isSigned = verify(
      'sha256',
      Buffer.from(`${header}.${payload}`),
      createPublicKey({ key, format: 'jwk' }),
      Buffer.from(signature, 'base64url'),
    )
    expect([alg, isSigned]).toEqual(['RS256', true])
    return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
  }
  const signIn = async (change: Fields = {}, form?: Fields): Promise<Record<string, unknown>> =>
    bodyOf(exchange('/token', await codeFrom('/authorize', change, form)))

  it('describes itself by its own address', async () => {
    expect(await (await fetch(`${base}/.well-known/openid-configuration`)).json()).toMatchObject({
      issuer: base,
      authorization_endpoint: `${base}/authorize`,
      token_endpoint: `${base}/token`,
      jwks_uri: `${base}/jwks`,
      code_challenge_methods_supported: ['S256'],
    })
    expect(await answerTo(authorize('/authorize'))).toMatchObject({ iss: base })
  })

  it('signs the ID token of the person for the client, with the nonce of the request', async () => {
    const { id_token } = await signIn()
    const now = Math.floor(clock.now() / 1000)
    expect(await verified(id_token)).toEqual({
      iss: base,
      aud: 'headgate',
      sub: 'ada',
      iat: now,
      exp: now + 3600,
      nonce: 'the nonce',
      email: 'ada@example.com',
      email_verified: true,
      name: 'Ada Lovelace',
    })
    expect(await verified((await signIn({ nonce: '' }))['id_token'])).not.toHaveProperty('nonce')
  })

  it('says whether the address is verified', async () => {
    for (const [form, isVerified] of [
      [{ person: 'niklaus' }, false],
      [{ email: 'b@example.com', verified: 'yes' }, true],
      [{ email: 'b@example.com' }, false],
    ] as const)
      expect(await verified((await signIn({}, form))['id_token'])).toMatchObject({ email_verified: isVerified })
  })

  it('shows the claims of the scopes alone, in the ID token and in userinfo', async () => {
    const { id_token, access_token } = await signIn({ scope: 'openid' })
    expect(await verified(id_token)).not.toHaveProperty('email')
    const userinfo = await fetch(`${base}/userinfo`, { headers: { authorization: `Bearer ${String(access_token)}` } })
    expect(await userinfo.json()).toEqual({ sub: 'ada' })
    expect((await fetch(`${base}/userinfo`)).status).toBe(401)
  })

  it('refuses what it cannot answer, at the redirect URI', async () => {
    for (const [change, error] of [
      [{ response_type: 'token' }, 'unsupported_response_type'],
      [{ scope: 'email' }, 'invalid_scope'],
      [{ prompt: 'none' }, 'login_required'],
    ] as const)
      expect(await answerTo(authorize('/authorize', change))).toMatchObject({ error, state: 'the state' })
    expect(await bodyOf(exchange('/token', 'x', { grant_type: 'password' }))).toEqual({ error: 'unsupported_grant_type' })
    const refused = await exchange('/token', 'x', { client_secret: 'x' })
    expect([refused.status, await refused.json()]).toEqual([401, { error: 'invalid_client' }])
  })
})

test('a flood of codes drops the oldest, and the memory stays bounded', () => {
  const issued = new Issued<number>(1000, new ManualClock())
  const values = Array.from({ length: 1001 }, (_, at) => issued.issue(at))
  expect([issued.read(values[0]!), issued.read(values[1]!), issued.read(values[1000]!)]).toEqual([undefined, 1, 1000])
})

test('the page escapes every text', () => {
  const bad = `'"><img src=x onerror=alert(1)>&`
  const person = { account: bad, name: bad, email: bad, isVerified: true }
  const page = signInPage({ provider: bad, people: [person], goesTo: bad, email: bad, problem: bad })
  expect(page).not.toContain('<img')
  expect(page).not.toContain(`'"`)
  expect(page).toContain('&#39;&quot;&gt;&lt;img')
})

test('a free address gives the same account for upper and lower case', () => {
  const chosen = (email: string): unknown => chosenPerson(new URLSearchParams({ email }), STUB_PEOPLE)?.account
  expect(chosen(' Ada@Example.com ')).toBe(chosen('ada@example.com'))
})
