import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayError } from '../errors.ts'
import type { Usage } from '../dialects/usage.ts'
import type { Failure } from './backend-error.ts'
import type { ForwardJob } from './forward-job.ts'
import type { Target } from './model-entry.ts'

/** What becomes of the body of a backend's answer: relayed whole, relayed as a stream, or read as an error. */
export interface AnswerRelay {
  /** Bytes have reached the client: no other backend can be asked, no status can be changed. */
  readonly isOpen: boolean
  /**
   * What the answer so far has cost; undefined when the backend has done no work, or nobody wants to know.
   * @param inputTokens of the prompt, should the backend not report it
   */
  usage(inputTokens: number): Usage | undefined
  data(chunk: Buffer): void
  /** The body is complete. */
  end(): void
  /**
   * The answer cannot go on; called only while open.
   * @returns the error as the client saw it
   */
  broken(error: GatewayError): GatewayError
}

/** What a relay can do. Implemented by `Attempt`. */
export interface RelayPort {
  readonly job: ForwardJob
  readonly target: Target
  /** Names differ: answers must be renamed. */
  readonly isRenamed: boolean
  /** The gateway has asked for the usage of the stream, and the client has not: it is not shown. */
  readonly addsUsage: boolean
  /** Seconds of silence after which a stream is kept alive. */
  readonly keepAliveTicks: number
  /** Tick of the last byte to the client, or of the start. */
  readonly wroteAt: number
  /** The client does not take more just now. */
  readonly isPaused: boolean
  /** The answer has begun in earnest: from here silence counts, not the time to the first byte. */
  began(): void
  /** Starts the answer with status 200 and these headers besides our own. */
  open(headers: readonly string[]): void
  write(bytes: Buffer): void
  /** Ends the answer well. */
  finish(bytes?: Buffer): void
  /** Gives up; before the first byte another backend may be asked. */
  fail(failure: Failure): void
}

/** Head of an answer of a backend. */
export interface AnswerHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The body is decoded on its way: its length is not that of the header. */
  readonly isDecoded: boolean
}
