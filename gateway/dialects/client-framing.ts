/** What the gateway itself writes into a stream for the client. Implementations hold no state: one object serves all requests. */
import type { ErrorFormat, GatewayError } from '../errors.ts'
import { errorBody } from './error-body.ts'

/** Bytes of our own in a stream of one client format. They may only stand between events. */
export interface ClientFraming {
  /** Format of errors, also of those that are plain answers. */
  readonly format: ErrorFormat
  /**
   * Bytes after 15 s of silence.
   * @param isStarted whether an event of kind `start` has gone out
   */
  keepAlive(isStarted: boolean): Buffer
  /** Last bytes of a stream that fails after its first byte: one frame, and the end marker where the format wants one (OpenAI). */
  errorFrame(error: GatewayError, requestId: string): Buffer
  /**
   * Sent when the backend has finished but forgot the end marker: such a stream is a success. undefined: without its end marker a stream is
   * a failure (`docs/contract.md`, Streaming).
   */
  readonly endMarker: Buffer | undefined
}

const COMMENT = Buffer.from(': keep-alive\n\n')
const PING = Buffer.from('event: ping\ndata: {"type":"ping"}\n\n')
const DONE = Buffer.from('data: [DONE]\n\n')

/** Chat completions: `[DONE]` at the end. */
export const openaiFraming: ClientFraming = {
  format: 'openai',
  keepAlive: () => COMMENT,
  errorFrame: (error, requestId) => Buffer.from(`data: ${errorBody('openai', error, requestId)}\n\ndata: [DONE]\n\n`),
  endMarker: DONE,
}

/** Messages: a client needs the `message_stop` of the backend. */
export const anthropicFraming: ClientFraming = {
  format: 'anthropic',
  keepAlive: (isStarted) => (isStarted ? PING : COMMENT), // SDKs expect message_start before any event
  errorFrame: (error, requestId) => Buffer.from(`event: error\ndata: ${errorBody('anthropic', error, requestId)}\n\n`),
  endMarker: undefined,
}
