/** The authorization request of both stand-in providers: its checks, the page `Sign in as`, and the way back with a code. */
import { json, redirect, type Answer, type Asked, type Handler } from './exchange.ts'
import type { Issued } from './issued.ts'
import { chosenPerson, type StubPerson } from './people.ts'
import { signInPage } from './sign-in-page.ts'

/** The only client of a stand-in provider. */
export interface StubClient {
  readonly id: string
  readonly secret: string
  /** A request must name one of them letter by letter. */
  readonly redirectURIs: readonly string[]
}

/** What a code stands for. */
export interface Grant {
  readonly person: StubPerson
  readonly redirectURI: string
  /** The SHA-256 of the code verifier (PKCE, S256). */
  readonly challenge: string
  readonly scopes: readonly string[]
  readonly nonce?: string
}

/** A provider, as far as its page needs it. */
export interface AuthorizeSpec {
  /** Name for people: `GitHub`. */
  readonly provider: string
  readonly client: StubClient
  readonly people: readonly StubPerson[]
  readonly codes: Issued<Grant>
  /** Error code (RFC 6749, 4.1.2.1) for a request that this provider refuses beside what all refuse. */
  readonly refusalOf?: (query: URLSearchParams) => string | undefined
  /** More parameters of each answer. */
  readonly answered?: () => Readonly<Record<string, string>>
}

const CHALLENGE = /^[\w-]{43}$/

/** Handler of GET, which shows the page, and of POST, which the page sends to its own address. */
export function authorizeHandler(spec: AuthorizeSpec): Handler {
  return (asked) => {
    const { client } = spec
    const redirectURI = asked.query.get('redirect_uri') ?? ''
    // A request of an unknown client must not be answered by a redirect: the redirect would send people to an address that nobody registered.
    if (asked.query.get('client_id') !== client.id) return json(400, { error: 'invalid_client' })
    if (!client.redirectURIs.includes(redirectURI)) return json(400, { error: 'redirect_uri_mismatch' })
    const back = (parameters: Readonly<Record<string, string>>): Answer =>
      redirect(redirectURI, { ...parameters, state: asked.query.get('state') ?? undefined, ...spec.answered?.() })
    const error = pkceRefusal(asked.query) ?? spec.refusalOf?.(asked.query)
    if (error !== undefined) return back({ error })
    if (asked.form.has('cancel')) return back({ error: 'access_denied' })
    if (asked.method !== 'POST') return page(spec, asked, redirectURI)
    const person = chosenPerson(asked.form, spec.people)
    if (person === undefined) return page(spec, asked, redirectURI, 'This form names no person. Enter an email address.')
    return back({ code: spec.codes.issue(grantOf(asked.query, person, redirectURI)) })
  }
}

function pkceRefusal(query: URLSearchParams): string | undefined {
  const isS256 = query.get('code_challenge_method') === 'S256' && CHALLENGE.test(query.get('code_challenge') ?? '')
  return isS256 ? undefined : 'invalid_request'
}

function grantOf(query: URLSearchParams, person: StubPerson, redirectURI: string): Grant {
  const nonce = query.get('nonce')
  return {
    person,
    redirectURI,
    challenge: query.get('code_challenge') ?? '',
    scopes: (query.get('scope') ?? '').split(/[\s,]+/).filter(Boolean), // GitHub allows commas too
    ...(nonce === null ? {} : { nonce }),
  }
}

function page({ provider, people }: AuthorizeSpec, { query }: Asked, redirectURI: string, problem?: string): Answer {
  const body = signInPage({
    provider,
    people,
    goesTo: new URL(redirectURI).origin,
    email: query.get('login_hint') ?? '',
    ...(problem === undefined ? {} : { problem }),
  })
  const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': POLICY, 'referrer-policy': 'no-referrer' }
  return { status: problem === undefined ? 200 : 400, headers, body }
}

/** Forms may go everywhere: the answer to the form is the redirect to the client. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
