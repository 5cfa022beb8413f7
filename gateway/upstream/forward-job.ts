import type { IncomingMessage, ServerResponse } from 'node:http'
import type { GatewayError } from '../errors.ts'
import type { StreamDialect } from '../dialects/stream-dialect.ts'
import type { BackendEntry, ModelEntry } from './model-entry.ts'
import type { JsonBody } from '../dialects/json-body.ts'

/** Routes that are forwarded; the same path is called on the backend. */
export type UpstreamPath = '/v1/chat/completions' | '/v1/messages'

/** One admitted request on its way to a backend. */
export interface ForwardJob {
  readonly model: ModelEntry
  /** `model` as the client wrote it; answers carry it. */
  readonly askedName: string
  readonly path: UpstreamPath
  /** The body's `stream`. */
  readonly stream: boolean
  /** As the client sent it; no top-level key equals `model` but for case (row 11). */
  readonly body: JsonBody
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
  readonly dialect: StreamDialect
  /** Why the call has to end although neither side has: its key works no more. Asked every second. */
  readonly reasonToEnd?: (() => GatewayError | undefined) | undefined
  /** Told which backend is asked, before it answers: the log wants it for failures too. An `Exchange` fits. */
  readonly trace?: { backend: string | undefined } | undefined
}

/** How a request ended whose answer was begun, or whose client left. */
export interface Outcome {
  /** What the client got; 499 when it left before anything was sent. */
  readonly status: number
  /** Name of the backend that answered last. */
  readonly backend: string
  /** What went wrong after the first byte: a stream ended with its frame. */
  readonly error: GatewayError | undefined
  readonly isClientGone: boolean
  /** Backends asked, 1 or 2. */
  readonly attempts: number
}

/** How one backend dealt with a request. `failure`: not a byte has reached the client. */
export type AttemptResult =
  | { readonly kind: 'answered'; readonly error: GatewayError | undefined }
  | { readonly kind: 'clientGone' }
  | { readonly kind: 'failure'; readonly error: GatewayError; readonly isRetryable: boolean }

/**
 * The credential of a backend, from the mounted folder.
 * @param sum SHA-256 of the newest one, hex
 * @param former that of the one before it, which stays in use until the newest one is mounted
 * @returns undefined when neither is mounted: this pod cannot use the backend
 */
export type CredentialLookup = (sum: string, former: string | null) => string | undefined

/** Status of a request whose client left before the answer began; only logs show it. */
export const CLIENT_GONE = 499

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
