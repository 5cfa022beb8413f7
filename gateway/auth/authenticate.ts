/** Finds the Caller of a request by its headers, or the refusal (rows 1 to 4 and 24). The table is in memory, so nothing waits. */
import { GatewayError, sharedError } from '../errors.ts'
import { credentialForm, hashCredential, type KeyHash, MAX_CREDENTIAL_LENGTH } from '#contract/values/credential.ts'
import type { Caller } from './key-table.ts'
import { sentCredential, type RequestHeaders } from './credential-header.ts'
import { INACTIVE, malformedRefusal, UNKNOWN_KEY, unknownRefusal } from './refusals.ts'

export interface AuthDeps {
  readonly keys: { find(hash: KeyHash): Caller | undefined }
  /** How many ms of changes the key table may have missed, and whether it lacks keys that this version cannot read. */
  readonly projection: { readonly loaded: boolean; readonly unreadForMs: number; readonly lacksKeys: boolean }
  /** The pod's clock, ms since 1970, which decides whether a key has expired. */
  readonly now: () => number
  readonly apiKeyHeader: boolean
}

/** From this age on the table may lack a key that was just issued. */
const UNREAD_LIMIT_MS = 5_000

/** Authenticates a request. @returns the Caller, or the error to send. Both are shared objects: nothing is allocated */
export function authenticate(request: RequestHeaders, deps: AuthDeps): Caller | GatewayError {
  const sent = sentCredential(request, deps.apiKeyHeader)
  if (sent instanceof GatewayError) return sent
  if (sent.length > MAX_CREDENTIAL_LENGTH) return malformedRefusal(sent)
  const caller = deps.keys.find(hashCredential(sent)) // a value that is found is a key, whatever its form; only others are checked
  return caller ? ifUsable(caller, deps) : refusal(sent, deps)
}

/** Why a running call must end: its key works no more, and this process is sure of that. @returns undefined lets it run */
export function reasonToEnd({ hash }: Caller, deps: AuthDeps): GatewayError | undefined {
  const { loaded, lacksKeys, unreadForMs } = deps.projection
  const caller = deps.keys.find(hash)
  if (!caller) return loaded && !lacksKeys && unreadForMs < UNREAD_LIMIT_MS ? UNKNOWN_KEY : undefined
  const current = ifUsable(caller, deps)
  return current instanceof GatewayError ? current : undefined
}

/** Clients learn the state of a key only from this function, so only if they sent the value of the key. */
function ifUsable(caller: Caller, deps: AuthDeps): Caller | GatewayError {
  const { state } = caller.record
  if (state === 'Revoked') return INACTIVE.revoked
  if (state === 'Suspended') return INACTIVE.suspended
  return caller.expiresAt <= deps.now() ? INACTIVE.expired : caller
}

function refusal(credential: string, { projection }: AuthDeps): GatewayError {
  const { form } = credentialForm(credential)
  if (form === 'malformed') return malformedRefusal(credential)
  if (!projection.loaded || projection.lacksKeys) return sharedError('notReady') // the table may lack the key of this Credential
  // a pod that cannot read the log must not refuse a newly issued key. Imported keys have no check sum, so invented ones look the same
  return form === 'own' && projection.unreadForMs >= UNREAD_LIMIT_MS ? sharedError('notReady') : unknownRefusal(form, credential)
}
