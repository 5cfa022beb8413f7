/** The gateway's own bytes in the streams of each vendor's API. */
import { type ClientFraming, errorBody } from './dialect.ts'
import { typedEvent } from './sse.ts'

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

/**
 * Responses: each event has a type and a number; the backend's terminal event is required. A failure is two events: `response.failed` for Codex, which
 * shows its text and ignores `error`; and `error` for SDKs, which throw its text.
 */
export const responsesFraming: ClientFraming = {
  keepAlive: () => COMMENT,
  errorFrame: (error, requestId, sent) => {
    const { message, code, param } = (JSON.parse(errorBody('openai', error, requestId)) as { error: Record<string, unknown> }).error
    const response = { object: 'response', status: 'failed', error: { code, message }, output: [], usage: null }
    const events = [
      { type: 'response.failed', sequence_number: sent, response },
      { type: 'error', code, message, param, sequence_number: sent + 1 },
    ]
    return Buffer.from(events.map(typedEvent).join(''))
  },
  endMarker: undefined,
}
