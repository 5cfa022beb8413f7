/** What a relay must know about a streamed answer of either client wire format: how to keep it alive, how to end it, what an event means. */
import type { Dialect, GatewayError } from '../errors.ts'
import { errorBody } from './error-body.ts'
import { parseSseEvent } from './sse.ts'

/**
 * What one event is to the relay.
 * - `start`: the answer has begun (Anthropic `message_start`); `content`: anything that passes; `finish`: the model said why it stopped
 * - `end`: the end marker of the dialect (`[DONE]`, `message_stop`); nothing may follow
 * - `error`: the backend reports a failure instead of going on
 * - `comment`: no field at all (keep-alives of the backend); `drop`: fields but no data, which crashes openai-node and openai-python
 */
export type StreamEventKind = 'start' | 'content' | 'finish' | 'end' | 'error' | 'comment' | 'drop'

/** The streaming side of a client wire format. Implementations hold no state: one object serves all requests. */
export interface StreamDialect {
  readonly name: Dialect
  /**
   * Bytes after 15 s of silence, only to be sent at an event border.
   * @param started whether an event of kind `start` has gone out
   */
  keepAlive(started: boolean): Buffer
  /** Last bytes of a stream that fails after its first byte: one frame, and the end marker where the dialect wants one (OpenAI). */
  errorFrame(error: GatewayError, requestId: string): Buffer
  /** Judges one whole event as cut by `splitEvents`; reads JSON only where the bytes could be more than content. */
  kindOf(event: Buffer): StreamEventKind
  /** Sent when the backend finished (`finish`) but forgot the end marker: such a stream is a success. */
  readonly endMarker: Buffer
}

const COMMENT = Buffer.from(': keep-alive\n\n')
const PING = Buffer.from('event: ping\ndata: {"type":"ping"}\n\n')
const DONE = Buffer.from('data: [DONE]\n\n')
const MESSAGE_STOP = Buffer.from('event: message_stop\ndata: {"type":"message_stop"}\n\n')

/** Chat completions streams: unnamed events, `[DONE]` at the end. */
export const openaiStream: StreamDialect = {
  name: 'openai',
  keepAlive: () => COMMENT,
  errorFrame: (error, requestId) => Buffer.from(`data: ${errorBody('openai', error, requestId)}\n\ndata: [DONE]\n\n`),
  kindOf: openaiKind,
  endMarker: DONE,
}

/** Messages streams: named events, `message_stop` at the end, no `[DONE]`. */
export const anthropicStream: StreamDialect = {
  name: 'anthropic',
  keepAlive: (started) => (started ? PING : COMMENT), // SDKs expect message_start before any event
  errorFrame: (error, requestId) => Buffer.from(`event: error\ndata: ${errorBody('anthropic', error, requestId)}\n\n`),
  kindOf: anthropicKind,
  endMarker: MESSAGE_STOP,
}

// Inside JSON strings quotes are escaped, so these can only match real keys: content never looks like a finish.
const FINISH_REASON = /"finish_reason"\s*:\s*"/
/** Most events of a Messages stream, judged without decoding. */
const USUAL_MESSAGES_EVENT = /^event: content_block_delta\r?\ndata:/
const STOP_REASON = /"stop_reason"\s*:\s*"/

function openaiKind(event: Buffer): StreamEventKind {
  const text = event.toString('latin1')
  if (FINISH_REASON.test(text)) return 'finish'
  if (text.startsWith('data: {') && !text.includes('"error"')) return 'content' // the usual frame, judged without decoding
  const { event: name, data, hasFields } = parseSseEvent(event)
  if (data === undefined) return hasFields ? 'drop' : 'comment'
  if (data.trim() === '[DONE]') return 'end'
  return name === 'error' || hasError(data) ? 'error' : 'content'
}

function anthropicKind(event: Buffer): StreamEventKind {
  const text = event.toString('latin1')
  if (USUAL_MESSAGES_EVENT.test(text)) return 'content'
  const { event: name, data, hasFields } = parseSseEvent(event)
  if (data === undefined) return hasFields ? 'drop' : 'comment'
  if (name === 'message_start') return 'start'
  if (name === 'message_stop') return 'end'
  if (name === 'message_delta') return STOP_REASON.test(data) ? 'finish' : 'content'
  return name === 'error' || hasError(data) ? 'error' : 'content'
}

/** True for a JSON object with an `error` that is not null at its top level. */
function hasError(data: string): boolean {
  if (!data.includes('"error"')) return false
  try {
    const value: unknown = JSON.parse(data)
    if (typeof value !== 'object' || value === null) return false
    const { error, object } = value as { error?: unknown; object?: unknown }
    return (error !== undefined && error !== null) || object === 'error' // the second is SGLang's flat form
  } catch {
    return false // not JSON: passed on as it came, the client's parser judges it
  }
}
