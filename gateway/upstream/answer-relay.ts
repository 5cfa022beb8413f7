import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayError } from '../errors.ts'
import type { Usage } from '../dialects/usage.ts'
import type { BackendAnswer, Failure } from './backend-error.ts'
import type { ForwardJob } from './forward-job.ts'
import type { Target } from './model-table.ts'

/** Handles the body of a backend's answer: relays it as a whole, relays it as a stream, or reads it as an error. */
export interface AnswerRelay {
  /** Whether bytes have reached the client. Then no other backend can be asked and the status is fixed. */
  readonly isOpen: boolean
  /**
   * The cost of the answer so far; undefined if the backend has done no work, or the call is not metered.
   * @param inputTokens estimate of the prompt, in case the backend does not report it
   */
  usage(inputTokens: number): Usage | undefined
  data(chunk: Buffer): void
  end(): void
  /** Called when the answer cannot continue; only while open. @returns the error as the client received it */
  broken(error: GatewayError): GatewayError
}

/** The functions that a relay may call. `Attempt` implements them. */
export interface RelayPort {
  readonly job: ForwardJob
  readonly target: Target
  /** Whether the backend has another name for the model, so that answers must be renamed. */
  readonly isRenamed: boolean
  /** Whether the gateway requested the usage of the stream and the client did not: the client must not receive it. */
  readonly addsUsage: boolean
  /** Called when the answer has begun. From then on the time-out for silence counts, not that for the first byte. */
  began(): void
  /** Starts the answer with status 200, these headers, and the gateway's own. */
  open(headers: readonly string[]): void
  write(bytes: Buffer): void
  /** Ends the answer. @param last its rest; a text has only ASCII */
  finish(last?: Buffer | string): void
  /** Ends the attempt as a failure. Before the first byte another backend may be asked. */
  fail(failure: Failure): void
  /** `fail` with an unsuccessful answer, or an error event, of the backend. */
  refused(answer: BackendAnswer): void
}

export interface AnswerHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Whether the body is decompressed, so that its length is not that of the header. */
  readonly isDecoded: boolean
}
