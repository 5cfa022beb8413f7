/** Anthropic's messages of the stub model, and the count of their tokens. */
import { namedEvents, spaced, type StubAnswer, type StubFormat, type StubRequest, wordsOf } from './stub-format.ts'

export const messagesFormat: StubFormat = {
  inputTokens: promptTokens,
  plain: (answer) => JSON.stringify(messageOf(answer, [{ type: 'text', text: answer.words.join(' ') }], stopReason(answer))),
  pieces(answer) {
    const delta = { stop_reason: stopReason(answer), stop_sequence: null }
    const usage = answer.usage ? { output_tokens: answer.words.length } : undefined
    const start = { ...answer, words: [] }
    const events: ReadonlyArray<{ type: string; [field: string]: unknown }> = [
      { type: 'message_start', message: messageOf(start, [], null) },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'ping' },
      ...spaced(answer.words).map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta, usage },
      { type: 'message_stop' },
    ]
    return namedEvents(events)
  },
  failure,
}

export const countTokensFormat: StubFormat = {
  inputTokens: promptTokens,
  plain: ({ inputTokens }) => JSON.stringify({ input_tokens: inputTokens }),
  failure,
}

function promptTokens({ messages }: StubRequest): number {
  return wordsOf(messages)
}

function messageOf({ id, request: { model }, inputTokens, words, usage }: StubAnswer, content: object[], reason: string | null): object {
  const counts = usage ? { input_tokens: inputTokens, output_tokens: words.length } : undefined
  const head = { id: `msg_${id}`, type: 'message', role: 'assistant', model, content }
  return { ...head, stop_reason: reason, stop_sequence: null, usage: counts }
}

function stopReason({ truncated }: StubAnswer): string {
  return truncated ? 'max_tokens' : 'end_turn'
}

function failure(status: number): string {
  const type = status === 429 ? 'rate_limit_error' : status === 529 ? 'overloaded_error' : 'api_error'
  return JSON.stringify({ type: 'error', error: { type, message: `stub model answers ${status} as asked` } })
}
