/** From the headers of a request to the Caller, or to the refusal of rows 1-4 and 24. No I/O: the table is in memory. */
import { GatewayError, sharedError } from '../errors.ts'
import { credentialForm, hashCredential, type KeyHash, MAX_CREDENTIAL_LENGTH } from '../shared/credential.ts'
import type { Caller } from './caller.ts'
import { sentCredential, type RequestHeaders } from './credential-header.ts'
import { headerRefusal, INACTIVE, malformedRefusal, UNKNOWN_KEY, unknownRefusal } from './refusals.ts'

/** What authentication needs to know of this process. */
export interface AuthDeps {
  readonly keys: { find(hash: KeyHash): Caller | undefined }
  /** State of the table: loaded at all, for how long it may have missed changes, and whether there are keys that it could not read. */
  readonly projection: { readonly loaded: boolean; readonly unreadForMs: number; readonly lacksKeys: boolean }
  /** The pod's clock, ms since 1970; it decides expiry. */
  readonly now: () => number
  /** Whether `x-api-key` counts. */
  readonly apiKeyHeader: boolean
}

/** From this age on the table may lack a key that was just issued. */
const UNREAD_LIMIT_MS = 5_000

/** Decides who is asking. @returns the Caller, or the error to send; both are shared objects, a decision allocates nothing */
export function authenticate(request: RequestHeaders, deps: AuthDeps): Caller | GatewayError {
  const sent = sentCredential(request, deps.apiKeyHeader)
  if (typeof sent === 'string') return headerRefusal(sent, deps.apiKeyHeader)
  if (sent.credential.length > MAX_CREDENTIAL_LENGTH) return malformedRefusal(sent.credential)
  const caller = deps.keys.find(hashCredential(sent.credential)) // a value that is found is a key, whatever its form; only others are checked
  return caller ? check(caller, deps) : refusal(sent.credential, deps)
}

/**
 * Why a call that was admitted must end now: its key was suspended, revoked or deleted, or has expired. What this process cannot know
 * for sure ends no call.
 */
export function reasonToEnd({ hash }: Caller, deps: AuthDeps): GatewayError | undefined {
  const { loaded, lacksKeys, unreadForMs } = deps.projection
  const caller = deps.keys.find(hash)
  if (!caller) return loaded && !lacksKeys && unreadForMs < UNREAD_LIMIT_MS ? UNKNOWN_KEY : undefined
  const checked = check(caller, deps)
  return checked instanceof GatewayError ? checked : undefined
}

/** The only place that tells the state of a key, and only to a client that has sent the value. */
function check(caller: Caller, deps: AuthDeps): Caller | GatewayError {
  const { state } = caller.record
  if (state === 'Revoked') return INACTIVE.revoked
  if (state === 'Suspended') return INACTIVE.suspended
  return caller.expiresAt <= deps.now() ? INACTIVE.expired : caller
}

function refusal(credential: string, { projection }: AuthDeps): GatewayError {
  const { form } = credentialForm(credential)
  if (form === 'malformed') return malformedRefusal(credential)
  if (!projection.loaded || projection.lacksKeys) return sharedError('notReady') // the Credential may be that of a key that is not known here
  // a pod cut off from the log must not deny a key that was issued meanwhile; an imported one cannot be told from an invented one
  return form === 'own' && projection.unreadForMs >= UNREAD_LIMIT_MS ? sharedError('notReady') : unknownRefusal(form, credential)
}
