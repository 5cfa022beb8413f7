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

function deltaOf({ tool_calls: calls, ...message }: JsonObject): JsonObject {
  if (!Array.isArray(calls)) return message
  return { ...message, tool_calls: calls.map((call, index) => ({ index, ...asObject(call) })) }
}

/** A message as its events: each block in one piece. @throws UnreadableAnswer */
export function messageStream({ stop_reason, stop_sequence = null, usage, ...answer }: JsonObject, { model }: StreamOrder): string {
  const blocks = listIn(answer, 'content').flatMap(blockEvents)
  const counts = { input_tokens: 0, ...asObject(usage) }
  const start = { ...answer, model, content: [], stop_reason: null, stop_sequence: null, usage: { ...counts, output_tokens: 0 } }
  const events: readonly TypedEvent[] = [
    { type: 'message_start', message: start },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage: { output_tokens: 0, ...counts } },
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

/** @throws UnreadableAnswer unless the field is a list of objects */
function listIn(answer: JsonObject, field: string): readonly JsonObject[] {
  const list = answer[field]
  const objects = Array.isArray(list) ? list.map(asObject).filter((entry) => entry !== undefined) : []
  if (!Array.isArray(list) || objects.length < list.length) throw new UnreadableAnswer(`its answer has no ${field}`)
  return objects
}
