/** CORS: pages of configured origins may call the gateway from a browser. A gateway without such origins makes no `Cors`. */
import type { IncomingMessage } from 'node:http'
import type { Exchange } from './exchange.ts'

/** The entry that admits every origin. */
const ANY = '*'
const WEB = /^https?:/

/**
 * Reads the setting CORS_ORIGINS. Browsers send an origin in one spelling, so any other spelling would never match.
 * @throws RangeError with the wrong entry
 */
export function corsOrigins(text: string): ReadonlySet<string> {
  const origins = text.split(',').flatMap((entry) => entry.trim() || [])
  for (const origin of origins) {
    if (origin === ANY && origins.length > 1) throw new RangeError('has * beside other origins, which * already admits')
    if (origin !== ANY && !isOrigin(origin))
      throw new RangeError('has an entry that is not an origin as browsers send it, such as https://chat.example.com')
  }
  return new Set(origins)
}

/** Other schemes than those of the web belong to extensions and apps, whose origins URL does not know. */
function isOrigin(text: string): boolean {
  if (WEB.test(text)) return !text.includes(ANY) && URL.canParse(text) && new URL(text).origin === text
  return /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+(:\d{1,5})?$/.test(text)
}

/** Response headers that a page may read, beside the headers that browsers always expose. */
const EXPOSED = [
  ...['x-request-id', 'request-id', 'retry-after', 'retry-after-ms', 'x-should-retry', 'openai-processing-ms'],
  ...['requests', 'tokens'].flatMap((of) => ['limit', 'remaining', 'reset'].map((what) => `x-ratelimit-${what}-${of}`)),
  ...['requests', 'tokens'].flatMap((of) => ['limit', 'remaining', 'reset'].map((what) => `anthropic-ratelimit-${of}-${what}`)),
].join(', ')

/** Headers that the SDKs send, beside those that go on to model servers. `Accept` and others need no permission. */
const SENT: readonly string[] = ['authorization', 'x-api-key', 'content-type', 'user-agent', 'x-request-id']
const SENT_PREFIXES = /^(?:anthropic|openai|x-stainless|x-codex)-[a-z0-9-]{1,64}$/
/** SDKs send about a dozen. */
const MAX_ASKED_CHARACTERS = 2_048

/** How long a browser may remember the answer to a preflight, s. Chrome remembers no longer. */
const MAX_AGE_SECONDS = 7_200
const PREFLIGHT = ['access-control-allow-methods', 'GET, HEAD, POST', 'access-control-max-age', String(MAX_AGE_SECONDS)]

/** The headers of each origin are made once. There is no credentials mode: a page has to send the key itself. */
export class Cors {
  readonly #byOrigin: ReadonlyMap<string, readonly string[]>
  readonly #ofAny: readonly string[] | undefined
  readonly #sent: ReadonlySet<string>

  /** @param forwarded request headers that go on to model servers */
  constructor(origins: ReadonlySet<string>, forwarded: ReadonlySet<string>) {
    this.#byOrigin = new Map([...origins].map((origin) => [origin, headersOf(origin)]))
    this.#ofAny = this.#byOrigin.get(ANY)
    this.#sent = new Set([...SENT, ...forwarded])
  }

  /** The headers of every answer to a request: name, value, name, value …; undefined if its origin is absent or unknown. */
  headersFor({ headers: { origin } }: IncomingMessage): readonly string[] | undefined {
    return origin === undefined ? undefined : (this.#ofAny ?? this.#byOrigin.get(origin))
  }

  /** Answers the question of a browser whether a page may send a request. Such a question has no credential. @returns whether it was one */
  answersPreflight(exchange: Exchange): boolean {
    const { request, response } = exchange
    const { 'access-control-request-method': method, 'access-control-request-headers': asked = '' } = request.headers
    if (request.method !== 'OPTIONS' || method === undefined || exchange.cors === undefined) return false
    const allowed = this.#allowed(asked)
    const headers = exchange.ownHeaders().concat(PREFLIGHT)
    if (allowed !== '') headers.push('access-control-allow-headers', allowed)
    response.writeHead(204, headers)
    response.end()
    return true
  }

  #allowed(asked: string): string {
    const names = asked.slice(0, MAX_ASKED_CHARACTERS).toLowerCase().split(',')
    const known = names.map((name) => name.trim()).filter((name) => this.#sent.has(name) || SENT_PREFIXES.test(name))
    return [...new Set(known)].join(', ')
  }
}

function headersOf(origin: string): readonly string[] {
  return ['access-control-allow-origin', origin, 'vary', 'origin', 'access-control-expose-headers', EXPOSED]
}
