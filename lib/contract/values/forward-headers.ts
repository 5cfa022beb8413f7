/**
 * Request headers that may go to model servers beside the usual ones: those of a client by a setting of all gateways or by a ServedModel, and
 * fixed ones of a backend. The operator reports what a ServedModel may not name, and the gateway checks again what it reads.
 */

/** A name without the characters that no header in use has. */
export const HEADER_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]*$'
/** Longest name in a ServedModel. */
export const MAX_HEADER_NAME = 64
/** Maximum number of names in a ServedModel. */
export const MAX_FORWARD_HEADERS = 16

/** Bounds of the fixed headers of a backend. */
export const MAX_FIXED_HEADERS = 8
export const MAX_HEADER_VALUE = 256
/** Printable ASCII without a blank at either end. */
export const HEADER_VALUE = '^[!-~]([ -~]*[!-~])?$'
/** The word before a credential in its header; empty for none. */
export const AUTH_SCHEME = '^([A-Za-z][A-Za-z0-9._-]*)?$'
export const MAX_AUTH_SCHEME = 32

const HOLDS_CREDENTIAL = 'it holds a credential'

/** Why a header never passes, and the names; `*` stands for any text. */
export const NEVER_FORWARDED: ReadonlyArray<readonly [why: string, names: readonly string[]]> = [
  [HOLDS_CREDENTIAL, ['authorization', 'cookie', 'set-cookie', 'proxy-*', '*api-key', '*access-key', '*subscription-key']],
  [
    'it concerns the connection',
    ['host', 'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings', 'expect'],
  ],
  ['it describes the body', ['content-*', 'accept-encoding']],
  ['it claims an identity', ['forwarded', 'x-forwarded-*', '*-ip', 'x-user*', 'x-remote-*', 'remote-*', 'x-consumer-*', 'x-stainless-*']],
  ['the gateway sets it', ['x-request-id', 'request-id', 'x-headgate-*']],
  ['it may replace the path or the method', ['x-original-*', 'x-rewrite-*', 'x-http-method*']],
]

/** Words between hyphens by which programs name credentials, identities and models, so a header with one never passes either. */
export const NEVER_FORWARDED_WORDS: readonly string[] = [
  ...['auth', 'authentication', 'authenticated', 'authorization', 'token', 'apikey', 'secret', 'password', 'credential', 'credentials'],
  ...['jwt', 'assertion', 'signature', 'cookie', 'oidc', 'saml', 'iap', 'principal', 'user', 'username', 'email', 'model'],
]

const FORM = new RegExp(HEADER_NAME)
const REFUSED = NEVER_FORWARDED.map(([why, names]) => ({
  why,
  form: new RegExp(`^(${names.map((name) => name.replaceAll('*', '.*')).join('|')})$`),
}))
const WORDS: ReadonlySet<string> = new Set(NEVER_FORWARDED_WORDS)

/** @returns why a header may not be forwarded; undefined if it may */
export function refusalOfHeader(name: string): string | undefined {
  if (!FORM.test(name)) return 'it is not a header name'
  const plain = name.toLowerCase().replaceAll(/[._]/g, '-') // some servers take X_API_KEY for x-api-key
  const word = plain.split('-').find((part) => WORDS.has(part))
  return (
    REFUSED.find(({ form }) => form.test(plain))?.why ?? (word && `"${word}" in a name stands for a credential, an identity or a model`)
  )
}

/** Headers of a hop, and of sessions, that no model server takes a credential in. */
const NO_CREDENTIAL_HEADER = /^(proxy-.*|cookie|set-cookie)$/

/** @returns why the credential of a model server may not be sent in a header; undefined if it may */
export function refusalOfCredentialHeader(name: string): string | undefined {
  if (!FORM.test(name)) return 'it is not a header name'
  const plain = name.toLowerCase()
  if (NO_CREDENTIAL_HEADER.test(plain)) return 'it is not for a model server'
  return REFUSED.find(({ why, form }) => why !== HOLDS_CREDENTIAL && form.test(plain))?.why
}

/** The headers of a list that may be forwarded: in lower case, sorted, each once. */
export function forwardableHeaders(names: readonly string[]): readonly string[] {
  const allowed = names.filter((name) => refusalOfHeader(name) === undefined).map((name) => name.toLowerCase())
  return [...new Set(allowed)].sort()
}
