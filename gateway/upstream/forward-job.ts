import type { Dialect } from '../dialects/dialect.ts'
import type { RequestBody } from '../dialects/request-body.ts'
import type { Usage } from '../dialects/usage.ts'
import type { GatewayError } from '../errors.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Failure } from './backend-error.ts'
import type { BackendEntry, ModelEntry } from './model-table.ts'

/** An admitted request on its way to a backend. */
export interface ForwardJob {
  readonly exchange: Exchange
  readonly dialect: Dialect
  readonly model: ModelEntry
  /** `model` as the client wrote it. Answers contain this name. */
  readonly askedName: string
  readonly stream: boolean
  /** Dropped when no second attempt is possible, because an answer may run for minutes. */
  body: RequestBody | undefined
  /** Tokens of the prompt, in case the backend does not report them. Without this estimate the bytes of the body decide. */
  readonly inputTokens?: number | undefined
  /** Tokens that the answer of such a call usually has, in case it ends before its size is known. */
  readonly outputTokens?: number | undefined
  /** false: the call has no limits. Servers are then not asked for its usage, and events are not searched for it. */
  readonly isMetered?: boolean | undefined
  /** The gateway's own headers of a successful answer besides the request id: name, value, name, value … */
  readonly answerHeaders?: readonly string[]
  /** Returns the reason to end a running call: its key no longer works. Called every second. */
  readonly reasonToEnd?: (() => GatewayError | undefined) | undefined
}

/** How a request ended. */
export interface Outcome {
  /** As reported, else estimated, even if it ended early; undefined: no backend has worked on it, or the job is not metered. */
  readonly usage: Usage | undefined
  /** Whether the answer has begun; the client then already knows of an error. Otherwise the caller answers the error. */
  readonly wasSent: boolean
  /** The error; undefined for a complete answer, and when the client left. */
  readonly error: GatewayError | undefined
}

/** Result of one attempt, with the work of its server. `failed`: the client has received nothing. */
export type AttemptResult =
  | { readonly kind: 'answered'; readonly error: GatewayError | undefined; readonly usage: Usage | undefined }
  | { readonly kind: 'clientGone'; readonly usage: Usage | undefined }
  | ({ readonly kind: 'failed'; readonly usage: Usage | undefined } & Pick<Failure, 'error' | 'isRetryable'>)

/** @returns null if the backend needs none; undefined if neither the newest nor the one before is mounted: this pod cannot use the backend */
export type CredentialLookup = (credential: BackendEntry['credential']) => string | null | undefined
