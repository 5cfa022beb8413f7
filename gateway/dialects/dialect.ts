import type { GatewayError } from '../errors.ts'
import { anthropicEvents, type BackendEvents, openaiEvents } from './backend-events.ts'
import { anthropicFraming, type ClientFraming, openaiFraming } from './client-framing.ts'
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
