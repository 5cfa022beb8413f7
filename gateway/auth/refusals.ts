/** The refusals of rows 1 to 4. Each is made once: a flood of wrong credentials allocates no error, and its bytes are built once. */
import { constantError, type GatewayError } from '../errors.ts'
import type { CredentialForm } from '#contract/values/credential.ts'

const BEARER = 'send it as "Authorization: Bearer <key>"'

const none = (reason: string): GatewayError => constantError('noCredential', { reason })
const malformed = (reason: string): GatewayError => constantError('malformedKey', { reason })
const unknown = (reason: string): GatewayError => constantError('unknownKey', { reason })

/** Of a request without a key, which say how to send one. @param how as the gateway takes it */
const absent = (how: string) => ({ noHeader: none(how), emptyAuthorization: none(`the Authorization header is empty; ${how}`) })
export const ABSENT = { inEither: absent(`${BEARER} or "x-api-key: <key>"`), inBearer: absent(BEARER) } as const

/** Of a request whose headers hold no single key. */
export const HEADERS = {
  emptyApiKey: none('the x-api-key header is empty; check that the variable that should hold the key is set'),
  emptyBearer: none('nothing follows "Bearer"; check that the variable that should hold the key is set'),
  apiKeyOff: none(`this gateway does not take x-api-key; ${BEARER}`),
  repeated: malformed('the request has two headers with a key; send one'),
  noScheme: malformed('the Authorization header lacks the word Bearer; write "Bearer <key>"'),
  unknownScheme: malformed('the Authorization header has a scheme other than Bearer; write "Bearer <key>"'),
  notOneSpace: malformed('write exactly one space between "Bearer" and the key'),
} as const

const OTHER_SCHEMES = ['Basic', 'Digest', 'Token', 'ApiKey', 'Api-Key', 'Key', 'OAuth', 'Negotiate', 'AWS4-HMAC-SHA256']
/** Refusals by scheme, in lower case. A refusal names only these schemes, because any other word may be part of a Credential. */
export const OTHER_SCHEME: ReadonlyMap<string, GatewayError> = new Map(
  OTHER_SCHEMES.map((name) => [name.toLowerCase(), malformed(`the Authorization header has the scheme ${name}; write "Bearer <key>"`)]),
)

/** Common mistakes in a value that cannot be a key; the first that fits answers. */
const MISTAKES: readonly (readonly [RegExp, GatewayError])[] = [
  [/^bearer[ \t]/i, malformed('"Bearer" appears twice; write "Bearer <key>"')],
  [/^["'`]|["'`]$/, malformed('the key is in quotes; remove them')],
  [/^[$<{%]/, malformed('a placeholder was sent instead of the key; check that the client replaces its variable, and shell quotes')],
  [/\.\.\.|\u2026|\u00e2\u0080\u00a6|\*\*/, malformed('this is a shortened key, as kubectl shows it; the Secret holds the whole one')],
  [/, /, malformed('the request has two headers with a key; send one')],
  [/[ \t]/, malformed('the key has a space in it; remove the space')],
]
/** `sk-hg1`, 10 characters of id, 43 of secret, 6 of check sum. */
const OWN_LENGTH = 65
const OWN_START = /^sk-hg1/
const MALFORMED = {
  short: malformed('it begins like a key of Headgate and is shorter than 65 characters; copy it whole'),
  long: malformed('it begins like a key of Headgate and is longer than 65 characters; remove the extra characters at the end'),
  mistyped: malformed('its checksum is wrong, so at least one character differs; copy the key again'),
  other: malformed('check that it was copied whole'),
} as const

/** @param value a sent value that cannot be a key; no part of it is in the answer */
export function malformedRefusal(value: string): GatewayError {
  const mistake = MISTAKES.find(([pattern]) => pattern.test(value))
  if (mistake) return mistake[1]
  if (!OWN_START.test(value)) return MALFORMED.other
  if (value.length === OWN_LENGTH) return MALFORMED.mistyped
  return value.length < OWN_LENGTH ? MALFORMED.short : MALFORMED.long
}

const DELETED_OR_FOREIGN = 'it was deleted, or it belongs to another gateway'
/** Of a key that this gateway does not know. */
export const UNKNOWN_KEY = unknown(DELETED_OR_FOREIGN)
const UNKNOWN = {
  anthropic: unknown(`${DELETED_OR_FOREIGN}. It looks like a key of Anthropic; check ANTHROPIC_API_KEY`),
  openai: unknown(`${DELETED_OR_FOREIGN}. It looks like a key of OpenAI; check OPENAI_API_KEY`),
} as const

/** Of a value whose hash an ApiKey names without having been made from it. */
export const UNPROVEN = unknown(
  'an ApiKey names its SHA-256, but source.hash.proof of that ApiKey was made from another value, namespace or name; its owner must correct the proof',
)

/** @param value a sent value in the form of an imported key; no part of it is in the answer */
export function unknownRefusal(form: CredentialForm['form'], value: string): GatewayError {
  if (form === 'own') return UNKNOWN_KEY
  if (value.startsWith('sk-ant-')) return UNKNOWN.anthropic
  return value.startsWith('sk-proj-') ? UNKNOWN.openai : UNKNOWN_KEY
}

/** Of a key that works no more, by its state. */
export const INACTIVE = {
  revoked: constantError('inactiveKey', { state: 'revoked', reason: 'a revoked key stays revoked; ask its owner for a new one' }),
  suspended: constantError('inactiveKey', { state: 'suspended', reason: 'its owner can set the ApiKey to Active again' }),
  expired: constantError('inactiveKey', { state: 'expired', reason: 'ask its owner to extend it or issue a new key' }),
} as const

/** Of a key whose account refuses all its keys. */
export const ACCOUNT = {
  Suspended: constantError('inactiveKey', {
    state: 'suspended',
    reason: 'its account is suspended; the platform team can set the Account to Active again',
  }),
  Deleted: constantError('inactiveKey', { state: 'revoked', reason: 'its account was deleted; ask the platform team' }),
  WithoutPlan: constantError('inactiveKey', { state: 'suspended', reason: 'its account has no plan yet; ask the platform team' }),
} as const
