/** A translation is a folder and a row: this toy makes chat completions of completions, for a server that knows those alone. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { chunk, DONE, gatewayTo, json, type Reply, sse, until } from '../../../test/support/upstream-harness.ts'
import { openaiEvents } from '../backend-events.ts'
import type { JsonObject } from '../json-body.ts'
import { Changes } from './changes.ts'
import { pieceOf } from './chat-answer.ts'
import { type AnswerStream, type Translator, TRANSLATORS } from './translators.ts'

const textOf = (answer: JsonObject): string => pieceOf(answer)?.text ?? ''

class ToyStream implements AnswerStream {
  isFinished = false
  isEnded = false

  push(chunk: JsonObject): string {
    this.isFinished ||= pieceOf(chunk)?.finish !== undefined
    const text = textOf(chunk)
    return text === '' ? '' : `data: ${JSON.stringify({ choices: [{ text }] })}\n\n`
  }

  end(): string {
    this.isEnded = true
    return 'data: [DONE]\n\n'
  }
}

const TOY: Translator = {
  to: 'chat/completions',
  events: openaiEvents,
  request: ({ prompt, stream }) => ({
    fields: { messages: [{ role: 'user', content: prompt }], stream: stream === true },
    changes: new Changes(),
  }),
  answer: (answer, { model }) => ({ object: 'text_completion', model, choices: [{ text: textOf(answer), finish_reason: 'stop' }] }),
  stream: () => new ToyStream(),
}

beforeEach(() => void Object.assign(TRANSLATORS, { completions: TOY }))
afterEach(() => void Reflect.deleteProperty(TRANSLATORS, 'completions'))

const COUNTS = { prompt_tokens: 7, completion_tokens: 3 }
const PLAIN = json(200, { choices: [{ message: { content: 'hello' }, finish_reason: 'stop' }], usage: COUNTS })
const STREAM: Reply = (response) =>
  sse(response).end(`${chunk('hello')}${chunk('', 'stop')}data: ${JSON.stringify({ choices: [], usage: COUNTS })}\n\n${DONE}`)

it.each([
  { stream: false, reply: PLAIN, text: '{"object":"text_completion","model":"llama","choices":[{"text":"hello","finish_reason":"stop"}]}' },
  { stream: true, reply: STREAM, text: `data: {"choices":[{"text":"hello"}]}\n\n${DONE}` },
])('a translator is found by its row, and its calls are charged (stream: $stream)', async ({ stream, reply, text }) => {
  const { gateway, backend } = await gatewayTo(reply, { tickMs: 60_000, backend: { routes: ['chat/completions'], engine: 'Other' } })
  const answer = await gateway.post('/v1/completions', { model: 'llama', prompt: 'hi', stream })
  expect([answer.status, answer.text]).toEqual([200, text])
  expect(backend.received[0]?.path).toBe('/v1/chat/completions')
  expect(JSON.parse(String(backend.received[0]?.body))).toMatchObject({ messages: [{ role: 'user', content: 'hi' }] })
  await until(() => gateway.outcomes.length === 1)
  expect(gateway.outcomes[0]?.usage).toMatchObject({ inputTokens: 7, outputTokens: 3, isEstimated: false })
})
