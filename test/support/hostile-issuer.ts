/** An OpenID Connect issuer that lies: `oauth2-mock-server`, which asks nobody and redirects back at once. */
import { Events, OAuth2Server, type MutableRedirectUri, type MutableResponse, type MutableToken, type Payload } from 'oauth2-mock-server'

const HOST = '127.0.0.2'
const HOUR_SECONDS = 3600
const ELSEWHERE = 'https://issuer.example'

/** What is wrong with the next answers. */
export type Lie =
  | 'none'
  | 'wrong-audience'
  | 'wrong-issuer'
  | 'wrong-nonce'
  | 'no-nonce'
  | 'expired'
  /** The claims were changed after the token was signed. */
  | 'forged'
  /** `alg: none`. */
  | 'unsigned'
  | 'email-not-verified'
  /** The text "false", which is true for a careless reader. */
  | 'email-verified-is-text'
  | 'email-verified-is-absent'
  /** The ID token has no address, and userinfo describes another subject. */
  | 'userinfo-of-another'
  /** The parameter `iss` of the answer (RFC 9207) names another issuer. */
  | 'wrong-issuer-parameter'
  | 'refused-code'

/** The person that the issuer speaks of. */
export interface HostilePerson {
  readonly sub: string
  readonly email: string
  readonly name: string
}

const TOKEN_LIES: Partial<Record<Lie, (payload: Payload) => void>> = {
  'wrong-audience': (payload) => void (payload.aud = 'another-client'),
  'wrong-issuer': (payload) => void (payload.iss = ELSEWHERE),
  'wrong-nonce': (payload) => void (payload.nonce = 'another-nonce'),
  'no-nonce': (payload) => void delete payload.nonce,
  expired: (payload) => {
    payload.iat -= 2 * HOUR_SECONDS
    payload.nbf -= 2 * HOUR_SECONDS
    payload.exp = payload.iat + HOUR_SECONDS
  },
  'userinfo-of-another': (payload) => void delete payload.email,
}

export class HostileIssuer {
  /** A test sets both before a sign-in. */
  lie: Lie = 'none'
  person: HostilePerson
  readonly #server: OAuth2Server

  private constructor(server: OAuth2Server, person: HostilePerson) {
    this.#server = server
    this.person = person
    server.service.on(Events.BeforeTokenSigning, ({ payload }: MutableToken) => {
      Object.assign(payload, this.#claims())
      TOKEN_LIES[this.lie]?.(payload)
    })
    server.service.on(Events.BeforeResponse, (answer: MutableResponse) => this.#changeTokens(answer))
    server.service.on(Events.BeforeUserinfo, (answer: MutableResponse) => {
      answer.body = { ...this.#claims(), ...(this.lie === 'userinfo-of-another' ? { sub: `not-${this.person.sub}` } : {}) }
    })
    server.service.on(Events.BeforeAuthorizeRedirect, ({ url }: MutableRedirectUri) => {
      url.searchParams.set('iss', this.lie === 'wrong-issuer-parameter' ? ELSEWHERE : this.issuer)
    })
  }

  static async start(person: HostilePerson): Promise<HostileIssuer> {
    const server = new OAuth2Server()
    await server.issuer.keys.generate('RS256')
    await server.start(0, HOST)
    server.issuer.url = `http://${HOST}:${server.address().port}`
    return new HostileIssuer(server, person)
  }

  get issuer(): string {
    return this.#server.issuer.url ?? ''
  }

  get discoveryURL(): string {
    return `${this.issuer}/.well-known/openid-configuration`
  }

  async stop(): Promise<void> {
    await this.#server.stop()
  }

  #claims(): Record<string, unknown> {
    const isVerified = {
      'email-not-verified': { email_verified: false },
      'email-verified-is-text': { email_verified: 'false' },
      'email-verified-is-absent': {},
    }
    const verified = Object.hasOwn(isVerified, this.lie) ? isVerified[this.lie as keyof typeof isVerified] : { email_verified: true }
    return { ...this.person, ...verified }
  }

  #changeTokens(answer: MutableResponse): void {
    if (this.lie === 'refused-code') {
      answer.statusCode = 400
      answer.body = { error: 'invalid_grant' }
    }
    if (answer.body === '' || (this.lie !== 'forged' && this.lie !== 'unsigned')) return
    const [header = '', payload = '', signature = ''] = String(answer.body.id_token).split('.')
    const changed =
      this.lie === 'forged'
        ? [header, encoded({ ...decoded(payload), sub: 'somebody-else' }), signature]
        : [encoded({ alg: 'none' }), payload, '']
    answer.body.id_token = changed.join('.')
  }
}

function decoded(part: string): object {
  return JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as object // the payload of a token is an object
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
