/** OpenAI's responses of the stub model. The last event of a stream has the whole response with its usage. */
import { namedEvents, openaiFailure, spaced, type StubAnswer, type StubFormat, wordsOf } from './stub-format.ts'

export const responsesFormat: StubFormat = {
  inputTokens: ({ instructions, input }) => wordsOf([instructions, input]),
  plain: (answer) => JSON.stringify(ended(answer)),
  pieces(answer) {
    const at = { item_id: `msg_${answer.id}`, output_index: 0, content_index: 0 }
    const text = answer.words.join(' ')
    const last = ended(answer)
    const events: ReadonlyArray<{ type: string }> = [
      event('response.created', { response: responseOf(answer, 'in_progress', []) }),
      event('response.output_item.added', { output_index: 0, item: { ...itemOf(answer, 'in_progress'), content: [] } }),
      event('response.content_part.added', { ...at, part: partOf('') }),
      ...spaced(answer.words).map((delta) => event('response.output_text.delta', { ...at, delta, logprobs: [] })),
      event('response.output_text.done', { ...at, text, logprobs: [] }),
      event('response.content_part.done', { ...at, part: partOf(text) }),
      event('response.output_item.done', { output_index: 0, item: itemOf(answer, 'completed') }),
      event(`response.${last.status}`, { response: last }),
    ]
    return namedEvents(events.map((one, index) => ({ ...one, sequence_number: index })))
  },
  failure: openaiFailure,
}

function event(type: string, fields: object): { type: string } {
  return { type, ...fields }
}

function ended(answer: StubAnswer) {
  const status = answer.truncated ? 'incomplete' : 'completed'
  const { usage, inputTokens, words } = answer
  const counts = {
    ...{ input_tokens: inputTokens, input_tokens_details: { cached_tokens: 0 } },
    ...{ output_tokens: words.length, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: inputTokens + words.length },
  }
  const reason = answer.truncated ? { reason: 'max_output_tokens' } : null
  return { ...responseOf(answer, status, [itemOf(answer, status)]), incomplete_details: reason, usage: usage ? counts : null }
}

function responseOf({ id, createdSeconds, request: { model } }: StubAnswer, status: string, output: object[]) {
  const head = { id: `resp_${id}`, object: 'response', created_at: createdSeconds, model, status, output }
  return { ...head, error: null, incomplete_details: null, parallel_tool_calls: true, tool_choice: 'auto', tools: [], usage: null }
}

function itemOf({ id, words }: StubAnswer, status: string): object {
  return { id: `msg_${id}`, type: 'message', role: 'assistant', status, content: [partOf(words.join(' '))] }
}

function partOf(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] }
}
