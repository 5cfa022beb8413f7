/** Finds the Credential in the headers of a request. Pure: this file checks the form of the header, `authenticate.ts` the Credential. */
import type { GatewayError } from '../errors.ts'
import { ABSENT, HEADERS, OTHER_SCHEME } from './refusals.ts'

export interface RequestHeaders {
  /** Lower-case names; of several Authorization headers Node keeps the first. */
  readonly headers: { readonly authorization?: string | undefined; readonly 'x-api-key'?: string | readonly string[] | undefined }
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[]
}

const BEARER = /^bearer (?=[^ \t])/i // exactly one space (RFC 6750, section 2.1); the scheme has no case (RFC 9110, section 11.1)
const BEARER_WORD = /^bearer(?=$|[ \t])/i
const SCHEME = /^([^ \t]+)[ \t]/

/**
 * Reads `Authorization: Bearer <credential>`, else `x-api-key`. `Authorization` decides when both have a value, and the other one is not read.
 * Anthropic SDKs send both when ANTHROPIC_AUTH_TOKEN and ANTHROPIC_API_KEY are set; current versions send only the value of ANTHROPIC_API_KEY
 * (`spec.secret.anthropicApiKey` writes that variable too).
 * @param apiKeyHeader whether `x-api-key` counts (setting API_KEY_HEADER)
 * @returns the Credential, or the refusal of a request that offers none
 */
export function sentCredential(request: RequestHeaders, apiKeyHeader: boolean): string | GatewayError {
  const { authorization, 'x-api-key': apiKey } = request.headers
  if (authorization) return fromAuthorization(authorization, request.rawHeaders)
  if (apiKey === undefined) {
    const { noHeader, emptyAuthorization } = apiKeyHeader ? ABSENT.inEither : ABSENT.inBearer
    return authorization === undefined ? noHeader : emptyAuthorization
  }
  if (!apiKeyHeader) return HEADERS.apiKeyOff
  if (typeof apiKey !== 'string') return HEADERS.repeated
  return apiKey === '' ? HEADERS.emptyApiKey : apiKey
}

function fromAuthorization(value: string, rawHeaders: readonly string[]): string | GatewayError {
  if (isRepeated('authorization', rawHeaders)) return HEADERS.repeated
  const scheme = BEARER.exec(value)
  return scheme ? value.slice(scheme[0].length) : problemOf(value)
}

function problemOf(value: string): GatewayError {
  if (BEARER_WORD.test(value)) return value.length === 'bearer'.length ? HEADERS.emptyBearer : HEADERS.notOneSpace
  const name = SCHEME.exec(value)?.[1]
  return name === undefined ? HEADERS.noScheme : (OTHER_SCHEME.get(name.toLowerCase()) ?? HEADERS.unknownScheme)
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
