/** Classifies the events of a backend's stream. Implementations have no state: one object serves all requests. */
import { asObject, type JsonObject, parseObject } from './json-body.ts'
import { parseSseEvent } from './sse.ts'
import { anthropicUsage, openaiUsage, responsesUsage, type TextKey, type UsageReport } from './usage.ts'

/**
 * Kind of an event for the relay.
 * - `start`: the answer has begun (Anthropic `message_start`); `content`: the relay passes it on; `finish`: the model reports why it
 * stopped
 * - `end`: the end marker (`[DONE]`, `message_stop`), after which nothing may follow
 * - `error`: the backend reports a failure; `failed`: it reports that an answer with usage has failed
 * - `comment`: no field (keep-alives of the backend); `drop`: fields without data or with empty data, which a browser would not
 * dispatch and which crash openai-node and openai-python
 */
export type EventKind = 'start' | 'content' | 'finish' | 'end' | 'error' | 'failed' | 'comment' | 'drop'

export interface EventUsage {
  readonly report: UsageReport
  /** Whether the event contains nothing else: OpenAI's last chunk, with an empty list of choices. */
  readonly isAlone: boolean
}

export interface BackendEvents {
  /** Classifies one whole event. It parses JSON only if the bytes may be more than content. @param latin1 the same bytes as text */
  kindOf(event: Buffer, latin1?: string): EventKind
  /** Reads the token counts of an event. A later event of the stream may have other counts, or the same again. */
  usageOf(event: Buffer, latin1?: string): EventUsage | undefined
  usageIn(answer: JsonObject): UsageReport | undefined
  /** Where the events have the text of the model. */
  readonly textKey: TextKey
}

/** Chat completions streams: unnamed events, `[DONE]` at the end. */
export const openaiEvents: BackendEvents = {
  kindOf: (event, latin1 = event.toString('latin1')) => openaiKind(event, latin1),
  usageOf: (event, latin1) => usageOf(event, openaiUsage, latin1),
  usageIn: openaiUsage,
  textKey: '"delta":',
}

/** As chat completions, with the text of the model in `text`. */
export const completionEvents: BackendEvents = { ...openaiEvents, textKey: '"text":' }

/** Streams of transcriptions: OpenAI's have typed events, and those of vLLM are chunks as of chat completions. */
export const transcriptionEvents: BackendEvents = {
  ...openaiEvents,
  kindOf: (event, latin1 = event.toString('latin1')) => (TRANSCRIPT_DONE.test(latin1) ? 'finish' : openaiKind(event, latin1)),
  usageOf: (event, latin1) => usageOf(event, transcriptionUsage, latin1),
  usageIn: transcriptionUsage,
}

/** Responses streams: named events, with one of three terminal ones at the end. Some servers send `[DONE]` after that. */
export const responsesEvents: BackendEvents = {
  kindOf: (event, latin1 = event.toString('latin1')) => responsesKind(event, latin1),
  usageOf: (event, latin1) => usageOf(event, responsesUsage, latin1),
  usageIn: responsesUsage,
  textKey: '"delta":',
}

/** Messages streams: named events, `message_stop` at the end, no `[DONE]`. */
export const anthropicEvents: BackendEvents = {
  kindOf: (event, latin1 = event.toString('latin1')) => anthropicKind(event, latin1),
  usageOf: (event, latin1) => usageOf(event, messageUsage, latin1),
  usageIn: anthropicUsage,
  textKey: '"delta":',
}

const USAGE = '"usage"'
/** Matches usage that is an object. Chunks whose usage is `null` are not parsed. */
const USAGE_OBJECT = /"usage"\s*:\s*\{/

// JSON strings escape their quotes, so these match real keys only, never content of a model. Some servers send an empty reason until the end.
const FINISH_REASON = /"finish_reason"\s*:\s*"[^"]/
/** Most events of a Messages stream are classified by these bytes, without decoding. They have no further line, which may name another event. */
const USUAL_MESSAGES_EVENT = /^event: content_block_delta\r?\ndata:[^\r\n]+[\r\n]*$/
const TRANSCRIPT_DONE = /"type"\s*:\s*"transcript\.text\.done"/
const STOP_REASON = /"stop_reason"\s*:\s*"[^"]/

function openaiKind(event: Buffer, text: string): EventKind {
  const hasFinish = FINISH_REASON.test(text)
  if (!text.includes('"error"')) {
    if (hasFinish) return 'finish'
    if (text.startsWith('data: {')) return 'content' // the usual frame; it needs no parsing
  }
  const { event: name, data, hasFields } = parseSseEvent(event)
  if (!data) return hasFields ? 'drop' : 'comment'
  if (data.trim() === '[DONE]') return 'end'
  if (name === 'error' || hasError(data)) return 'error' // OpenRouter sends its error beside a reason to stop
  return hasFinish ? 'finish' : 'content'
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

/** The same for a Responses stream. */
const USUAL_RESPONSES_EVENT = /^event: response\.(?!completed|failed|incomplete|created)[^\r\n]*\r?\ndata:[^\r\n]+[\r\n]*$/
const RESPONSES_KINDS: Readonly<Record<string, EventKind>> = {
  'response.created': 'start',
  'response.completed': 'end',
  'response.incomplete': 'end',
  'response.failed': 'failed',
  error: 'error',
}

function responsesKind(event: Buffer, text: string): EventKind {
  if (USUAL_RESPONSES_EVENT.test(text)) return 'content'
  const { event: name, data, hasFields } = parseSseEvent(event)
  if (!data) return hasFields ? 'drop' : 'comment'
  if (data.trim() === '[DONE]') return 'drop'
  const type = name ?? parseObject(data)?.type // the type of an event is its name, too
  return RESPONSES_KINDS[String(type)] ?? (hasError(data) ? 'error' : 'content')
}

/** The choices that an event with a reason to stop ends, by their index. @returns undefined for an event of another form */
export function endedChoices(event: Buffer): readonly unknown[] | undefined {
  const choices: unknown = parseObject(parseSseEvent(event).data ?? '')?.choices
  if (!Array.isArray(choices)) return undefined
  return choices.flatMap((choice) => {
    const { index, finish_reason: reason } = asObject(choice) ?? {}
    return typeof reason === 'string' && reason !== '' ? [index] : []
  })
}

/** Whether an event is a JSON object with a non-null `error` at its top level. */
function hasError(data: string): boolean {
  if (!data.includes('"error"')) return false
  const { error, object } = parseObject(data) ?? {} // text that is not JSON passes: the client's parser reports it
  return (error !== undefined && error !== null) || object === 'error' // SGLang's flat form has the second
}

/** Reads the usage. Most events have none and are not parsed. */
function usageOf(event: Buffer, read: BackendEvents['usageIn'], text = event.toString('latin1')): EventUsage | undefined {
  if (!text.includes(USAGE) || !USAGE_OBJECT.test(text)) return undefined
  const value = parseObject(parseSseEvent(event).data ?? '')
  const report = value && read(value)
  return report && { report, isAlone: Array.isArray(value.choices) && value.choices.length === 0 }
}

/** The names of the counts differ between the two formats. Usage that is a duration has no tokens. */
function transcriptionUsage(value: JsonObject): UsageReport | undefined {
  return openaiUsage(value) ?? responsesUsage(value)
}

/**
 * `message_start` contains the message with its usage; `message_delta` contains the usage itself. The start reports the tokens of an answer that has only
 * begun: a stream that breaks off would cost no more than these.
 */
function messageUsage(value: JsonObject): UsageReport | undefined {
  const message = asObject(value.message)
  const report = anthropicUsage(message ?? value)
  return message && report ? { ...report, outputTokens: undefined } : report
}
