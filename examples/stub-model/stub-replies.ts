/** The answers of the stub model as text, in both wire formats. Pure: time, ids and words come from outside. */
import { z } from 'zod'

const text = z
  .union([z.string(), z.array(z.looseObject({ type: z.string().optional(), text: z.string().optional() })), z.null()])
  .optional()

const request = z.looseObject({
  model: z.string().default('stub'),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: z.number().nullish(),
  max_completion_tokens: z.number().nullish(),
  messages: z.array(z.looseObject({ role: z.string(), content: text })).default([]),
})

/** The part of a request that the stub reads. */
export type StubRequest = z.infer<typeof request>

/** The content of one answer. */
export interface StubAnswer {
  readonly id: string
  readonly createdSeconds: number
  readonly model: string
  readonly words: readonly string[]
  readonly inputTokens: number
  /** Whether the words were cut to the requested number of tokens. */
  readonly truncated: boolean
  readonly usage: boolean
}

/** A wire format: a plain body, the pieces of a stream, and an error body. */
export interface StubFormat {
  plain(answer: StubAnswer): string
  pieces(answer: StubAnswer): readonly string[]
  failure(status: number): string
}

/** @returns undefined for a body that is not a request */
export function parseStubRequest(body: string): StubRequest | undefined {
  try {
    return request.parse(JSON.parse(body))
  } catch {
    return undefined
  }
}

/** The text of the last message. */
export function lastMessage(from: StubRequest): string {
  const content = from.messages.at(-1)?.content
  return typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join(' ')
}

/** Words of an answer; a word is a token, so `max_tokens` cuts it. @param count number of words, undefined = an echo */
export function answerWords(from: StubRequest, count: number | undefined): { words: readonly string[]; truncated: boolean } {
  const echo = `This is the stub model; it has no mind of its own. You said: ${lastMessage(from)}`.trim().split(/\s+/)
  const all = count === undefined ? echo : Array.from({ length: count }, (_, index) => `word${index + 1}`)
  const limit = from.max_completion_tokens ?? from.max_tokens ?? all.length
  return { words: all.slice(0, limit), truncated: limit < all.length }
}

/** Tokens of a prompt: its words, at least one. */
export function inputTokens(from: StubRequest): number {
  return Math.max(1, JSON.stringify(from.messages).split(/\s+/).length)
}

/** OpenAI chat completions. `stream_options` requests the piece with the usage. */
export const chatCompletionsFormat: StubFormat = {
  plain(answer) {
    const message = { role: 'assistant', content: answer.words.join(' ') }
    const choices = [{ index: 0, message, logprobs: null, finish_reason: chatFinish(answer) }]
    return JSON.stringify({ ...chatHead(answer, 'chat.completion'), choices, usage: chatUsage(answer) })
  },
  pieces(answer) {
    const head = chatHead(answer, 'chat.completion.chunk')
    const chunk = (delta: object, finish: string | null = null): object => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason: finish }],
    })
    const usage = chatUsage(answer)
    const chunks = [
      chunk({ role: 'assistant', content: '' }),
      ...spaced(answer.words).map((content) => chunk({ content })),
      chunk({}, chatFinish(answer)),
      ...(usage === undefined ? [] : [{ ...head, choices: [], usage }]),
    ]
    return [...chunks.map((data) => `data: ${JSON.stringify(data)}\n\n`), 'data: [DONE]\n\n']
  },
  failure(status) {
    return JSON.stringify({ error: { message: `stub model answers ${status} as asked`, type: 'stub_error', param: null, code: null } })
  },
}

/** Anthropic messages. */
export const messagesFormat: StubFormat = {
  plain(answer) {
    const content = [{ type: 'text', text: answer.words.join(' ') }]
    return JSON.stringify(messageOf(answer, content, messageStop(answer), answer.words.length))
  },
  pieces(answer) {
    const stop = { stop_reason: messageStop(answer), stop_sequence: null }
    const events: ReadonlyArray<{ type: string; [field: string]: unknown }> = [
      { type: 'message_start', message: messageOf(answer, [], null, 0) },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'ping' },
      ...spaced(answer.words).map((word) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: word } })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: stop, usage: { output_tokens: answer.words.length } },
      { type: 'message_stop' },
    ]
    return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  },
  failure(status) {
    const type = status === 429 ? 'rate_limit_error' : status === 529 ? 'overloaded_error' : 'api_error'
    return JSON.stringify({ type: 'error', error: { type, message: `stub model answers ${status} as asked` } })
  },
}

function chatHead(answer: StubAnswer, object: string): object {
  return { id: `chatcmpl-${answer.id}`, object, created: answer.createdSeconds, model: answer.model }
}

function chatFinish(answer: StubAnswer): string {
  return answer.truncated ? 'length' : 'stop'
}

function chatUsage({ usage, inputTokens: prompt, words: { length } }: StubAnswer): object | undefined {
  return usage ? { prompt_tokens: prompt, completion_tokens: length, total_tokens: prompt + length } : undefined
}

function messageOf(
  { id, model, inputTokens: input_tokens }: StubAnswer,
  content: object[],
  stop_reason: string | null,
  output: number,
): object {
  const usage = { input_tokens, output_tokens: output }
  return { id: `msg_${id}`, type: 'message', role: 'assistant', model, content, stop_reason, stop_sequence: null, usage }
}

function messageStop(answer: StubAnswer): string {
  return answer.truncated ? 'max_tokens' : 'end_turn'
}

function spaced(words: readonly string[]): readonly string[] {
  return words.map((word, index) => (index === 0 ? word : ` ${word}`))
}
