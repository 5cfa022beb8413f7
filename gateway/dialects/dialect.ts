import type { ModelRecord } from '#contract/records/model-record.ts'
import type { CallRoute } from '#contract/values/call-routes.ts'
import { type ErrorFormat, errorMessage, errorParam, type GatewayError } from '../errors.ts'
import type { BackendEvents } from './backend-events.ts'
import type { JsonObject } from './json-body.ts'
import type { PromptSize } from './prompt-size.ts'

/** The fields of a request body on which the gateway decides. The rest is the backend's business. */
export interface ModelRequest {
  /** As the client wrote it: case-sensitive, not trimmed. */
  readonly model: string
  readonly stream: boolean
  /** Largest declared cap on the tokens of one answer, above 0, because servers differ in which cap they obey. */
  readonly maxOutputTokens: number | undefined
  /** Number of requested answers over all prompts; 0 if answers have no tokens. */
  readonly choices: number
  /** Number of prompts, at least 1. */
  readonly prompts: number
  readonly wantsUsage: boolean
}

/** How a plain answer becomes a stream. */
export interface StreamOrder {
  /** `model` as the client wrote it. */
  readonly model: string
  /** Whether the client has asked for the usage. */
  readonly wantsUsage: boolean
  /** Of the plain answer. */
  readonly bytes?: number
}

/** The gateway's own bytes in a stream to the client. Implementations have no state: one object serves all requests. */
export interface ClientFraming {
  /** Bytes to send after 15 s of silence. @param isStarted whether an event of kind `start` was sent */
  keepAlive(isStarted: boolean): Buffer
  /**
   * Last bytes of a stream that fails after its first byte: one frame, and the end marker if the format has one (OpenAI).
   * @param sent number of events that were sent before
   */
  errorFrame(error: GatewayError, requestId: string, sent: number): Buffer
  /**
   * Bytes to add when the backend has finished without the end marker; the stream is then a success. undefined: a stream without its end
   * marker is a failure (`docs/contract.md`, Streaming).
   */
  readonly endMarker: Buffer | undefined
}

/**
 * One client wire format, which is that of one route. The route owns the steps of a call and the relay owns the flow of bytes; a dialect supplies the
 * differences.
 */
export interface Dialect {
  /** Path behind `/v1/`. A backend serves the dialect if its routes have this path. */
  readonly route: CallRoute
  readonly path: string
  readonly otherPaths?: readonly string[]
  /** Whether the route is one of Anthropic's API, so that its headers pass. */
  readonly isAnthropic: boolean
  /** Whether bodies are forms (`multipart/form-data`) instead of JSON. */
  readonly isForm: boolean
  /** `Any`: a plain answer may also be sound or text. */
  readonly answers: 'Json' | 'Any'
  /** Whether a plain answer may be a list instead of an object. */
  readonly mayAnswerList?: boolean
  /** Whether streams contain usage only if the request asks for it with `stream_options`. */
  readonly hasUsageOption: boolean
  /** false: the answer has no tokens of its own, such as a vector. */
  readonly hasOutput: boolean
  /** false: the call costs nothing and counts for no limit of the key but its own small one. */
  readonly isCharged: boolean
  /** Longest waits for a backend, s, instead of those of the model: the gateway has an answer of its own. No backend is ejected for them. */
  readonly timeouts?: ModelRecord['timeouts']
  /** Fields that bound the tokens of an answer on every server. */
  readonly caps: readonly string[]
  readonly framing: ClientFraming
  readonly events: BackendEvents
  /**
   * The stream of a plain answer, for a server that ignores `stream`. Absent: such an answer is an error.
   * @throws UnreadableAnswer
   */
  readonly streamOf?: (answer: JsonObject, order: StreamOrder) => string
  /** Checks the fields that hold the prompt. All other checks are common to all dialects. @returns row 11 with the first wrong field */
  wrongPrompt(body: JsonObject): GatewayError | undefined
  /** Number of prompts in a body, each with an answer of its own. Default: 1. */
  prompts?(body: JsonObject): number
  /** Estimates and bounds the tokens of the prompt. @param bodyBytes length of the text of the body */
  readonly promptSize: (body: JsonObject, bodyBytes: number) => PromptSize
}

/** OpenAI's body always has all four fields. @param requestId the gateway's own, not that of the client */
export function errorBody(format: ErrorFormat, error: GatewayError, requestId: string): string {
  const { row, params, metadata } = error
  const sizes = { n_prompt_tokens: params.promptTokens, n_ctx: params.contextTokens }
  if (format === 'anthropic') {
    const message = errorMessage(row, params, format)
    return JSON.stringify({ type: 'error', error: { type: row.anthropic, message, metadata, ...sizes }, request_id: requestId })
  }
  const { type, code } = row.openai
  return JSON.stringify({ error: { message: error.message, type, param: errorParam(row, params), code, metadata, ...sizes } })
}
