/** OpenAI's chat completions and completions of the stub model. A stream reports usage in a last piece, if `stream_options` asks for it. */
import { openaiFailure, spaced, type StubAnswer, type StubFormat, unnamedEvents, wordsOf } from './stub-format.ts'

const DONE = 'data: [DONE]\n\n'

export const chatFormat: StubFormat = {
  inputTokens: ({ messages }) => wordsOf(messages),
  hasUsageOption: true,
  plain(answer) {
    const message = { role: 'assistant', content: answer.words.join(' ') }
    const choices = [{ index: 0, message, logprobs: null, finish_reason: finish(answer) }]
    return JSON.stringify({ ...chatHead(answer, 'chat.completion'), choices, usage: usageOf(answer) })
  },
  pieces(answer) {
    const head = chatHead(answer, 'chat.completion.chunk')
    const chunk = (delta: object, reason: string | null = null): object => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason: reason }],
    })
    const texts = spaced(answer.words).map((content) => chunk({ content }))
    const chunks = [chunk({ role: 'assistant', content: '' }), ...texts, chunk({}, finish(answer)), ...usageChunk(head, answer)]
    return [...unnamedEvents(chunks), DONE]
  },
  failure: openaiFailure,
}

export const completionsFormat: StubFormat = {
  inputTokens: ({ prompt }) => wordsOf(prompt),
  hasUsageOption: true,
  plain(answer) {
    const choices = [{ index: 0, text: answer.words.join(' '), logprobs: null, finish_reason: finish(answer) }]
    return JSON.stringify({ ...textHead(answer), choices, usage: usageOf(answer) })
  },
  pieces(answer) {
    const head = textHead(answer)
    const chunk = (text: string, reason: string | null = null): object => ({
      ...head,
      choices: [{ index: 0, text, logprobs: null, finish_reason: reason }],
    })
    const texts = spaced(answer.words).map((text) => chunk(text))
    return [...unnamedEvents([...texts, chunk('', finish(answer)), ...usageChunk(head, answer)]), DONE]
  },
  failure: openaiFailure,
}

function chatHead({ id, createdSeconds, request: { model } }: StubAnswer, object: string): object {
  return { id: `chatcmpl-${id}`, object, created: createdSeconds, model }
}

function textHead({ id, createdSeconds, request: { model } }: StubAnswer): object {
  return { id: `cmpl-${id}`, object: 'text_completion', created: createdSeconds, model }
}

function finish({ truncated }: StubAnswer): string {
  return truncated ? 'length' : 'stop'
}

function usageOf({ usage, inputTokens: prompt, words: { length } }: StubAnswer): object | undefined {
  return usage ? { prompt_tokens: prompt, completion_tokens: length, total_tokens: prompt + length } : undefined
}

function usageChunk(head: object, answer: StubAnswer): object[] {
  const usage = usageOf(answer)
  return usage === undefined ? [] : [{ ...head, choices: [], usage }]
}
