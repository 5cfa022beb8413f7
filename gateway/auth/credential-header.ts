/** Finds the Credential in the headers of a request. Pure: form of the header only, the Credential itself is judged elsewhere. */

/** The headers of a request as node:http gives them. */
export interface RequestHeaders {
  /** Lower-case names; of several Authorization headers Node keeps the first. */
  readonly headers: { readonly authorization?: string | undefined; readonly 'x-api-key'?: string | readonly string[] | undefined }
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[]
}

/** What a request offers as its credential. */
export type SentCredential = { readonly credential: string } | 'none' | 'malformed'

const BEARER = /^bearer (?=[^ ])/i // exactly one space (RFC 6750); the scheme knows no case (RFC 9110)

/**
 * Reads `Authorization: Bearer <credential>`, else `x-api-key`. Authorization wins when both are there: SDKs send both when both of
 * their variables are set.
 * @param apiKeyHeader whether `x-api-key` counts (setting API_KEY_HEADER)
 */
export function sentCredential(request: RequestHeaders, apiKeyHeader: boolean): SentCredential {
  const { authorization, 'x-api-key': apiKey } = request.headers
  if (authorization) return fromAuthorization(authorization, request.rawHeaders)
  if (!apiKeyHeader || apiKey === undefined) return 'none'
  if (typeof apiKey !== 'string') return 'malformed'
  return apiKey === '' ? 'none' : { credential: apiKey }
}

function fromAuthorization(value: string, rawHeaders: readonly string[]): SentCredential {
  const scheme = BEARER.exec(value)
  if (!scheme || isRepeated('authorization', rawHeaders)) return 'malformed'
  return { credential: value.slice(scheme[0].length) }
}

/** Two credentials in one request: whichever we took, another program on the way may have checked the other. */
function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
  let seen = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i]
    if (sent !== undefined && sent.length === name.length && sent.toLowerCase() === name) seen += 1
  }
  return seen > 1
}
