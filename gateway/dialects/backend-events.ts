/** What the events of a backend's stream mean. Implementations hold no state: one object serves all requests. */
import { asObject, type JsonObject, parseObject } from './json-body.ts'
import { parseSseEvent } from './sse.ts'
import { anthropicUsage, openaiUsage, type UsageReport } from './usage.ts'

/**
 * What one event is to the relay.
 * - `start`: the answer has begun (Anthropic `message_start`); `content`: anything that passes; `finish`: the model said why it stopped
 * - `end`: the end marker (`[DONE]`, `message_stop`); nothing may follow
 * - `error`: the backend reports a failure instead of going on
 * - `comment`: no field at all (keep-alives of the backend); `drop`: fields but no data or an empty one, which a browser would not dispatch
 *   and which crashes openai-node and openai-python
 */
export type EventKind = 'start' | 'content' | 'finish' | 'end' | 'error' | 'comment' | 'drop'

/** What an event reports. */
export interface EventUsage {
  readonly report: UsageReport
  /** The event says nothing else: OpenAI's last chunk, with an empty list of choices. */
  readonly isAlone: boolean
}

/** The events of one backend format. */
export interface BackendEvents {
  /**
   * Classifies one whole event as cut by `splitEvents`; reads JSON only where the bytes could be more than content.
   * @param latin1 the same bytes as text: the relay decodes each event once
   */
  kindOf(event: Buffer, latin1?: string): EventKind
  /** The tokens that an event counts; a later event of a stream may count others, or the same ones again. */
  usageOf(event: Buffer, latin1?: string): EventUsage | undefined
  /** The tokens that a whole answer counts. */
  usageIn(answer: JsonObject): UsageReport | undefined
}

/** Chat completions streams: unnamed events, `[DONE]` at the end. */
export const openaiEvents: BackendEvents = {
  kindOf: (event, latin1 = event.toString('latin1')) => openaiKind(event, latin1),
  usageOf: (event, latin1) => usageOf(event, openaiUsage, latin1),
  usageIn: openaiUsage,
}

/** Messages streams: named events, `message_stop` at the end, no `[DONE]`. */
export const anthropicEvents: BackendEvents = {
  kindOf: (event, latin1 = event.toString('latin1')) => anthropicKind(event, latin1),
  usageOf: (event, latin1) => usageOf(event, messageUsage, latin1),
  usageIn: anthropicUsage,
}

const USAGE = '"usage"'
/** What may stand between the key and an object; chunks that only say `null` are not parsed. */
const USAGE_OBJECT = /"usage"\s*:\s*\{/

// Inside JSON strings quotes are escaped, so these can only match real keys: content never looks like a finish.
const FINISH_REASON = /"finish_reason"\s*:\s*"/
/** Most events of a Messages stream, classified without decoding. */
const USUAL_MESSAGES_EVENT = /^event: content_block_delta\r?\ndata:/
const STOP_REASON = /"stop_reason"\s*:\s*"/

function openaiKind(event: Buffer, text: string): EventKind {
  if (FINISH_REASON.test(text)) return 'finish'
  if (text.startsWith('data: {') && !text.includes('"error"')) return 'content' // the usual frame, classified without decoding
  const { event: name, data, hasFields } = parseSseEvent(event)
  if (!data) return hasFields ? 'drop' : 'comment'
  if (data.trim() === '[DONE]') return 'end'
  return name === 'error' || hasError(data) ? 'error' : 'content'
}

function anthropicKind(event: Buffer, text: string): EventKind {
  if (USUAL_MESSAGES_EVENT.test(text)) return 'content'
  const { event: name, data, hasFields } = parseSseEvent(event)
  if (!data) return hasFields ? 'drop' : 'comment'
  if (name === 'message_start') return 'start'
  if (name === 'message_stop') return 'end'
  if (name === 'message_delta') return STOP_REASON.test(data) ? 'finish' : 'content'
  return name === 'error' || hasError(data) ? 'error' : 'content'
}

/** True for a JSON object with an `error` that is not null at its top level. */
function hasError(data: string): boolean {
  if (!data.includes('"error"')) return false
  const { error, object } = parseObject(data) ?? {} // what is not JSON passes: the client's parser judges it
  return (error !== undefined && error !== null) || object === 'error' // the second is SGLang's flat form
}

/** Most events carry no usage, and are not parsed. */
function usageOf(event: Buffer, read: BackendEvents['usageIn'], text = event.toString('latin1')): EventUsage | undefined {
  if (!text.includes(USAGE) || !USAGE_OBJECT.test(text)) return undefined
  const value = parseObject(parseSseEvent(event).data ?? '')
  const report = value && read(value)
  return report && { report, isAlone: Array.isArray(value.choices) && value.choices.length === 0 }
}

/** `message_start` holds the message, with its usage, and `message_delta` the usage itself. */
function messageUsage(value: JsonObject): UsageReport | undefined {
  return anthropicUsage(asObject(value.message) ?? value)
}
