/** Rows of the catalogue of errors, written out, so that the tests do not depend on the product's own table. */
import type { ExpectedRow } from './ask.ts'

const row = (status: number, openai: ExpectedRow['openai'], anthropic: string, starts: string): ExpectedRow => ({
  status,
  openai,
  anthropic,
  starts,
})
const unauthorized = (what: string): ExpectedRow =>
  row(401, ['invalid_request_error', 'invalid_api_key', null], 'authentication_error', `Authentication Error: ${what}`)
const invalid = (code: string | null, field: string | null, starts: string): ExpectedRow =>
  row(400, ['invalid_request_error', code, field], 'invalid_request_error', starts)
const unavailable = (code: string, anthropic: string, starts: string, retryAfter: number): ExpectedRow => ({
  ...row(503, ['service_unavailable_error', code, null], anthropic, starts),
  ...{ isFinal: false, retryAfter },
})
const spent = (starts: string): ExpectedRow => ({
  ...row(402, ['insufficient_quota', 'insufficient_quota', null], 'billing_error', starts),
  limit: 'budget',
})
const ofBalance = (row: ExpectedRow): ExpectedRow => ({ ...row, limit: 'balance', owner: 'account' })
const reached = (type: 'requests' | 'tokens', limit: string, starts: string): ExpectedRow => ({
  ...row(429, [type, 'rate_limit_exceeded', null], 'rate_limit_error', starts),
  limit,
})

export const NO_KEY = unauthorized('no API key was sent')
export const MALFORMED = unauthorized('malformed API key')
export const UNKNOWN = unauthorized('unknown API key')
export const REVOKED = unauthorized('API key revoked')
export const SUSPENDED = unauthorized('API key suspended')
export const DENIED = row(
  403,
  ['permission_error', 'key_model_access_denied', 'model'],
  'permission_error',
  'key not allowed to access model ',
)
export const NOT_FOUND = row(404, ['invalid_request_error', 'model_not_found', 'model'], 'not_found_error', 'model not found: ')
export const TOO_LARGE = row(413, ['invalid_request_error', null, null], 'request_too_large', 'Request too large')
export const NOT_JSON = invalid('invalid_json', null, 'Invalid JSON in request body')
export const wrongField = (field: string): ExpectedRow => invalid(null, field, `Invalid request: ${field}`)
export const overflow = (format: 'openai' | 'anthropic'): ExpectedRow => ({
  ...invalid(
    'context_length_exceeded',
    'messages',
    format === 'openai' ? "This model's maximum context length is " : 'prompt is too long: ',
  ),
  hasSizes: true,
})

/** Row 24: the client repeats the request on another pod. */
export const NOT_READY = unavailable('not_ready', 'api_error', 'Service unavailable', 1)
export const NO_BACKEND = unavailable('no_backend', 'api_error', 'No backend available for model ', 2)
export const LIMITS_UNAVAILABLE = unavailable('limits_unavailable', 'api_error', 'Service unavailable: limits cannot be checked', 5)
/** @param status 529 on Anthropic routes */
export const overloaded = (status: number, retryAfter: number): ExpectedRow => ({
  ...unavailable('server_is_overloaded', 'overloaded_error', 'Backend overloaded', retryAfter),
  status,
})
export const TIMED_OUT = { ...row(504, ['server_error', 'upstream_timeout', null], 'timeout_error', 'Backend timed out'), isFinal: false }

/** Refusals by a limit. `retryAfter` differs from answer to answer. */
export const LIMITS = {
  requests: reached('requests', 'requests_per_minute', 'Rate limit reached: requests per minute'),
  tokens: reached('tokens', 'tokens_per_minute', 'Rate limit reached: tokens per minute'),
  concurrency: reached('requests', 'concurrent_requests', 'Rate limit reached: concurrent requests'),
  held: reached('requests', 'budget', 'Budget is held by running requests'),
}
export const TOO_MANY_TOKENS = {
  ...invalid('request_too_large', null, 'Request too large for the tokens-per-minute limit'),
  limit: 'tokens_per_minute',
}
export const SPENT = spent('Budget exhausted: budget "life" of this key')
export const NO_PRICE = spent('Budget cannot be enforced: model unpriced has no price')

/** Refusals by the balance of an account. `retryAfter` differs from answer to answer. */
export const BALANCE = {
  exhausted: ofBalance(spent('Balance exhausted')),
  tooSmall: ofBalance(spent('This call does not fit the balance')),
  held: ofBalance(reached('requests', 'balance', 'Budget is held by running requests')),
  unpriced: ofBalance(spent('Budget cannot be enforced: model unpriced has no price')),
}
