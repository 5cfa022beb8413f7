import { type ErrorFormat, errorMessage, errorParam, type GatewayError } from '../errors.ts'
import { anthropicEvents, type BackendEvents, openaiEvents } from './backend-events.ts'
import type { JsonObject } from './json-body.ts'
import { wrongMessages } from './request-shape.ts'

/** The fields of a request body on which the gateway decides. The rest is the backend's business. */
export interface ModelRequest {
  /** As the client wrote it: case-sensitive, not trimmed. */
  readonly model: string
  readonly stream: boolean
  /** Largest declared cap on the tokens of one answer, above 0, because servers differ in which cap they obey. */
  readonly maxOutputTokens: number | undefined
  /** Number of requested answers (`n`), at least 1. */
  readonly choices: number
  readonly wantsUsage: boolean
}

/** The gateway's own bytes in a stream to the client. Implementations have no state: one object serves all requests. */
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

/** One client wire format. The route owns the steps of a call and the relay owns the flow of bytes; a dialect supplies the differences. */
export interface Dialect {
  readonly path: string
  readonly otherPaths?: readonly string[]
  /** Whether only backends with `messages: Native` serve this route. */
  readonly needsNative: boolean
  /** Whether streams contain usage only if the request asks for it with `stream_options`. */
  readonly hasUsageOption: boolean
  readonly framing: ClientFraming
  readonly events: BackendEvents
  /** Checks the fields that hold the prompt. All other checks are common to all dialects. @returns row 11 with the first wrong field */
  wrongPrompt(body: JsonObject): GatewayError | undefined
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
const anthropicFraming: ClientFraming = {
  keepAlive: (isStarted) => (isStarted ? PING : COMMENT), // SDKs expect message_start before any event
  errorFrame: (error, requestId) => Buffer.from(`event: error\ndata: ${errorBody('anthropic', error, requestId)}\n\n`),
  endMarker: undefined,
}

/** OpenAI chat completions; every backend serves them. */
export const chatCompletions: Dialect = {
  path: '/v1/chat/completions',
  needsNative: false,
  hasUsageOption: true,
  framing: openaiFraming,
  events: openaiEvents,
  wrongPrompt: wrongMessages,
}

/** Anthropic Messages, forwarded unchanged to backends that support them. */
export const messages: Dialect = {
  path: '/v1/messages',
  otherPaths: ['/v1/v1/messages'], // a base URL that ends in /v1, with an Anthropic SDK
  needsNative: true,
  hasUsageOption: false,
  framing: anthropicFraming,
  events: anthropicEvents,
  wrongPrompt: wrongMessages,
}

/** The routes of model calls. The worker for large bodies gets the path, because a function cannot be sent to another thread. */
export const DIALECTS: ReadonlyMap<string, Dialect> = new Map([chatCompletions, messages].map((dialect) => [dialect.path, dialect]))

/** OpenAI's body always has all four fields. @param requestId the gateway's own, not that of the client */
export function errorBody(format: ErrorFormat, error: GatewayError, requestId: string): string {
  const { row, params, metadata } = error
  if (format === 'anthropic') {
    const message = errorMessage(row, params, format)
    return JSON.stringify({ type: 'error', error: { type: row.anthropic, message, metadata }, request_id: requestId })
  }
  const { type, code } = row.openai
  return JSON.stringify({ error: { message: error.message, type, param: errorParam(row, params), code, metadata } })
}
