import type { GatewayError } from '../errors.ts'
import type { BackendEvents } from './backend-events.ts'
import type { ClientFraming } from './client-framing.ts'
import type { JsonObject } from './json-body.ts'

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
