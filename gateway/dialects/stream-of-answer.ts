/** Plain answers as the streams that their clients have asked for: some servers ignore `stream`. */
import type { StreamOrder } from './dialect.ts'
import { asObject, type JsonObject } from './json-body.ts'
import { dataEvent, type TypedEvent, typedEvent } from './sse.ts'
import { UnreadableAnswer } from './unreadable-answer.ts'

/** A chat completion as one chunk, and its usage if the client has asked for it. @throws UnreadableAnswer */
export function chatStream(answer: JsonObject, order: StreamOrder): string {
  const choices = listIn(answer, 'choices').map(({ message, ...choice }) => ({ ...choice, delta: deltaOf(asObject(message) ?? {}) }))
  return chunks({ ...answer, object: 'chat.completion.chunk', choices }, order)
}

/** A completion as one chunk. A chunk of this route has the fields of a whole completion. @throws UnreadableAnswer */
export function completionStream(answer: JsonObject, order: StreamOrder): string {
  return chunks({ ...answer, choices: listIn(answer, 'choices') }, order)
}

function chunks({ usage, ...answer }: JsonObject, { model, wantsUsage }: StreamOrder): string {
  const chunk = { ...answer, model }
  const counts = wantsUsage && asObject(usage) !== undefined ? dataEvent(JSON.stringify({ ...chunk, choices: [], usage })) : ''
  return dataEvent(JSON.stringify(chunk)) + counts + dataEvent('[DONE]')
}

/** Clients put the calls of a stream together by their index. In a plain answer some servers send null, or the same one for all. */
function deltaOf({ tool_calls: calls, ...message }: JsonObject): JsonObject {
  if (!Array.isArray(calls)) return message
  return { ...message, tool_calls: calls.map((call, index) => ({ ...asObject(call), index })) }
}

/** A message as its events: each block in one piece. @throws UnreadableAnswer */
export function messageStream(
  { stop_reason, stop_sequence = null, stop_details, usage, ...answer }: JsonObject,
  { model }: StreamOrder,
): string {
  const blocks = listIn(answer, 'content').flatMap(blockEvents)
  const counts = { input_tokens: 0, ...asObject(usage) }
  const start = { ...answer, model, content: [], stop_reason: null, stop_sequence: null, usage: { ...counts, output_tokens: 0 } }
  const events: readonly TypedEvent[] = [
    { type: 'message_start', message: start },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason, stop_sequence, stop_details }, usage: { output_tokens: 0, ...counts } },
    { type: 'message_stop' },
  ]
  return events.map(typedEvent).join('')
}

/** A block begins empty, and its content follows. A block of another kind begins whole. */
function blockEvents(block: JsonObject, index: number): TypedEvent[] {
  const [empty, deltas] = contentOf(block)
  return [
    { type: 'content_block_start', index, content_block: empty },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
}

function contentOf(block: JsonObject): [JsonObject, JsonObject[]] {
  const { type, text, thinking, signature, input } = block
  if (type === 'text') return [{ ...block, text: '' }, [{ type: 'text_delta', text }]]
  if (type === 'tool_use') return [{ ...block, input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(input ?? {}) }]]
  if (type !== 'thinking') return [block, []]
  const deltas = [
    { type: 'thinking_delta', thinking },
    { type: 'signature_delta', signature: signature ?? '' },
  ]
  return [{ ...block, thinking: '', signature: '' }, deltas]
}

/** A text stands in five events of a response, so that a larger answer, in bytes, would fill the memory of its thread. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024
/** Items and their parts together: each becomes up to five events. */
const MAX_RESPONSE_PARTS = 1_000
const ENDS: ReadonlySet<unknown> = new Set(['completed', 'incomplete', 'failed'])

/** A response as its events: each text and each list of arguments in one piece. @throws UnreadableAnswer */
export function responseStream(answer: JsonObject, { model, bytes = 0 }: StreamOrder): string {
  const { status = 'completed' } = answer
  if (!ENDS.has(status)) throw new UnreadableAnswer('its answer is not complete')
  const items = listIn(answer, 'output')
  const parts = items.reduce((sum, { content }) => sum + (Array.isArray(content) ? content.length : 0), items.length)
  if (bytes > MAX_RESPONSE_BYTES || parts > MAX_RESPONSE_PARTS) throw new UnreadableAnswer('its answer is too large to be sent as a stream')
  const response = { ...answer, model, status }
  const begun = { ...response, status: 'in_progress', output: [], usage: null }
  const events: readonly TypedEvent[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...items.flatMap(itemEvents),
    { type: `response.${String(status)}`, response },
  ]
  return events.map((event, number) => typedEvent({ ...event, sequence_number: number })).join('')
}

/** A message and a call begin empty, and their content follows. An item of another kind begins whole. */
function itemEvents(item: JsonObject, output_index: number): TypedEvent[] {
  const at = { item_id: item.id, output_index }
  const [empty, content] = itemContent(item, at)
  return [
    { type: 'response.output_item.added', output_index, item: empty },
    ...content,
    { type: 'response.output_item.done', output_index, item },
  ]
}

function itemContent(item: JsonObject, at: JsonObject): [JsonObject, TypedEvent[]] {
  if (item.type === 'message') {
    const parts = listIn(item, 'content').flatMap((part, content_index) => partEvents(part, { ...at, content_index }))
    return [{ ...item, status: 'in_progress', content: [] }, parts]
  }
  if (item.type !== 'function_call') return [item, []]
  const { arguments: args = '', name } = item
  const calls = [
    { type: 'response.function_call_arguments.delta', ...at, delta: args },
    { type: 'response.function_call_arguments.done', ...at, name, arguments: args },
  ]
  return [{ ...item, status: 'in_progress', arguments: '' }, calls]
}

function partEvents(part: JsonObject, at: JsonObject): TypedEvent[] {
  const [empty, content] = partContent(part, at)
  return [{ type: 'response.content_part.added', ...at, part: empty }, ...content, { type: 'response.content_part.done', ...at, part }]
}

function partContent(part: JsonObject, at: JsonObject): [JsonObject, TypedEvent[]] {
  const { type, text, refusal, logprobs = [] } = part
  if (type === 'output_text') {
    const deltas = [
      { type: 'response.output_text.delta', ...at, delta: text, logprobs },
      { type: 'response.output_text.done', ...at, text, logprobs },
    ]
    return [{ ...part, text: '' }, deltas]
  }
  if (type !== 'refusal') return [part, []]
  const deltas = [
    { type: 'response.refusal.delta', ...at, delta: refusal },
    { type: 'response.refusal.done', ...at, refusal },
  ]
  return [{ ...part, refusal: '' }, deltas]
}

/** @throws UnreadableAnswer unless the field is a list of objects */
function listIn(answer: JsonObject, field: string): readonly JsonObject[] {
  const list = answer[field]
  const objects = Array.isArray(list) ? list.map(asObject).filter((entry) => entry !== undefined) : []
  if (!Array.isArray(list) || objects.length < list.length) throw new UnreadableAnswer(`its answer has no ${field}`)
  return objects
}
