/** The parts that tests of the dashboard stand on: a mail server, codes of an authenticator app, a strict issuer and one that lies. */
import { createHash, createPublicKey, randomBytes, verify, type JsonWebKey } from 'node:crypto'
import { createTransport } from 'nodemailer'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { HostileIssuer, type Lie } from '../support/hostile-issuer.ts'
import { MailServer } from '../support/mail-server.ts'
import { OidcServer } from '../support/oidc-server.ts'
import { totpCode } from '../support/totp.ts'

describe('the codes of an authenticator app', () => {
  it.each([
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ])('are those of RFC 6238 at %i s', (seconds, code) => {
    const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ' // 12345678901234567890
    expect(totpCode(secret, seconds * 1000, 8)).toBe(code)
    expect(totpCode(`${secret.toLowerCase()}====`, seconds * 1000)).toBe(code.slice(2))
  })

  it('need a secret in Base32', () => {
    expect(() => totpCode('189', 0)).toThrow('1 is not a Base32 character')
  })
})

describe('the mail server', () => {
  let server: MailServer
  beforeEach(async () => {
    server = await MailServer.start()
  })
  afterEach(() => server.stop())

  const transport = (auth = {}) => createTransport({ host: '127.0.0.1', port: server.port, ignoreTLS: true, ...auth })
  const send = (to: string, subject: string, text = 'Hello', auth = {}) =>
    transport(auth).sendMail({ from: 'Headgate <no-reply@headgate.example>', to, subject, text, html: `<p>${text}</p>` })

  it('returns mails by address and subject, each of them once, before or after they come', async () => {
    const later = server.nextMail('ADA@example.com', /second/i)
    await send('ada@example.com', 'The first')
    await send('bob@example.com', 'The second')
    await send('ada@example.com', 'The second')
    expect((await server.nextMail('ada@example.com')).subject).toBe('The first')
    expect((await later).envelope).toEqual({ from: 'no-reply@headgate.example', to: ['ada@example.com'] })
    const again = server.nextMail('ada@example.com')
    await send('ada@example.com', 'The third')
    expect((await again).subject).toBe('The third')
    expect(server.mails).toHaveLength(4)
  })

  it('reads texts in any language, HTML, links and the name of the client', async () => {
    const link = `http://localhost:8090/verify?token=${'x'.repeat(200)}`
    await send('ada@example.com', 'Bestätige ✓ deine Adresse', `Öffne ${link} heute`, { auth: { user: 'mailer', pass: 'any' } })
    expect(await server.nextMail('ada@example.com')).toMatchObject({
      subject: 'Bestätige ✓ deine Adresse',
      from: 'no-reply@headgate.example',
      text: expect.stringContaining('Öffne'),
      html: expect.stringContaining('<p>Öffne'),
      links: [link],
      user: 'mailer',
    })
  })

  it('refuses some mails for now, or all for good, until the test ends the failure', async () => {
    server.fail(1)
    await expect(send('ada@example.com', 'a')).rejects.toMatchObject({ responseCode: 451 })
    await send('ada@example.com', 'b')
    server.fail('reject')
    await expect(send('ada@example.com', 'c')).rejects.toMatchObject({ responseCode: 550 })
    await expect(send('ada@example.com', 'd')).rejects.toMatchObject({ responseCode: 550 })
    server.fail(0)
    await send('ada@example.com', 'e')
    expect(server.mails.map(({ subject }) => subject)).toEqual(['b', 'e'])
  })

  it('ends at once although a pool keeps a connection, and starts again on its port', async () => {
    const pool = createTransport({ host: '127.0.0.1', port: server.port, ignoreTLS: true, pool: true })
    const mail = { from: 'a@example.com', to: 'b@example.com', subject: 'x', text: 'x' }
    await pool.sendMail(mail)
    await server.stop()
    await expect(send('ada@example.com', 'a')).rejects.toMatchObject({ code: 'ESOCKET' })
    server = await MailServer.start(server.port)
    await pool.sendMail(mail)
    pool.close()
    expect(server.mails).toHaveLength(1)
  })
})

const client = { id: 'headgate', secret: 'the secret', redirectURIs: ['http://localhost:8090/api/auth/callback/acme'] }
const [redirectURI = ''] = client.redirectURIs
const verifier = randomBytes(32).toString('base64url')
const challenge = createHash('sha256').update(verifier).digest('base64url')

interface Discovered {
  readonly issuer: string
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly userinfo_endpoint: string
  readonly jwks_uri: string
}

const jsonOf = async <T>(url: string, init?: RequestInit): Promise<T> => (await fetch(url, init)).json() as Promise<T>

function authorizationURL({ authorization_endpoint }: Discovered, change: Readonly<Record<string, string>> = {}): string {
  const asked = {
    client_id: client.id,
    redirect_uri: redirectURI,
    response_type: 'code',
    scope: 'openid email profile',
    state: 'the-state',
    nonce: 'the-nonce',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...change,
  }
  return `${authorization_endpoint}?${new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== '')).toString()}`
}

interface Tokens {
  readonly error?: string
  readonly id_token?: string
  readonly access_token?: string
}

function exchange({ token_endpoint }: Discovered, code: string | null, change: Readonly<Record<string, string>> = {}): Promise<Tokens> {
  const authorization = `Basic ${Buffer.from(`${client.id}:${encodeURIComponent(client.secret)}`).toString('base64')}`
  const asked = { grant_type: 'authorization_code', code: code ?? '', redirect_uri: redirectURI, code_verifier: verifier, ...change }
  return jsonOf(token_endpoint, { method: 'POST', headers: { authorization }, body: new URLSearchParams(asked) })
}

async function claimsOf(
  { jwks_uri }: Discovered,
  idToken = '',
): Promise<{ readonly claims: Record<string, unknown>; readonly isSigned: boolean }> {
  const [header = '', payload = '', signature = ''] = idToken.split('.')
  const parts = [header, payload].map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>)
  const { keys } = await jsonOf<{ keys: JsonWebKey[] }>(jwks_uri)
  const key = createPublicKey({ key: keys[0]!, format: 'jwk' })
  const isSigned =
    parts[0]!['alg'] === 'RS256' && verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))
  return { claims: parts[1]!, isSigned }
}

describe('the strict issuer', () => {
  let issuer: OidcServer
  let discovered: Discovered
  beforeAll(async () => {
    issuer = await OidcServer.start({ client, people: { 'person-1': { email: 'ada@example.com', emailVerified: true, name: 'Ada' } } })
    discovered = await jsonOf<Discovered>(issuer.discoveryURL)
  })
  afterAll(() => issuer.stop())

  it('signs a person in through its pages', async () => {
    const back = await issuer.signIn(authorizationURL(discovered), 'person-1')
    expect(back.origin + back.pathname).toBe(redirectURI)
    expect(Object.fromEntries(back.searchParams)).toEqual({ code: expect.any(String), state: 'the-state', iss: issuer.issuer })
    const { id_token, access_token } = await exchange(discovered, back.searchParams.get('code'))
    expect(await claimsOf(discovered, id_token)).toMatchObject({
      isSigned: true,
      claims: {
        iss: issuer.issuer,
        aud: 'headgate',
        sub: 'person-1',
        nonce: 'the-nonce',
        email: 'ada@example.com',
        email_verified: true,
        name: 'Ada',
      },
    })
    const userinfo = await jsonOf(discovered.userinfo_endpoint, { headers: { authorization: `Bearer ${access_token}` } })
    expect(userinfo).toMatchObject({ sub: 'person-1', email: 'ada@example.com' })
  })

  it('says of the address what the test says, and nothing where the test says nothing', async () => {
    const claims = async (): Promise<Record<string, unknown>> => {
      const back = await issuer.signIn(authorizationURL(discovered), 'person-2')
      return (await claimsOf(discovered, (await exchange(discovered, back.searchParams.get('code'))).id_token)).claims
    }
    issuer.people.set('person-2', { email: 'bob@example.com', emailVerified: false })
    expect(await claims()).toMatchObject({ email: 'bob@example.com', email_verified: false })
    issuer.people.set('person-2', { email: 'new@example.com', emailVerified: 'false' })
    expect(await claims()).toMatchObject({ email: 'new@example.com', email_verified: 'false' })
    issuer.people.set('person-2', { email: 'new@example.com' })
    expect(await claims()).not.toHaveProperty('email_verified')
  })

  it('refuses a request without PKCE, an unknown redirect URI, another verifier and a used code', async () => {
    const refused = await issuer.signIn(authorizationURL(discovered, { code_challenge: '', code_challenge_method: '' }), 'person-1')
    expect(refused.searchParams.get('error')).toBe('invalid_request')
    await expect(issuer.signIn(authorizationURL(discovered, { redirect_uri: `${redirectURI}/` }), 'person-1')).rejects.toThrow('400')
    const code = async (): Promise<string | null> =>
      (await issuer.signIn(authorizationURL(discovered), 'person-1')).searchParams.get('code')
    expect((await exchange(discovered, await code(), { code_verifier: 'x'.repeat(43) })).error).toBe('invalid_grant')
    const used = await code()
    expect((await exchange(discovered, used)).error).toBeUndefined()
    expect((await exchange(discovered, used)).error).toBe('invalid_grant')
  })

  it('does not sign in an unknown person', async () => {
    await expect(issuer.signIn(authorizationURL(discovered), 'nobody')).rejects.toThrow('no way through')
  })
})

describe('the issuer that lies', () => {
  const person = { sub: 'person-1', email: 'ada@example.com', name: 'Ada' }
  let issuer: HostileIssuer
  let discovered: Discovered
  beforeAll(async () => {
    issuer = await HostileIssuer.start(person)
    discovered = await jsonOf<Discovered>(issuer.discoveryURL)
  })
  afterAll(() => issuer.stop())

  /** One sign-in with a lie. */
  async function signIn(lie: Lie) {
    issuer.lie = lie
    const redirected = await fetch(authorizationURL(discovered), { redirect: 'manual' })
    const back = new URL(redirected.headers.get('location')!)
    const tokens = await exchange(discovered, back.searchParams.get('code'), { client_id: client.id })
    const idToken = tokens.id_token === undefined ? undefined : await claimsOf(discovered, tokens.id_token)
    const userinfo = await jsonOf<Record<string, unknown>>(discovered.userinfo_endpoint)
    return { back, tokens, idToken, userinfo, claims: idToken?.claims ?? {} }
  }

  it('tells the truth unless a test asks for a lie', async () => {
    const { back, idToken, userinfo } = await signIn('none')
    const truth = { ...person, email_verified: true }
    expect(back.searchParams.get('iss')).toBe(issuer.issuer)
    expect(userinfo).toEqual(truth)
    expect(idToken).toMatchObject({ isSigned: true, claims: { ...truth, iss: issuer.issuer, aud: 'headgate', nonce: 'the-nonce' } })
    expect(Number(idToken?.claims['exp'])).toBeGreaterThan(Date.now() / 1000)
  })

  it.each<[Lie, Record<string, unknown>]>([
    ['wrong-audience', { aud: 'another-client' }],
    ['wrong-issuer', { iss: 'https://issuer.example' }],
    ['wrong-nonce', { nonce: 'another-nonce' }],
    ['email-not-verified', { email_verified: false }],
    ['email-verified-is-text', { email_verified: 'false' }],
  ])('signs the lie: %s', async (lie, claims) => {
    expect((await signIn(lie)).idToken).toMatchObject({ isSigned: true, claims: { ...person, ...claims } })
  })

  it('leaves claims out', async () => {
    expect((await signIn('no-nonce')).claims).not.toHaveProperty('nonce')
    const { claims, userinfo } = await signIn('email-verified-is-absent')
    expect([claims, userinfo]).toEqual([expect.not.objectContaining({ email_verified: expect.anything() }), person])
  })

  it('gives expired, forged and unsigned tokens', async () => {
    expect(Number((await signIn('expired')).claims['exp'])).toBeLessThan(Date.now() / 1000)
    expect((await signIn('forged')).idToken).toMatchObject({ isSigned: false, claims: { sub: 'somebody-else', email: person.email } })
    expect((await signIn('unsigned')).idToken).toMatchObject({ isSigned: false, claims: person })
  })

  it('describes another subject in userinfo, names another issuer, and refuses a code', async () => {
    const { claims, userinfo } = await signIn('userinfo-of-another')
    expect([claims['email'], claims['sub'], userinfo['sub']]).toEqual([undefined, 'person-1', 'not-person-1'])
    expect((await signIn('wrong-issuer-parameter')).back.searchParams.get('iss')).toBe('https://issuer.example')
    expect((await signIn('refused-code')).tokens).toEqual({ error: 'invalid_grant' })
  })
})
