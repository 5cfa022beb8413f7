/** A server that answers in one piece where a stream was asked for, or the reverse: its work is paid for once, and never asked for again. */
import OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { checkMessageStream } from '../../test/support/message-grammar.ts'
import { sharedBodyReader } from '../../test/support/shared-body-reader.ts'
import {
  type Answer,
  CHAT,
  chunk,
  DONE,
  type FakeBackend,
  gatewayTo,
  Harness,
  HELLO,
  HELLO_STREAM,
  json,
  MESSAGES,
  type Reply,
  sse,
  startBackend,
  until,
} from '../../test/support/upstream-harness.ts'
import type { BackendRecord } from '#contract/records/model-record.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { parseSseEvent, splitEvents } from '../dialects/sse.ts'
import type { Outcome } from './forward-job.ts'

const COUNTS = { prompt_tokens: 11, completion_tokens: 4 }
const CALLS = [
  { id: 'c1', type: 'function', function: { name: 'read', arguments: '{"path":"a"}' } },
  { id: 'c2', type: 'function', function: { name: 'read', arguments: '{}' } },
]
const COMPLETION = {
  ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'up' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello', tool_calls: CALLS }, finish_reason: 'tool_calls' }],
  usage: COUNTS,
}
const PROMPT = { model: 'llama', prompt: 'hi', stream: true }
const QUESTION = { model: 'llama', input: 'hi', stream: true }
const RESPONSE_COUNTS = { input_tokens: 11, output_tokens: 4 }
const TEXT = { type: 'output_text', text: 'hello', annotations: [] }
const PAID = { inputTokens: 11, outputTokens: 4, isEstimated: false }

interface Called {
  readonly answer: Answer
  readonly servers: readonly FakeBackend[]
  /** The only outcome of the call. */
  readonly outcome: Outcome | undefined
}

/** Calls a model with two servers. */
async function call(path: Dialect['path'], body: object, reply: Reply, changes: Partial<BackendRecord> = {}): Promise<Called> {
  const servers = [await startBackend(reply), await startBackend(reply)]
  const gateway = await new Harness({ tickMs: 60_000 }).start()
  gateway.serve(
    servers.map(({ address }) => address),
    {},
    { upstreamModel: 'up', ...changes },
  )
  gateway.job = { inputTokens: 19, outputTokens: 300 }
  const answer = await gateway.post(path, body)
  const outcomes = (): Outcome[] => [...gateway.outcomes, ...gateway.refused]
  await until(() => outcomes().length === 1)
  expect(servers.flatMap(({ received }) => received)).toHaveLength(1)
  return { answer, servers, outcome: outcomes()[0] }
}

const dataOf = ({ text }: Answer): string[] => [...splitEvents(Buffer.from(text))].map((event) => parseSseEvent(event).data ?? '')

/** Large answers are written in the worker. */
beforeAll(() => sharedBodyReader.start())

describe('a plain answer where a stream was asked for', () => {
  it.each([true, false])('is one chunk of a chat completion, and its usage only for a client that wants it: %s', async (wants) => {
    const options = wants ? { stream_options: { include_usage: true } } : {}
    const { answer, outcome } = await call(CHAT, { ...HELLO_STREAM, ...options }, json(200, COMPLETION))
    const chunkOf = { id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'llama' }
    const delta = { role: 'assistant', content: 'hello', tool_calls: CALLS.map((one, index) => ({ index, ...one })) }
    const [first, ...rest] = dataOf(answer)
    expect(answer.headers['content-type']).toContain('text/event-stream')
    expect(JSON.parse(String(first))).toEqual({ ...chunkOf, choices: [{ index: 0, delta, finish_reason: 'tool_calls' }] })
    expect(rest).toEqual([...(wants ? [JSON.stringify({ ...chunkOf, choices: [], usage: COUNTS })] : []), '[DONE]'])
    expect(outcome).toMatchObject({ usage: PAID, error: undefined })
  })

  it('is one chunk of a completion', async () => {
    const choices = [{ index: 0, text: 'hello', finish_reason: 'stop' }]
    const whole = { id: 'c1', object: 'text_completion', model: 'up', choices, usage: COUNTS }
    const { answer, outcome } = await call('/v1/completions', PROMPT, json(200, whole), { routes: ['completions'] })
    const [first, ...rest] = dataOf(answer)
    expect([JSON.parse(String(first)), rest]).toEqual([{ id: 'c1', object: 'text_completion', model: 'llama', choices }, ['[DONE]']])
    expect(outcome).toMatchObject({ usage: PAID, error: undefined })
  })

  it('is the events of a message', async () => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 'c2ln' },
      { type: 'text', text: 'hello' },
      { type: 'tool_use', id: 't1', name: 'read', input: { path: 'a' } },
    ]
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'up', content, stop_reason: 'tool_use', stop_sequence: null }
    const reply = json(200, { ...message, usage: { input_tokens: 11, output_tokens: 4 } })
    const { answer, outcome } = await call(MESSAGES, { ...HELLO_STREAM, max_tokens: 9 }, reply, { routes: ['messages'] })
    const events = checkMessageStream(answer.text)
    const deltas = events.flatMap(({ delta }) => (delta?.type === undefined ? [] : [delta]))
    expect(events[0]).toMatchObject({ message: { model: 'llama', content: [], stop_reason: null, usage: { input_tokens: 11 } } })
    expect(deltas.map(({ thinking, text, partial_json }) => thinking ?? text ?? partial_json)).toEqual([
      'hm',
      undefined,
      'hello',
      '{"path":"a"}',
    ])
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 4 } })
    expect(outcome).toMatchObject({ usage: PAID, error: undefined })
  })

  it('is a message that says why it was refused', async () => {
    const stop = { stop_reason: 'refusal', stop_sequence: null, stop_details: { type: 'refusal', category: 'x', explanation: 'no' } }
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'up', content: [], ...stop, usage: RESPONSE_COUNTS }
    const { answer } = await call(MESSAGES, { ...HELLO_STREAM, max_tokens: 9 }, json(200, message), { routes: ['messages'] })
    const events = checkMessageStream(answer.text)
    expect([events[0]?.message, events.at(-2)?.delta]).toEqual([expect.not.objectContaining({ stop_details: stop.stop_details }), stop])
  })

  it.each(['completed', 'incomplete', 'failed'] as const)('is the events of a response, which is %s', async (status) => {
    const output = [
      { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'hm' }] },
      { type: 'message', id: 'm', role: 'assistant', status: 'completed', content: [TEXT, { type: 'refusal', refusal: 'no' }] },
      { type: 'function_call', id: 'f', call_id: 'c1', name: 'read', arguments: '{"path":"a"}', status: 'completed' },
    ]
    const whole = { id: 'r1', object: 'response', created_at: 1, model: 'up', status, error: null, output, usage: RESPONSE_COUNTS }
    const { answer, outcome } = await call('/v1/responses', QUESTION, json(200, whole), { routes: ['responses'] })
    const events = dataOf(answer).map((data) => JSON.parse(data) as Record<string, unknown>)
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index))
    expect(events.map(({ type, delta }) => (delta === undefined ? type : [type, delta]))).toEqual([
      ...['response.created', 'response.in_progress', 'response.output_item.added', 'response.output_item.done'],
      ...['response.output_item.added', 'response.content_part.added', ['response.output_text.delta', 'hello']],
      ...['response.output_text.done', 'response.content_part.done', 'response.content_part.added'],
      ...[['response.refusal.delta', 'no'], 'response.refusal.done', 'response.content_part.done', 'response.output_item.done'],
      ...['response.output_item.added', ['response.function_call_arguments.delta', '{"path":"a"}']],
      ...['response.function_call_arguments.done', 'response.output_item.done', `response.${status}`],
    ])
    expect(events[0]).toMatchObject({ response: { id: 'r1', model: 'llama', status: 'in_progress', output: [], usage: null } })
    expect(events.at(-1)?.response).toEqual({ ...whole, model: 'llama' })
    expect(answer.text.startsWith('event: response.created\ndata: ')).toBe(true)
    expect(outcome).toMatchObject({ usage: PAID, error: undefined })
  })

  it("is what OpenAI's SDK rebuilds as the same response", async () => {
    const call = { type: 'function_call', id: 'f', call_id: 'c1', name: 'read', arguments: '{"path":"a"}', status: 'completed' }
    const output = [{ type: 'message', id: 'm', role: 'assistant', status: 'completed', content: [TEXT] }, call]
    const whole = { id: 'r1', object: 'response', created_at: 1, model: 'llama', error: null, output, usage: RESPONSE_COUNTS }
    const { gateway } = await gatewayTo(json(200, whole), { backend: { routes: ['responses'] } })
    const client = new OpenAI({ baseURL: `http://127.0.0.1:${gateway.port}/v1`, apiKey: 'sk-test', maxRetries: 0 })
    const stream = client.responses.stream({ model: 'llama', input: 'hi' })
    const texts: string[] = []
    stream.on('response.output_text.delta', ({ delta }) => void texts.push(delta))
    const rebuilt = await stream.finalResponse()
    expect([rebuilt, texts]).toMatchObject([{ id: 'r1', status: 'completed', output, usage: RESPONSE_COUNTS }, ['hello']])
  })

  it.each([
    ['of a response that still runs', { status: 'queued', output: [], usage: RESPONSE_COUNTS }],
    ['of a response without output', { id: 'r1', usage: RESPONSE_COUNTS }],
    ['of a response of 1,001 parts', { output: [{ type: 'message', content: Array(1_000).fill(TEXT) }], usage: RESPONSE_COUNTS }],
  ])('%s is an error, which is paid for', async (_, whole) => {
    const { answer, outcome } = await call('/v1/responses', QUESTION, json(200, whole), { routes: ['responses'] })
    expect([answer.status, outcome?.error?.row.id, outcome?.usage]).toMatchObject([502, 'backendError', PAID])
  })

  it('of a response of 5 MiB is an error, which is paid for: a text would stand in five events', async () => {
    const whole = { output: [], instructions: 'x'.repeat(5 * 2 ** 20), usage: RESPONSE_COUNTS }
    const { gateway } = await gatewayTo(json(200, whole), { tickMs: 200, backend: { routes: ['responses'] } })
    expect((await gateway.post('/v1/responses', QUESTION)).status).toBe(502)
    expect(gateway.refused[0]).toMatchObject({ usage: PAID, error: { row: { id: 'backendError' } } })
  })

  it.each([null, -1, 0])('has a number for each call, whatever number the server gives all of them: %s', async (index) => {
    const message = { role: 'assistant', content: null, tool_calls: CALLS.map((one) => ({ ...one, index })) }
    const whole = { ...COMPLETION, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }
    const { answer } = await call(CHAT, HELLO_STREAM, json(200, whole))
    const { choices } = JSON.parse(String(dataOf(answer)[0])) as { choices: { delta: { tool_calls: { index: number }[] } }[] }
    expect(choices[0]?.delta.tool_calls.map((one) => one.index)).toEqual([0, 1])
  })

  it.each([{ id: '0' }, { index: 0 }, { id: '0', index: 0 }, {}])('keeps all calls of a translated answer apart: %s', async (same) => {
    const message = {
      role: 'assistant',
      content: null,
      tool_calls: CALLS.map(({ type, function: named }) => ({ type, function: named, ...same })),
    }
    const whole = { ...COMPLETION, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }
    const { answer } = await call(MESSAGES, { ...HELLO_STREAM, max_tokens: 9 }, json(200, whole), { routes: ['chat/completions'] })
    const events = checkMessageStream(answer.text)
    const inputs = events.flatMap(({ index, delta }) => (delta?.partial_json === undefined ? [] : [[index, delta.partial_json]]))
    expect(inputs).toEqual([
      [0, '{"path":"a"}'],
      [1, '{}'],
    ])
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: 'tool_use' } })
  })

  it.each<[string, Dialect['path'], object, unknown]>([
    ['without choices', CHAT, HELLO_STREAM, { id: 'c1', usage: COUNTS }],
    ['of choices that are none', CHAT, HELLO_STREAM, { choices: ['x'], usage: COUNTS }],
  ])('%s is an error, which is paid for', async (_, path, body, whole) => {
    const { answer, outcome } = await call(path, body, json(200, whole), { routes: ['chat/completions'] })
    expect([answer.status, outcome?.error?.row.id, outcome?.usage]).toMatchObject([502, 'backendError', PAID])
  })
})

describe('a stream where a plain answer was asked for', () => {
  it.each<[string, Dialect['path'], object, Partial<BackendRecord>]>([
    ['chat completions', CHAT, HELLO, {}],
    ['Messages', MESSAGES, { ...HELLO, max_tokens: 9 }, { routes: ['messages'] }],
    ['Messages that are translated', MESSAGES, { ...HELLO, max_tokens: 9 }, { routes: ['chat/completions'] }],
  ])('of %s is stopped, and costs what such calls usually cost', async (_, path, body, changes) => {
    const { answer, outcome, servers } = await call(path, body, (response) => void sse(response).write(chunk('hello') + DONE), changes)
    expect([answer.status, outcome?.error?.row.id]).toEqual([502, 'backendError'])
    expect(outcome?.usage).toMatchObject({ inputTokens: 19, outputTokens: 300, isEstimated: true })
    await Promise.race(servers.map(({ aborted }) => aborted))
  })
})
