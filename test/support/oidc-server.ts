/** A strict OpenID Connect provider: panva's certified `oidc-provider`, in this process. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Provider, type AccountClaims, type Configuration, type Interaction } from 'oidc-provider'
import { listening } from './listening.ts'
import { type Tapped, tapAnswers } from './tapped-answers.ts'

/**
 * A host name of its own: cookies ignore ports, so the cookies of the provider would meet those of a dashboard at `127.0.0.1` or `localhost`. The
 * machine needs no name server for a number, and all of 127.0.0.0/8 is loopback.
 */
const HOST = '127.0.0.2'
/** More redirects than a sign-in has. */
const MAX_STEPS = 20

/** A person at the provider; claims other than these are left out. */
export interface OidcPerson {
  readonly email?: string
  readonly name?: string
  /** Left out of the claims when undefined; a text is a fault that some providers have. */
  readonly emailVerified?: boolean | string
}

export interface OidcServerOptions {
  readonly client: { readonly id: string; readonly secret: string; readonly redirectURIs: readonly string[] }
  /** By subject (`sub`). */
  readonly people: Readonly<Record<string, OidcPerson>>
  /** Where clients and browsers reach the server, and its port on all addresses. Default: a free port of a loopback address. */
  readonly at?: { readonly issuer: string; readonly port: number }
  /** For a test that looks for what the provider has issued. */
  readonly onAnswered?: (tapped: Tapped) => void
}

export class OidcServer {
  /** By subject. A test may change a person between two sign-ins. */
  readonly people: Map<string, OidcPerson>
  readonly issuer: string
  readonly #server: Server
  readonly #provider: Provider

  private constructor(server: Server, issuer: string, options: OidcServerOptions) {
    this.people = new Map(Object.entries(options.people))
    this.#server = server
    this.issuer = issuer
    this.#provider = new Provider(this.issuer, configurationFor(options, this.people))
    const answer = this.#provider.callback()
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (request.url?.startsWith('/interaction/')) this.#interact(request, response).catch((error: unknown) => fail(response, error))
      else void answer(request, response)
    })
    if (options.onAnswered) tapAnswers(server, options.onAnswered)
  }

  static async start(options: OidcServerOptions): Promise<OidcServer> {
    const server = createServer()
    const { at } = options
    if (at === undefined) return new OidcServer(server, `http://${HOST}:${await listening(server, HOST)}`, options)
    await once(server.listen(at.port), 'listening')
    return new OidcServer(server, at.issuer, options)
  }

  get discoveryURL(): string {
    return `${this.issuer}/.well-known/openid-configuration`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /**
   * Goes through the pages of the provider as a browser without JavaScript does: signs in and consents.
   * @param authorizationURL where the client sends the browser
   * @returns the address at the client to which the provider sends the browser, with `code` or `error`
   */
  async signIn(authorizationURL: string, subject: string): Promise<URL> {
    const cookies = new Map<string, string>()
    let url = new URL(authorizationURL)
    let form: URLSearchParams | undefined
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const response = await visit(url, cookies, form)
      form = undefined
      const location = response.headers.get('location')
      if (location !== null) url = new URL(location, url)
      else if (url.pathname.startsWith('/interaction/')) form = new URLSearchParams({ account: subject })
      else throw new Error(`the provider answers ${response.status}: ${await response.text()}`)
      if (url.origin !== this.issuer) return url
    }
    throw new Error(`no way through the pages of the provider; the last one was ${url.pathname}`)
  }

  /** Shows the page of an interaction, and takes its form. */
  async #interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const details = await this.#provider.interactionDetails(request, response)
    if (request.method !== 'POST') return page(response, details.prompt.name)
    const form = new URLSearchParams(await text(request))
    if (form.has('cancel')) return this.#provider.interactionFinished(request, response, { error: 'access_denied' })
    if (details.prompt.name === 'consent') {
      const consent = { grantId: await this.#grant(details) }
      return this.#provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true })
    }
    const accountId = form.get('account') ?? ''
    if (!this.people.has(accountId)) return page(response, 'login', 'There is no such account.')
    return this.#provider.interactionFinished(request, response, { login: { accountId } }, { mergeWithLastSubmission: false })
  }

  async #grant({ session, params, prompt }: Interaction): Promise<string> {
    const grant = new this.#provider.Grant({ accountId: session?.accountId, clientId: String(params.client_id) })
    const missing = prompt.details.missingOIDCScope
    if (Array.isArray(missing)) grant.addOIDCScope(missing.join(' '))
    return grant.save()
  }
}

function configurationFor({ client }: OidcServerOptions, people: ReadonlyMap<string, OidcPerson>): Configuration {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: client.redirectURIs,
        response_types: ['code'],
        grant_types: ['authorization_code'],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: false, // the claims are in the ID token too, as with Google
    renderError: (ctx, { error, error_description }) => {
      ctx.type = 'text'
      ctx.body = `${error}: ${error_description}`
    },
    ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 3600, IdToken: 3600, Interaction: 3600, Session: 3600 },
    findAccount: (_, sub) => {
      const person = people.get(sub)
      return person === undefined ? undefined : { accountId: sub, claims: () => claimsOf(sub, person) }
    },
  }
}

/** JSON leaves out what is undefined. */
function claimsOf(sub: string, { email, name, emailVerified }: OidcPerson): AccountClaims {
  return { sub, email, name, email_verified: emailVerified }
}

async function visit(url: URL, cookies: Map<string, string>, form: URLSearchParams | undefined): Promise<Response> {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const sent = form === undefined ? {} : { method: 'POST', body: form }
  const response = await fetch(url, { ...sent, headers: { cookie }, redirect: 'manual' })
  for (const line of response.headers.getSetCookie()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
    if (value === '') cookies.delete(name)
    else cookies.set(name, value)
  }
  return response
}

/** Names and buttons are those that a test of the browser presses. */
function page(response: ServerResponse, prompt: string, problem = ''): void {
  const isLogin = prompt === 'login'
  const field = isLogin ? '<label>Account <input name="account" required></label>' : ''
  const heading = isLogin ? 'Sign in at the issuer' : 'Allow Headgate to read your name and address'
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' })
  response.end(
    `<!doctype html><html lang="en"><head><title>${heading}</title><link rel="icon" href="data:,"></head><body><main><h1>${heading}</h1><p role="alert">${problem}</p>` +
      `<form method="post">${field}<button>${isLogin ? 'Sign in' : 'Allow'}</button></form>` +
      `<form method="post"><button name="cancel" value="yes">Cancel</button></form></main></body></html>`,
  )
}

function fail(response: ServerResponse, error: unknown): void {
  response.writeHead(400, { 'content-type': 'text/plain' })
  response.end(error instanceof Error ? error.message : 'failed')
}
