/** Finds the Credential in the headers of a request. Pure: this file checks the form of the header, `authenticate.ts` the Credential. */

export interface RequestHeaders {
  /** Lower-case names; of several Authorization headers Node keeps the first. */
  readonly headers: { readonly authorization?: string | undefined; readonly 'x-api-key'?: string | readonly string[] | undefined }
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[]
}

/** Schemes that a refusal may name. Any other word may be a part of a Credential. */
export const OTHER_SCHEMES = ['Basic', 'Digest', 'Token', 'ApiKey', 'Api-Key', 'Key', 'OAuth', 'Negotiate', 'AWS4-HMAC-SHA256'] as const

/** Why a request offers no Credential. */
export type HeaderProblem =
  /** Neither header. */
  | 'NoHeader'
  /** The header is there without a value. */
  | 'EmptyAuthorization'
  | 'EmptyApiKey'
  /** `Bearer` without anything behind it: the variable of the client is empty. */
  | 'EmptyBearer'
  /** `x-api-key` alone, where the setting API_KEY_HEADER is false. */
  | 'ApiKeyOff'
  | 'Repeated'
  | 'NoScheme'
  | 'UnknownScheme'
  | `Scheme ${(typeof OTHER_SCHEMES)[number]}`
  /** More than one space behind `Bearer`, or a tab. */
  | 'NotOneSpace'

export type SentCredential = { readonly credential: string } | HeaderProblem

const BEARER = /^bearer (?=[^ \t])/i // exactly one space (RFC 6750, section 2.1); the scheme has no case (RFC 9110, section 11.1)
const BEARER_WORD = /^bearer(?=$|[ \t])/i
const SCHEME = /^([^ \t]+)[ \t]/
const SCHEMES: ReadonlyMap<string, HeaderProblem> = new Map(OTHER_SCHEMES.map((name) => [name.toLowerCase(), `Scheme ${name}`]))

/**
 * Reads `Authorization: Bearer <credential>`, else `x-api-key`. `Authorization` decides when both have a value, and the other one is not read.
 * Anthropic SDKs send both when ANTHROPIC_AUTH_TOKEN and ANTHROPIC_API_KEY are set; current versions send only the value of ANTHROPIC_API_KEY
 * (`spec.secret.anthropicApiKey` writes that variable too).
 * @param apiKeyHeader whether `x-api-key` counts (setting API_KEY_HEADER)
 */
export function sentCredential(request: RequestHeaders, apiKeyHeader: boolean): SentCredential {
  const { authorization, 'x-api-key': apiKey } = request.headers
  if (authorization) return fromAuthorization(authorization, request.rawHeaders)
  if (apiKey === undefined) return authorization === undefined ? 'NoHeader' : 'EmptyAuthorization'
  if (!apiKeyHeader) return 'ApiKeyOff'
  if (typeof apiKey !== 'string') return 'Repeated'
  return apiKey === '' ? 'EmptyApiKey' : { credential: apiKey }
}

function fromAuthorization(value: string, rawHeaders: readonly string[]): SentCredential {
  if (isRepeated('authorization', rawHeaders)) return 'Repeated'
  const scheme = BEARER.exec(value)
  return scheme ? { credential: value.slice(scheme[0].length) } : problemOf(value)
}

function problemOf(value: string): HeaderProblem {
  if (BEARER_WORD.test(value)) return value.length === 'bearer'.length ? 'EmptyBearer' : 'NotOneSpace'
  const name = SCHEME.exec(value)?.[1]
  return name === undefined ? 'NoScheme' : (SCHEMES.get(name.toLowerCase()) ?? 'UnknownScheme')
}

/** Two Credentials in one request: whichever the gateway took, another program on the way may have checked the other. */
function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i]
    if (sent !== undefined && sent.length === name.length && sent.toLowerCase() === name) count += 1
  }
  return count > 1
}
