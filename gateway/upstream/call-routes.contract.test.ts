/** Answers of the routes beside chat completions and messages: what the client gets, and what the call costs. */
import { describe, expect, it } from 'vitest'
import { gatewayTo, json, readAll, type Reply, sse, until } from '../../test/support/upstream-harness.ts'
import { boundaryIn } from '../dialects/form-body.ts'
import { readRequest } from '../dialects/read-request.ts'
import { transcriptions } from '../dialects/transcriptions.ts'
import type { Usage } from '../dialects/usage.ts'
import { GatewayError } from '../errors.ts'
import type { Outcome } from './forward-job.ts'

const PROMPT_TOKENS = 19
const COMPLETIONS = '/v1/completions'
const RESPONSES = '/v1/responses'
const reported = (inputTokens: number, cachedInputTokens: number, outputTokens: number): Usage => ({
  ...{ inputTokens, cachedInputTokens, outputTokens, isEstimated: false },
})
const estimated = (outputTokens: number): Usage => ({ inputTokens: PROMPT_TOKENS, cachedInputTokens: 0, outputTokens, isEstimated: true })
const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`

/** Sends one request to a server that knows the model as `up`. */
async function call(
  path: string,
  reply: Reply,
  body: object = {},
): Promise<{ status: number; text: string; outcome: Outcome; sent: unknown }> {
  const { gateway, backend } = await gatewayTo(reply, { tickMs: 60_000, backend: { upstreamModel: 'up' } })
  gateway.job = { inputTokens: PROMPT_TOKENS }
  const { status, text } = await gateway.post(path, { model: 'llama', ...body })
  await until(() => gateway.outcomes.length + gateway.refused.length === 1)
  const outcome = gateway.outcomes[0] ?? gateway.refused[0]
  if (outcome === undefined) throw new Error('the call has no outcome')
  expect(backend.received[0]?.path).toBe(path)
  return { status, text, outcome, sent: JSON.parse(String(backend.received[0]?.body)) }
}

describe('a completion', () => {
  const part = (text: string, more: object = {}): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'text_completion', model: 'up', choices: [{ index: 0, text, finish_reason: null, ...more }] })}\n\n`
  const usage = { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 6 } }
  const counts = `data: ${JSON.stringify({ object: 'text_completion', model: 'up', choices: [], usage })}\n\n`
  const FINISH = part('', { finish_reason: 'length' })
  const DONE = 'data: [DONE]\n\n'

  it('passes with the name that the client asked for, and costs what the server reported', async () => {
    const answer = { object: 'text_completion', model: 'up', choices: [{ text: 'EZC', index: 0, finish_reason: 'length' }], usage }
    const { text, outcome, sent } = await call(COMPLETIONS, json(200, answer), { prompt: 'hi there' })
    expect(JSON.parse(text)).toEqual({ ...answer, model: 'llama' })
    expect([outcome.usage, sent]).toEqual([reported(7, 6, 3), { model: 'up', prompt: 'hi there' }])
  })

  it('as a stream has no usage that the client did not ask for, and costs what the server reported', async () => {
    const stream = part('n') + part('t') + FINISH
    const { text, outcome, sent } = await call(COMPLETIONS, (response) => sse(response).end(stream + counts + DONE), {
      prompt: 'hi',
      stream: true,
    })
    expect(text).toBe(stream.replaceAll('"up"', '"llama"') + DONE)
    expect([outcome.usage, sent]).toMatchObject([reported(7, 6, 3), { stream_options: { include_usage: true } }])
  })

  it('that breaks off costs the text that was relayed', async () => {
    const reply: Reply = (response) => sse(response).write(part('one') + part(' "text": two') + part(' three'), () => response.destroy())
    expect((await call(COMPLETIONS, reply, { prompt: 'hi', stream: true })).outcome).toMatchObject({
      ...{ usage: estimated(3), wasSent: true, error: { row: { id: 'streamBroken' } } },
    })
  })
})

describe('several answers of a server that reports the tokens of one, as llama.cpp does,', () => {
  const usage = { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 6 } }
  const cost = async (
    job: { readonly choices: number; readonly prompts: number },
    engine: 'LlamaCpp' | 'Other',
  ): Promise<Usage | undefined> => {
    const { gateway } = await gatewayTo(json(200, { model: 'llama', choices: [{ text: 'a' }], usage }), { backend: { engine } })
    gateway.job = { inputTokens: PROMPT_TOKENS, ...job }
    await gateway.post(COMPLETIONS, { model: 'llama', prompt: 'hi' })
    return gateway.outcomes[0]?.usage
  }

  it('cost as much as so many answers, by an estimate', async () => {
    expect(await cost({ choices: 400, prompts: 1 }, 'LlamaCpp')).toEqual({ ...reported(7, 6, 1_200), isEstimated: true })
    expect(await cost({ choices: 2, prompts: 2 }, 'LlamaCpp')).toEqual({ ...reported(PROMPT_TOKENS, 6, 6), isEstimated: true })
  })

  it('cost what is reported where a server reports all, or there is one answer', async () => {
    expect(await cost({ choices: 400, prompts: 1 }, 'Other')).toEqual(reported(7, 6, 3))
    expect(await cost({ choices: 1, prompts: 1 }, 'LlamaCpp')).toEqual(reported(7, 6, 3))
  })
})

describe('a response', () => {
  const usage = { input_tokens: 21, output_tokens: 3, total_tokens: 24, input_tokens_details: { cached_tokens: 20 } }
  const CREATED = event('response.created', { response: { id: 'r', object: 'response', model: 'up', status: 'in_progress', usage: null } })
  const delta = (text: string): string => event('response.output_text.delta', { item_id: 'message', delta: text })
  const ended = (status: string, more: object = {}): string =>
    event(`response.${status}`, { response: { id: 'r', model: 'up', status, ...more } })
  const streamed = async (stream: string) => await call(RESPONSES, (response) => sse(response).end(stream), { input: 'hi', stream: true })

  it('passes with the name that the client asked for; cached tokens are part of its input', async () => {
    const answer = { object: 'response', model: 'up', status: 'completed', error: null, output: [{ type: 'message', content: [] }], usage }
    const { text, outcome } = await call(RESPONSES, json(200, answer), { input: 'hi' })
    expect([JSON.parse(text), outcome.usage]).toEqual([{ ...answer, model: 'llama' }, reported(21, 20, 3)])
  })

  it('that failed is an error with the words of the server, and costs what the server reported', async () => {
    const error = { code: 'server_error', message: 'the model broke at http://10.1.2.3:8000' }
    const answer = { object: 'response', model: 'llama', status: 'failed', error, output: [], usage }
    const { status, text, outcome } = await call(RESPONSES, json(200, answer), { input: 'hi' })
    expect([status, (JSON.parse(text) as { error: { message: string } }).error.message]).toEqual([
      502,
      'Backend error: the model broke at [host]',
    ])
    expect(outcome.usage).toEqual(reported(21, 20, 3))
  })

  it.each(['completed', 'incomplete'])('as a stream ends with the event response.%s, whose usage counts', async (status) => {
    const stream = CREATED + delta('it') + delta(' N') + ended(status, { usage })
    const { text, outcome } = await streamed(`${stream}data: [DONE]\n\n`)
    expect(text).toBe(stream.replaceAll('"up"', '"llama"'))
    expect(outcome).toEqual({ usage: reported(21, 20, 3), wasSent: true, error: undefined })
  })

  /** The events at the end of a stream that broke. */
  const failure = (message: string, sent: number): string =>
    event('response.failed', {
      sequence_number: sent,
      response: { object: 'response', status: 'failed', error: { code: 'upstream_error', message }, output: [], usage: null },
    }) + event('error', { code: 'upstream_error', message, param: null, sequence_number: sent + 1 })

  it('as a stream that the server ends as failed has the words of the server without its address, and costs what it reported', async () => {
    const error = { code: 'server_error', message: 'the model broke at http://10.1.2.3:8000' }
    const { text, outcome } = await streamed(CREATED + delta('it') + ended('failed', { error, usage }))
    expect(text).toBe(CREATED.replace('"up"', '"llama"') + delta('it') + failure('Backend error: the model broke at [host]', 2))
    expect(outcome).toMatchObject({ usage: reported(21, 20, 3), wasSent: true, error: { row: { id: 'streamBroken' } } })
  })

  it('as a stream that fails with its first event is an error with a status, and costs what the server reported', async () => {
    const { status, text, outcome } = await streamed(ended('failed', { error: { code: 'server_error', message: 'no room' }, usage }))
    expect([status, JSON.parse(text), outcome.usage]).toMatchObject([
      502,
      { error: { message: 'Backend error: no room' } },
      reported(21, 20, 3),
    ])
  })

  it('as a stream without its last event ends with an error for Codex and one for SDKs, which have the next numbers', async () => {
    const { text, outcome } = await streamed(CREATED + delta('it') + delta(' N'))
    expect(text).toBe(CREATED.replace('"up"', '"llama"') + delta('it') + delta(' N') + failure('Backend error: its stream ended early', 3))
    expect(outcome.usage).toEqual(estimated(2))
  })

  it('of a tool whose schema looks like a last event is not cut', async () => {
    const tools = [{ type: 'function', name: 'x', parameters: { type: 'response.completed' } }]
    const created = `data: ${JSON.stringify({ response: { model: 'llama', tools }, type: 'response.created' })}\n\n`
    const stream = created + delta('it') + ended('completed', { usage }).replaceAll('"up"', '"llama"')
    expect((await streamed(stream)).text).toBe(stream)
  })

  it('with an error as its first event is an error with a status', async () => {
    const { status, text } = await streamed(event('error', { code: 'server_error', message: 'no room', param: null }))
    expect([status, JSON.parse(text)]).toMatchObject([502, { error: { type: 'server_error' } }])
  })
})

describe('an embedding and a ranking', () => {
  it.each([
    [
      '/v1/embeddings',
      { object: 'list', model: 'up', data: [{ embedding: 'AACAPwAAAEA=', index: 0 }], usage: { prompt_tokens: 7, total_tokens: 7 } },
    ],
    ['/v1/rerank', { model: 'up', results: [{ index: 0, relevance_score: 2.5 }], usage: { prompt_tokens: 7, total_tokens: 7 } }],
    ['/v1/rerank', { model: 'up', results: [{ index: 0, relevance_score: 2.5 }], usage: { total_tokens: 7 } }], // an earlier vLLM
  ])('%s costs its input alone', async (path, answer) => {
    const { text, outcome } = await call(path, json(200, answer))
    expect([JSON.parse(text), outcome.usage]).toEqual([{ ...answer, model: 'llama' }, reported(7, 0, 0)])
  })

  it('a ranking of texts may be a list, as of a server that answers as TEI does', async () => {
    const list = [{ index: 0, score: 2.5 }]
    const { text, outcome } = await call('/v1/rerank', json(200, list))
    expect([JSON.parse(text), outcome.usage]).toEqual([list, estimated(0)])
    expect((await call('/v1/embeddings', json(200, list))).status).toBe(502)
  })

  it('without usage costs the estimate of its input', async () => {
    const { outcome } = await call('/v1/embeddings', json(200, { object: 'list', model: 'up', data: [{ embedding: [1, 2], index: 0 }] }))
    expect(outcome.usage).toEqual(estimated(0))
  })

  it('of many megabytes passes as it comes, and costs its input alone', async () => {
    const data = Array.from({ length: 3_000 }, (_, index) => ({ embedding: 'A'.repeat(1_000), index }))
    const answer = { object: 'list', data, model: 'up', usage: { prompt_tokens: 9_000, total_tokens: 9_000 } }
    const { text, outcome } = await call('/v1/embeddings', json(200, answer))
    expect([text.length > 3_000_000, outcome.usage]).toEqual([true, reported(9_000, 0, 0)])
  })
})

describe('sound', () => {
  const TRANSCRIPTIONS = '/v1/audio/transcriptions'
  /** A gateway before one server that knows the model as `up`, with the form that the gateway has read. */
  async function transcribe(
    reply: Reply,
    stream = false,
  ): Promise<{ status: number; text: string; usage: Usage | undefined; sent: FormData }> {
    const form = new FormData()
    for (const [name, value] of Object.entries({ model: 'llama', ...(stream && { stream: 'true' }) })) form.append(name, value)
    form.append('file', new File(['RIFF \0\r\n--a sound'], 'a.wav', { type: 'audio/wav' }))
    const request = new Request('http://x', { method: 'POST', body: form })
    const type = request.headers.get('content-type') ?? ''
    const bytes = Buffer.from(await request.arrayBuffer())
    const read = readRequest(bytes, transcriptions, { isMetered: true, boundary: boundaryIn(type) })
    if (read instanceof GatewayError) throw read
    const { gateway, backend } = await gatewayTo(reply, { tickMs: 60_000, backend: { upstreamModel: 'whisper-1' } })
    gateway.job = { inputTokens: PROMPT_TOKENS, body: read.body, stream }
    const { status, text } = await gateway.post(TRANSCRIPTIONS, { model: 'llama' })
    await until(() => gateway.outcomes.length + gateway.refused.length === 1)
    const { headers, body } = backend.received[0] ?? { headers: {}, body: Buffer.alloc(0) }
    const sent = await new Response(new Uint8Array(body), { headers: { 'content-type': headers['content-type'] ?? '' } }).formData()
    return { status, text, usage: (gateway.outcomes[0] ?? gateway.refused[0])?.usage, sent }
  }

  it('reaches the server as it was, with the name that the server has for the model', async () => {
    const { sent } = await transcribe(json(200, { text: 'hello' }))
    const file = sent.get('file') as File
    expect([sent.get('model'), file.name, file.type, await file.text()]).toEqual([
      'whisper-1',
      'a.wav',
      'audio/wav',
      'RIFF \0\r\n--a sound',
    ])
  })

  it.each<[string, object, Usage]>([
    ['tokens', { text: 'hello', usage: { type: 'tokens', input_tokens: 14, output_tokens: 45, total_tokens: 59 } }, reported(14, 0, 45)],
    ['tokens of a chat completion', { text: 'hello', usage: { prompt_tokens: 14, completion_tokens: 45 } }, reported(14, 0, 45)],
    ['a duration, from which no tokens follow', { text: 'hello', usage: { type: 'duration', seconds: 9 } }, estimated(1)],
  ])('costs what its server reports: %s', async (_what, answer, usage) => {
    expect((await transcribe(json(200, answer))).usage).toEqual(usage)
  })

  it('may come as subtitles, which pass as they are', async () => {
    const subtitles = 'WEBVTT\n\n00:00.000 --> 00:01.000\nhello there\n'
    const reply: Reply = (response) => response.writeHead(200, { 'content-type': 'text/vtt; charset=utf-8' }).end(subtitles)
    expect(await transcribe(reply)).toMatchObject({ status: 200, text: subtitles, usage: estimated(Math.ceil(subtitles.length / 4)) })
  })

  it.each<[string, string[], string[]]>([
    [
      'OpenAI',
      [
        '{"type":"transcript.text.delta","delta":"hel"}',
        '{"type":"transcript.text.done","text":"hello","usage":{"type":"tokens","input_tokens":14,"output_tokens":2}}',
      ],
      ['[DONE]'],
    ],
    [
      'vLLM',
      [
        '{"object":"transcription.chunk","choices":[{"delta":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":14,"completion_tokens":2}}',
        '[DONE]',
      ],
      [],
    ],
  ])('streams as %s does', async (_who, events, added) => {
    const text = (list: readonly string[]): string => list.map((data) => `data: ${data}\n\n`).join('')
    const answer = await transcribe((response) => sse(response).end(text(events)), true)
    expect([answer.text, answer.usage]).toEqual([text([...events, ...added]), reported(14, 0, 2)])
  })

  it('whose server does not stream is its plain answer, which costs what the server reported and is not a failure of the server', async () => {
    const answer = { text: 'hello', usage: { type: 'tokens', input_tokens: 14, output_tokens: 2, total_tokens: 16 } }
    const { status, text, usage } = await transcribe(json(200, answer), true)
    expect([status, JSON.parse(text), usage]).toEqual([200, answer, reported(14, 0, 2)])
  })

  it('of a text passes as it is made, and costs the text', async () => {
    const sound = Buffer.from([0xff, 0xfb, 0, 1, 2, 3])
    const { gateway } = await gatewayTo((response) => response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(sound))
    gateway.job = { inputTokens: PROMPT_TOKENS }
    const answer = await gateway.open('/v1/audio/speech', { model: 'llama', input: 'hello', voice: 'amy' })
    expect([answer.headers['content-type'], await readAll(answer)]).toEqual(['audio/mpeg', sound])
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes[0]?.usage).toEqual(estimated(0))
  })

  it('that breaks off cuts the connection, so that no client takes it for the whole', async () => {
    const { gateway } = await gatewayTo((response) =>
      response.writeHead(200, { 'content-type': 'audio/mpeg' }).write('abc', () => response.destroy()),
    )
    const answer = await gateway.open('/v1/audio/speech', { model: 'llama', input: 'hello', voice: 'amy' })
    await expect(readAll(answer)).rejects.toThrow('aborted')
  })

  it.each(['text/html', 'text/plain-html', 'image/svg+xml', 'application/octet-stream-x', 'audio/', 'text/vttml'])(
    'of another type than sound or text is an error: %s',
    async (type) => {
      const reply: Reply = (response) => response.writeHead(200, { 'content-type': type }).end('<p>')
      expect((await transcribe(reply)).status).toBe(502)
    },
  )

  it.each([
    ['audio/wav', 'audio/wav'],
    ['audio/pcm;rate=24000; channels=1', 'audio/pcm;rate=24000; channels=1'],
    ['audio/mpeg; charset=utf-7', 'audio/mpeg'],
    ['application/octet-stream; x="<script>"', 'application/octet-stream'],
    ['Text/Plain; charset=utf-7', 'text/plain; charset=utf-8'],
    ['application/x-subrip', 'application/x-subrip; charset=utf-8'],
  ])('of the type %s is sent as %s', async (type, sent) => {
    const { gateway } = await gatewayTo((response) => response.writeHead(200, { 'content-type': type }).end('x'))
    const answer = await gateway.open('/v1/audio/speech', { model: 'llama', input: 'hello', voice: 'amy' })
    expect([answer.headers['content-type'], answer.headers['x-content-type-options'], String(await readAll(answer))]).toEqual([
      sent,
      'nosniff',
      'x',
    ])
  })
})
