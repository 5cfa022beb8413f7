/** A stand-in for GitHub's OAuth, for trials and tests. README.md says what it checks. */
import { createHash } from 'node:crypto'
import type { Server } from 'node:http'
import { systemClock, type Clock } from '#platform/clock.ts'
import { authorizeHandler, type Grant, type StubClient } from './authorize.ts'
import { isClient, takeGrant, type CodeRefusal } from './code-use.ts'
import { bearerOf, json, serverOf, type Answer, type Asked, type Handler } from './exchange.ts'
import { Issued } from './issued.ts'
import { STUB_PEOPLE, type StubPerson } from './people.ts'

export interface StubGitHubOptions {
  readonly client: StubClient
  /** Default: `STUB_PEOPLE`. */
  readonly people?: readonly StubPerson[]
  readonly clock?: Pick<Clock, 'now'>
}

const CODE_MS = 60_000
const TOKEN_MS = 3_600_000

interface Access {
  readonly person: StubPerson
  readonly scopes: readonly string[]
}

/** Makes the server. Its base URL stands for `https://github.com` and for `https://api.github.com`. */
export function createStubGitHub({ client, people = STUB_PEOPLE, clock = systemClock }: StubGitHubOptions): Server {
  const codes = new Issued<Grant>(CODE_MS, clock)
  const tokens = new Issued<Access>(TOKEN_MS, clock)
  const authorize = authorizeHandler({ provider: 'GitHub', client, people, codes })
  return serverOf({
    'GET /login/oauth/authorize': authorize,
    'POST /login/oauth/authorize': authorize,
    'POST /login/oauth/access_token': (asked) => tokenAnswer(asked, client, codes, tokens),
    'GET /user': forScope(tokens, [], (person) => userOf(person)),
    'GET /user/emails': forScope(tokens, ['user', 'user:email'], (person) => emailsOf(person)),
  })
}

/** GitHub's words for a refused exchange. */
const REFUSALS: Readonly<Record<CodeRefusal, string>> = {
  'unknown-code': 'bad_verification_code',
  'redirect-mismatch': 'redirect_uri_mismatch',
  'wrong-verifier': 'bad_verification_code',
}

function tokenAnswer(asked: Asked, client: StubClient, codes: Issued<Grant>, tokens: Issued<Access>): Answer {
  if (!isClient(client, asked)) return tokenBody(asked, { error: 'incorrect_client_credentials' })
  const grant = takeGrant(codes, asked.form)
  if (typeof grant === 'string') return tokenBody(asked, { error: REFUSALS[grant] })
  const { person, scopes } = grant
  return tokenBody(asked, { access_token: tokens.issue({ person, scopes }), token_type: 'bearer', scope: scopes.join(',') })
}

/** As GitHub: status 200 for errors too, and JSON for clients that ask for it, else a form. */
function tokenBody({ headers }: Asked, body: Readonly<Record<string, string>>): Answer {
  if (headers.accept?.includes('json')) return json(200, body)
  return { status: 200, headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams(body).toString() }
}

/** A route of the API. @param anyOf scopes, of which the token must have one; empty = each token may read it */
function forScope(tokens: Issued<Access>, anyOf: readonly string[], read: (person: StubPerson) => unknown): Handler {
  return (asked) => {
    if (!asked.headers['user-agent']) return json(403, { message: 'Request forbidden by administrative rules.' }) // GitHub demands the header
    const access = tokens.read(bearerOf(asked))
    if (access === undefined) return json(401, { message: 'Bad credentials' })
    if (anyOf.length > 0 && !anyOf.some((scope) => access.scopes.includes(scope))) return json(404, { message: 'Not Found' })
    return json(200, read(access.person))
  }
}

/** The address is null, as of all people at GitHub who keep their address private: clients must read `/user/emails`. */
function userOf({ account, name }: StubPerson): object {
  return { login: loginOf(account), id: idOf(account), type: 'User', name, email: null }
}

function emailsOf({ account, email, isVerified }: StubPerson): readonly object[] {
  const hidden = `${idOf(account)}+${loginOf(account)}@users.noreply.github.com`
  return [
    { email: hidden, primary: false, verified: true, visibility: null },
    { email, primary: true, verified: isVerified, visibility: 'private' },
  ]
}

/** Logins at GitHub have letters, digits and hyphens alone. */
function loginOf(account: string): string {
  return account.replaceAll(/[^a-zA-Z0-9]+/g, '-')
}

/** A number that stays the same for an account. 48 bits, so that it is exact in JSON. */
function idOf(account: string): number {
  return createHash('sha256').update(account).digest().readUIntBE(0, 6)
}
