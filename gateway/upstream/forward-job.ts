import type { Dialect } from '../dialects/dialect.ts'
import type { RequestBody } from '../dialects/request-body.ts'
import type { Usage } from '../dialects/usage.ts'
import type { GatewayError } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Failure } from './backend-error.ts'
import type { BackendEntry, ModelEntry } from './model-entry.ts'

/** One admitted request on its way to a backend. */
export interface ForwardJob {
  readonly exchange: Exchange
  readonly dialect: Dialect
  readonly model: ModelEntry
  /** `model` as the client wrote it; answers carry it. */
  readonly askedName: string
  /** The body's `stream`. */
  readonly stream: boolean
  /** Dropped once no second attempt is possible: an answer may run for minutes. */
  body: RequestBody | undefined
  /** Tokens of the prompt, should the backend not report them. Without this estimate they are told from the bytes of the body. */
  readonly inputTokens?: number | undefined
  /** false: nobody wants to know what the call costs. Servers are not asked for it then, and events are not searched for it. */
  readonly isMetered?: boolean | undefined
  /** Headers of ours on a successful answer, besides the request id: name, value, name, value … */
  readonly answerHeaders?: readonly string[]
  /** Why the call has to end although neither side has: its key works no more. Asked every second. */
  readonly reasonToEnd?: (() => GatewayError | undefined) | undefined
}

/** How a request ended. */
export interface Outcome {
  /**
   * What the call has cost, also when it ended early: as reported by the backend, else estimated. undefined: no backend has worked on it, or the
   * job is not metered.
   */
  readonly usage: Usage | undefined
  /** The answer has begun: of an error the client knows already. Otherwise the caller answers the error. */
  readonly wasSent: boolean
  /** What went wrong; undefined for a whole answer, and when the client left. */
  readonly error: GatewayError | undefined
}

/** How one backend dealt with a request. `failed`: not a byte has reached the client. */
export type AttemptResult =
  | { readonly kind: 'answered'; readonly error: GatewayError | undefined; readonly usage: Usage | undefined }
  | { readonly kind: 'clientGone'; readonly usage: Usage | undefined }
  | ({ readonly kind: 'failed' } & Pick<Failure, 'error' | 'isRetryable'>)

/**
 * The credential of a backend, from the mounted folder.
 * @param sum SHA-256 of the newest one, hex
 * @param former that of the one before it, which stays in use until the newest one is mounted
 * @returns undefined when neither is mounted: this pod cannot use the backend
 */
export type CredentialLookup = (sum: string, former: string | null) => string | undefined

/** What is sent to a backend as its credential, and whether the backend can be used without one. */
interface BackendCredential {
  readonly isUsable: boolean
  readonly credential: string | undefined
}

/** The credential for a backend. */
export function credentialFor(backend: BackendEntry, lookUp: CredentialLookup): BackendCredential {
  if (backend.credential === null) return NO_CREDENTIAL_NEEDED
  const credential = lookUp(backend.credential.sum, backend.credential.former)
  return { isUsable: credential !== undefined, credential }
}
const NO_CREDENTIAL_NEEDED = { isUsable: true, credential: undefined } as const
