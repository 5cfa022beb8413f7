/** The gateway's own bytes in a stream to the client. Implementations have no state: one object serves all requests. */
import { type ErrorFormat, errorMessage, errorParam, type GatewayError } from '../errors.ts'

export interface ClientFraming {
  /** Bytes to send after 15 s of silence. @param isStarted whether an event of kind `start` was sent */
  keepAlive(isStarted: boolean): Buffer
  /** Last bytes of a stream that fails after its first byte: one frame, and the end marker if the format has one (OpenAI). */
  errorFrame(error: GatewayError, requestId: string): Buffer
  /**
   * Bytes to add when the backend has finished without the end marker; the stream is then a success. undefined: a stream without its end
   * marker is a failure (`docs/contract.md`, Streaming).
   */
  readonly endMarker: Buffer | undefined
}

const COMMENT = Buffer.from(': keep-alive\n\n')
const PING = Buffer.from('event: ping\ndata: {"type":"ping"}\n\n')

/** Chat completions: `[DONE]` at the end. */
export const openaiFraming: ClientFraming = {
  keepAlive: () => COMMENT,
  errorFrame: (error, requestId) => Buffer.from(`data: ${errorBody('openai', error, requestId)}\n\ndata: [DONE]\n\n`),
  endMarker: Buffer.from('data: [DONE]\n\n'),
}

/** Messages: the backend's `message_stop` is required. */
export const anthropicFraming: ClientFraming = {
  keepAlive: (isStarted) => (isStarted ? PING : COMMENT), // SDKs expect message_start before any event
  errorFrame: (error, requestId) => Buffer.from(`event: error\ndata: ${errorBody('anthropic', error, requestId)}\n\n`),
  endMarker: undefined,
}

/** OpenAI's body always has all four fields. @param requestId the gateway's own, not that of the client */
export function errorBody(format: ErrorFormat, error: GatewayError, requestId: string): string {
  const { row, params } = error
  if (format === 'anthropic') {
    const message = errorMessage(row, params, format)
    return JSON.stringify({ type: 'error', error: { type: row.anthropic, message }, request_id: requestId })
  }
  const { type, code } = row.openai
  return JSON.stringify({ error: { message: error.message, type, param: errorParam(row, params), code } })
}
