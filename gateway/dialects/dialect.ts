import type { GatewayError } from '../errors.ts'
import type { BackendEvents } from './backend-events.ts'
import type { ClientFraming } from './client-framing.ts'
import type { JsonObject } from './json-body.ts'

/** What a request body says that the gateway decides on. Everything else in it is the backend's business. */
export interface ModelRequest {
  /** As the client wrote it: case-sensitive, not trimmed. */
  readonly model: string
  readonly stream: boolean
  /** Largest cap on the tokens of one answer that the request declares, above 0: servers differ in which one they obey. undefined without one. */
  readonly maxOutputTokens: number | undefined
  /** Answers that the request wants (`n`), at least 1. */
  readonly choices: number
  /** The client wants the usage of a stream (`stream_options.include_usage`). */
  readonly wantsUsage: boolean
}

/** One client wire format. The route owns the steps, the relay owns the flow; a dialect only fills these in. */
export interface Dialect {
  /** Path of the route, and of the same route on a backend. */
  readonly path: string
  /** Only backends marked `messages: Native` serve this route. */
  readonly needsNative: boolean
  /** Streams name their usage only if the request asks for it by `stream_options`. */
  readonly hasUsageOption: boolean
  readonly framing: ClientFraming
  readonly events: BackendEvents
  /** Reads and checks a parsed body. @returns the request, or the refusal (row 11) that names the first field at fault */
  readRequest(body: JsonObject): ModelRequest | GatewayError
}
