/** Finds the Caller of a request by its headers, or the refusal (rows 1 to 4 and 24). The table is in memory, so nothing waits. */
import { GatewayError, sharedError } from '../errors.ts'
import { credentialForm, MAX_CREDENTIAL_LENGTH } from '#contract/values/credential.ts'
import type { AccountLinks } from './account-links.ts'
import type { Caller, KeyTable } from './key-table.ts'
import type { RefusalLog } from './refusal-log.ts'
import { ABSENT, HEADERS, INACTIVE, malformedRefusal, OTHER_SCHEME, UNKNOWN_KEY, unknownRefusal, UNPROVEN } from './refusals.ts'

export interface RequestHeaders {
  /** Lower-case names; of several Authorization headers Node keeps the first. */
  readonly headers: { readonly authorization?: string | undefined; readonly 'x-api-key'?: string | readonly string[] | undefined }
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[]
}

export interface AuthDeps {
  readonly keys: Pick<KeyTable, 'find' | 'current' | 'isClaimed' | 'tombstone'>
  readonly accounts: Pick<AccountLinks, 'link'>
  /** How many ms of changes the key table may have missed, and whether it lacks keys that this version cannot read. */
  readonly projection: { readonly loaded: boolean; readonly unreadForMs: number; readonly lacksKeys: boolean }
  /** The pod's clock, ms since 1970, which decides whether a key has expired. */
  readonly now: () => number
  readonly apiKeyHeader: boolean
  /** Logs the refusal of a value that belongs to a key, or belonged to one. */
  readonly refusals?: Pick<RefusalLog, 'refused'>
}

/** From this age on the table may lack a key that was just issued. */
const UNREAD_LIMIT_MS = 5_000

/** Authenticates a request. @returns the Caller, or the error to send. Both are shared objects: nothing is allocated */
export function authenticate(request: RequestHeaders, deps: AuthDeps): Caller | GatewayError {
  const sent = sentCredential(request, deps.apiKeyHeader)
  if (sent instanceof GatewayError) return sent
  if (sent.length > MAX_CREDENTIAL_LENGTH) return malformedRefusal(sent)
  const caller = deps.keys.find(sent) // a value that is found is a key, whatever its form; only others are checked
  if (caller) return known(caller, deps)
  return deps.keys.isClaimed(sent) ? ifSure(UNPROVEN, deps) : unknown(sent, deps)
}

function known(caller: Caller, deps: AuthDeps): Caller | GatewayError {
  const answer = ifUsable(caller, deps)
  if (answer instanceof GatewayError) deps.refusals?.refused(caller.record, caller.keyID, answer)
  return answer
}

function unknown(sent: string, deps: AuthDeps): GatewayError {
  const answer = refusal(sent, deps)
  const deleted = deps.keys.tombstone(sent)
  if (deleted) deps.refusals?.refused(deleted.entry, deleted.keyID, answer)
  return answer
}

/** Why a running call must end: its key works no more, and this process is sure of that. @returns undefined lets it run */
export function reasonToEnd(running: Caller, deps: AuthDeps): GatewayError | undefined {
  const { loaded, lacksKeys, unreadForMs } = deps.projection
  const caller = deps.keys.current(running)
  if (!caller) return loaded && !lacksKeys && unreadForMs < UNREAD_LIMIT_MS ? UNKNOWN_KEY : undefined
  const current = ifUsable(caller, deps)
  return current instanceof GatewayError ? current : undefined
}

/** Clients learn the state of a key only from this function, so only if they sent the value of the key. */
function ifUsable(caller: Caller, deps: AuthDeps): Caller | GatewayError {
  const { state } = caller.record
  if (state === 'Revoked') return INACTIVE.revoked
  if (state === 'Suspended') return INACTIVE.suspended
  return caller.expiresAt <= deps.now() ? INACTIVE.expired : deps.accounts.link(caller)
}

function refusal(credential: string, { projection }: AuthDeps): GatewayError {
  const { form } = credentialForm(credential)
  if (form === 'malformed') return malformedRefusal(credential)
  if (!projection.loaded || projection.lacksKeys) return sharedError('notReady') // the table may lack the key of this Credential
  // a pod that cannot read the log must not refuse a newly issued key. Imported keys have no check sum, so invented ones look the same
  return form === 'own' && projection.unreadForMs >= UNREAD_LIMIT_MS ? sharedError('notReady') : unknownRefusal(form, credential)
}

/** The refusal, unless the table may lack the key that would be admitted. */
function ifSure(refused: GatewayError, { projection: { loaded, lacksKeys, unreadForMs } }: AuthDeps): GatewayError {
  return loaded && !lacksKeys && unreadForMs < UNREAD_LIMIT_MS ? refused : sharedError('notReady')
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
  if (isRepeated(rawHeaders)) return HEADERS.repeated
  const scheme = BEARER.exec(value)
  return scheme ? value.slice(scheme[0].length) : problemOf(value)
}

function problemOf(value: string): GatewayError {
  if (BEARER_WORD.test(value)) return value.length === 'bearer'.length ? HEADERS.emptyBearer : HEADERS.notOneSpace
  const name = SCHEME.exec(value)?.[1]
  return name === undefined ? HEADERS.noScheme : (OTHER_SCHEME.get(name.toLowerCase()) ?? HEADERS.unknownScheme)
}

/** Two Credentials in one request: whichever the gateway took, another program on the way may have checked the other. */
function isRepeated(rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i]
    if (sent?.length === 'authorization'.length && sent.toLowerCase() === 'authorization') count += 1
  }
  return count > 1
}
