/** A stand-in OpenID Connect issuer, for trials and tests. README.md says what it checks. */
import { generateKeyPair, randomUUID, sign, type KeyObject } from 'node:crypto'
import type { Server } from 'node:http'
import { promisify } from 'node:util'
import { systemClock, type Clock } from '#platform/clock.ts'
import { authorizeHandler, type Grant, type StubClient } from './authorize.ts'
import { isClient, takeGrant } from './code-use.ts'
import { bearerOf, json, serverOf, type Answer, type Asked } from './exchange.ts'
import { Issued } from './issued.ts'
import { STUB_PEOPLE, type StubPerson } from './people.ts'

export interface StubOidcOptions {
  readonly client: StubClient
  /** Name for people. Default: `Google`. */
  readonly provider?: string
  /** Default: `http://127.0.0.1:<port>` of the server, once it listens. */
  readonly issuer?: string
  /** Default: `STUB_PEOPLE`. */
  readonly people?: readonly StubPerson[]
  readonly clock?: Pick<Clock, 'now'>
}

const CODE_MS = 60_000
const TOKEN_SECONDS = 3600
const MODULUS_BITS = 2048

interface Access {
  readonly person: StubPerson
  readonly scopes: readonly string[]
}

interface SigningKey {
  readonly kid: string
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

/** Makes the server. */
export function createStubOidc(options: StubOidcOptions): Server {
  const issuer = new StubIssuer(options, () => portOf(server))
  const server = serverOf(issuer.routes())
  return server
}

function portOf(server: Server): number {
  const address = server.address()
  return address !== null && typeof address === 'object' ? address.port : 0
}

class StubIssuer {
  readonly #options: StubOidcOptions
  readonly #port: () => number
  readonly #clock: Pick<Clock, 'now'>
  readonly #codes: Issued<Grant>
  readonly #tokens: Issued<Access>
  #signingKey: Promise<SigningKey> | undefined

  constructor(options: StubOidcOptions, port: () => number) {
    this.#options = options
    this.#port = port
    this.#clock = options.clock ?? systemClock
    this.#codes = new Issued(CODE_MS, this.#clock)
    this.#tokens = new Issued(TOKEN_SECONDS * 1000, this.#clock)
  }

  routes(): Parameters<typeof serverOf>[0] {
    const { client, people = STUB_PEOPLE, provider = 'Google' } = this.#options
    const answered = (): Record<string, string> => ({ iss: this.#url() }) // RFC 9207
    const authorize = authorizeHandler({ provider, client, people, codes: this.#codes, refusalOf, answered })
    return {
      'GET /.well-known/openid-configuration': () => json(200, this.#discovery()),
      'GET /jwks': async () => json(200, { keys: [publicJwk(await this.#key())] }),
      'GET /authorize': authorize,
      'POST /authorize': authorize,
      'POST /token': (asked) => this.#token(asked),
      'GET /userinfo': (asked) => this.#userinfo(asked),
    }
  }

  #url(): string {
    return this.#options.issuer ?? `http://127.0.0.1:${this.#port()}`
  }

  #discovery(): object {
    const issuer = this.#url()
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      userinfo_endpoint: `${issuer}/userinfo`,
      jwks_uri: `${issuer}/jwks`,
      scopes_supported: ['openid', 'email', 'profile'],
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: ['authorization_code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
      code_challenge_methods_supported: ['S256'],
      claims_supported: ['sub', 'email', 'email_verified', 'name'],
      authorization_response_iss_parameter_supported: true,
    }
  }

  async #token(asked: Asked): Promise<Answer> {
    const { client } = this.#options
    if (!isClient(client, asked)) return json(401, { error: 'invalid_client' }, { 'www-authenticate': 'Basic realm="stub"' })
    if (asked.form.get('grant_type') !== 'authorization_code') return json(400, { error: 'unsupported_grant_type' })
    const grant = takeGrant(this.#codes, asked.form)
    if (typeof grant === 'string') return json(400, { error: 'invalid_grant', error_description: grant })
    const { person, scopes } = grant
    return json(200, {
      access_token: this.#tokens.issue({ person, scopes }),
      token_type: 'Bearer',
      expires_in: TOKEN_SECONDS,
      scope: scopes.join(' '),
      id_token: await this.#idToken(grant, client.id),
    })
  }

  #userinfo(asked: Asked): Answer {
    const access = this.#tokens.read(bearerOf(asked))
    if (access === undefined) return json(401, { error: 'invalid_token' }, { 'www-authenticate': 'Bearer error="invalid_token"' })
    return json(200, claimsOf(access))
  }

  async #idToken(grant: Grant, audience: string): Promise<string> {
    const { kid, privateKey } = await this.#key()
    const issuedAt = Math.floor(this.#clock.now() / 1000)
    const header = { alg: 'RS256', typ: 'JWT', kid }
    const nonce = grant.nonce === undefined ? {} : { nonce: grant.nonce }
    const payload = { iss: this.#url(), aud: audience, iat: issuedAt, exp: issuedAt + TOKEN_SECONDS, ...nonce, ...claimsOf(grant) }
    const text = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`
  }

  /** Makes the key at the first use: the start of `make run` does not wait for it. */
  #key(): Promise<SigningKey> {
    this.#signingKey ??= promisify(generateKeyPair)('rsa', { modulusLength: MODULUS_BITS }).then((pair) => ({ kid: randomUUID(), ...pair }))
    return this.#signingKey
  }
}

function refusalOf(query: URLSearchParams): string | undefined {
  if (query.get('response_type') !== 'code') return 'unsupported_response_type'
  if (!(query.get('scope') ?? '').split(' ').includes('openid')) return 'invalid_scope'
  return query.get('prompt') === 'none' ? 'login_required' : undefined // there is no session that could answer without a page
}

/** The claims that the scopes of the request open. */
function claimsOf({ person: { account, name, email, isVerified }, scopes }: Access): object {
  return {
    sub: account,
    ...(scopes.includes('email') ? { email, email_verified: isVerified } : {}),
    ...(scopes.includes('profile') ? { name } : {}),
  }
}

function publicJwk({ kid, publicKey }: SigningKey): object {
  return { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }
}
