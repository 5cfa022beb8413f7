import type { Dialect, GatewayError } from '../errors.ts'
import type { StreamDialect } from './stream-dialect.ts'

/** What a request body says that the gateway decides on. Everything else in it is the backend's business. */
export interface ModelRequest {
  /** As the client wrote it: case-sensitive, not trimmed. */
  readonly model: string
  readonly stream: boolean
}

/** One client wire format as the inference route needs it. The route owns the steps; a dialect only fills these in. */
export interface InferenceDialect {
  readonly name: Dialect
  /** Path of the route, and of the same route on a backend. */
  readonly path: '/v1/chat/completions' | '/v1/messages'
  /** Streaming side: keep-alive bytes, error frames, end markers. */
  readonly stream: StreamDialect
  /** Only backends marked `messages: Native` serve this route. */
  readonly needsNative: boolean
  /** Reads and checks a parsed body. @returns the request, or the refusal (row 11) that names the first field at fault */
  readRequest(body: Readonly<Record<string, unknown>>): ModelRequest | GatewayError
}
