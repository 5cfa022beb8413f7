/** The refusals of rows 1 to 4. Each is made once: a flood of wrong credentials allocates no error, and its bytes are built once. */
import { constantError, type GatewayError } from '../errors.ts'
import type { CredentialForm } from '#contract/values/credential.ts'
import { type HeaderProblem, OTHER_SCHEMES } from './credential-header.ts'

const BEARER = 'send it as "Authorization: Bearer <key>"'
const BOTH = `${BEARER} or "x-api-key: <key>"`

const none = (reason: string): GatewayError => constantError('noCredential', { reason })
const malformed = (reason: string): GatewayError => constantError('malformedKey', { reason })
const unknown = (reason: string): GatewayError => constantError('unknownKey', { reason })

type HeaderRefusals = Readonly<Record<HeaderProblem, GatewayError>>

const SCHEME_REFUSALS = Object.fromEntries(
  OTHER_SCHEMES.map((name) => [`Scheme ${name}`, malformed(`the Authorization header has the scheme ${name}; write "Bearer <key>"`)]),
) as Pick<HeaderRefusals, `Scheme ${(typeof OTHER_SCHEMES)[number]}`>

function headerRefusals(howToSend: string): HeaderRefusals {
  return {
    ...SCHEME_REFUSALS,
    NoHeader: none(howToSend),
    EmptyAuthorization: none(`the Authorization header is empty; ${howToSend}`),
    EmptyApiKey: none('the x-api-key header is empty; check that the variable that should hold the key is set'),
    EmptyBearer: none('nothing follows "Bearer"; check that the variable that should hold the key is set'),
    ApiKeyOff: none(`this gateway does not take x-api-key; ${BEARER}`),
    Repeated: malformed('the request has two headers with a key; send one'),
    NoScheme: malformed('the Authorization header lacks the word Bearer; write "Bearer <key>"'),
    UnknownScheme: malformed('the Authorization header has a scheme other than Bearer; write "Bearer <key>"'),
    NotOneSpace: malformed('exactly one space must stand between "Bearer" and the key'),
  }
}

const WITH_API_KEY_HEADER = headerRefusals(BOTH)
const BEARER_ALONE = headerRefusals(BEARER)

/** @param apiKeyHeader whether the gateway takes `x-api-key` */
export function headerRefusal(problem: HeaderProblem, apiKeyHeader: boolean): GatewayError {
  return (apiKeyHeader ? WITH_API_KEY_HEADER : BEARER_ALONE)[problem]
}

/** Common mistakes in a value that cannot be a key; the first that fits answers. */
const MISTAKES: readonly (readonly [RegExp, GatewayError])[] = [
  [/^bearer[ \t]/i, malformed('the word Bearer stands twice; write "Bearer <key>"')],
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
  long: malformed('it begins like a key of Headgate and is longer than 65 characters; remove the characters behind it'),
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

/** @param value a sent value in the form of an imported key; no part of it is in the answer */
export function unknownRefusal(form: CredentialForm['form'], value: string): GatewayError {
  if (form === 'own') return UNKNOWN_KEY
  if (value.startsWith('sk-ant-')) return UNKNOWN.anthropic
  return value.startsWith('sk-proj-') ? UNKNOWN.openai : UNKNOWN_KEY
}

/** Of a key that works no more, by its state. */
export const INACTIVE = {
  revoked: constantError('inactiveKey', { state: 'revoked', reason: 'that is final; ask its owner for another key' }),
  suspended: constantError('inactiveKey', { state: 'suspended', reason: 'its owner can set the ApiKey to Active again' }),
  expired: constantError('inactiveKey', { state: 'expired', reason: 'ask its owner for a later end, or for another key' }),
} as const
