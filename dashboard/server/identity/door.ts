/**
 * The only way to the library's routes. Its HTTP handler runs, so that its limits, origin check and hooks apply, but from fixed paths with bodies
 * of ours: the mounted handler would take bodies of any size, offer every route, and show session tokens in its answers.
 */
import type { Clock } from '#platform/clock.ts'
import { messageOf } from '#platform/message-of.ts'
import { randomBytes } from 'node:crypto'
import type { Client } from '../http/exchange.ts'
import { isDatabaseFailure } from './database-failure.ts'
import { type Asking, asking, type Auth, AUTH_PATH, CLIENT_HEADER } from './auth.ts'
import { Busy } from './busy.ts'
import { RefusedSources } from './refused-sources.ts'

/** The routes of the library in use, and one of ours. `GET /verify-email` is asked for by verify.ts, after its checks, for a change of address. */
export type AuthRoute =
  | 'POST /sign-up/email'
  | 'POST /sign-in/email'
  | 'POST /sign-in/social'
  | 'POST /sign-out'
  | 'POST /send-verification-email'
  | 'GET /verify-email'
  | 'POST /headgate/first-session'
  | 'POST /request-password-reset'
  | 'POST /reset-password'
  | 'POST /change-password'
  | 'POST /change-email'
  | 'POST /link-social'
  | 'POST /unlink-account'
  | 'POST /two-factor/enable'
  | 'POST /two-factor/disable'
  | 'POST /two-factor/verify-totp'
  | 'POST /two-factor/verify-backup-code'
  | 'POST /two-factor/generate-backup-codes'
  | `GET /callback/${string}`

/** The library's answer, without session tokens. */
export interface Reply {
  readonly status: number
  /** `code` of an error; undefined otherwise. */
  readonly code: string | undefined
  readonly body: Readonly<Record<string, unknown>>
  /** Whole Set-Cookie values. */
  readonly cookies: readonly string[]
  /** Where a redirect leads; undefined for other answers. */
  readonly location: string | undefined
}

export interface AskOptions {
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Readonly<Record<string, unknown>>
  readonly mayMail?: boolean
  /** The person has proven who it is: the library's own question for the password is answered by the door. */
  readonly isProven?: boolean
  /** The person whose first session begins. */
  readonly verified?: string
  /** Called before a provider is linked to a person. */
  readonly onLink?: (userId: string) => Promise<void>
}

/** Retry-After of a full queue of passwords, s. */
const RETRY_SECONDS = 5
const STAND_IN_BYTES = 32

export class Door {
  readonly #auth: Auth
  readonly #origin: string
  readonly #refused: RefusedSources

  constructor(auth: Auth, origin: string, clock: Clock) {
    this.#auth = auth
    this.#origin = origin
    this.#refused = new RefusedSources(clock)
  }

  /** For a verb that writes before it asks. @throws Busy while the library refuses this route to this client */
  assertWelcome({ address }: Client, route: AuthRoute): void {
    const retryAfter = this.#refused.secondsLeft(address, route)
    if (retryAfter > 0) throw new Busy(429, retryAfter)
  }

  /** @throws Busy @throws Error if the library or its database failed: such an answer says nothing about the request */
  async ask(client: Client, route: AuthRoute, options: AskOptions = {}): Promise<Reply> {
    const standIn = options.isProven ? randomBytes(STAND_IN_BYTES).toString('base64url') : undefined
    const request = this.#request(client, route, { ...options, body: { ...options.body, ...(standIn ? { password: standIn } : {}) } })
    const call: Asking = { mayMail: options.mayMail ?? true, standIn, verified: options.verified, onLink: options.onLink }
    const response = await asking.run(call, () => this.#auth.handler(request))
    if (response.status === 429) this.#refused.add(client.address, route, Number(response.headers.get('x-retry-after')))
    const reply = await replyOf(response)
    const { status, code = '' } = reply
    if (status >= 500 || (status >= 400 && isDatabaseFailure(call.failure)))
      throw new Error(`the identity library answered ${status} ${code}: ${messageOf(call.failure)}`, { cause: call.failure })
    return reply
  }

  #request({ cookie, agent, address, origin }: Client, route: AuthRoute, { query, body }: AskOptions): Request {
    const [method, path = ''] = route.split(' ')
    const url = new URL(`${this.#origin}${AUTH_PATH}${path}`)
    for (const [name, value] of Object.entries({ ...query })) url.searchParams.set(name, value)
    const headers = { cookie, 'user-agent': agent, [CLIENT_HEADER]: address }
    if (method === 'GET') return new Request(url, { headers })
    return new Request(url, {
      method: 'POST',
      headers: { ...headers, origin, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  }
}

async function replyOf(response: Response): Promise<Reply> {
  const { status, headers } = response
  const retryAfter = headers.get('x-retry-after')
  if (status === 503 || (status === 429 && retryAfter !== null)) throw new Busy(status, Number(retryAfter ?? RETRY_SECONDS))
  const body = withoutTokens(parsed(await response.text()))
  const isRedirect = status >= 300 && status < 400 // other answers may carry a Location for scripts
  return {
    status,
    code: typeof body['code'] === 'string' ? body['code'] : undefined,
    body,
    cookies: headers.getSetCookie(),
    location: isRedirect ? (headers.get('location') ?? undefined) : undefined,
  }
}

function parsed(text: string): Record<string, unknown> {
  if (text === '') return {}
  const value: unknown = JSON.parse(text)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : { value }
}

function withoutTokens(body: Record<string, unknown>): Record<string, unknown> {
  const { token: _token, ...rest } = body
  return rest
}
