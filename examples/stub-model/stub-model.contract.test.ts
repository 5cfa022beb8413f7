import { setTimeout as sleep } from 'node:timers/promises'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CALL_ROUTES } from '#contract/values/call-routes.ts'
import { startStubModel, type StubModel } from './stub-model.ts'

describe('the stub model', () => {
  let stub: StubModel

  beforeEach(async () => {
    stub = await startStubModel()
  })
  afterEach(() => stub.close())

  const openai = (): OpenAI => new OpenAI({ baseURL: `${stub.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const anthropic = (): Anthropic => new Anthropic({ baseURL: stub.url, apiKey: 'none', maxRetries: 0 })
  const messages = [{ role: 'user' as const, content: 'good morning' }]
  const post = (body: object, headers: Record<string, string> = {}, path = '/v1/chat/completions'): Promise<Response> =>
    fetch(stub.url + path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) })

  it('answers the OpenAI SDK with an echo and its usage', async () => {
    const answer = await openai().chat.completions.create({ model: 'm', messages })
    expect(answer.choices[0]?.message.content).toContain('good morning')
    expect(answer.choices[0]?.finish_reason).toBe('stop')
    expect(answer.usage?.completion_tokens).toBe(answer.choices[0]?.message.content?.split(' ').length)
  })

  it('streams to the OpenAI SDK, with usage only on request', async () => {
    const stream = await openai().chat.completions.create({ model: 'm', messages, stream: true, stream_options: { include_usage: true } })
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toContain('You said: good morning')
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } })
    const without = await (await post({ model: 'm', messages, stream: true })).text()
    expect(without).not.toContain('usage')
    expect(without.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  it('answers and streams to the Anthropic SDK', async () => {
    const answer = await anthropic().messages.create({ model: 'm', max_tokens: 3, messages })
    expect(answer).toMatchObject({ stop_reason: 'max_tokens', usage: { output_tokens: 3 } })
    const streamed = await anthropic().messages.stream({ model: 'm', max_tokens: 100, messages }).finalMessage()
    expect(streamed.content[0]).toMatchObject({ type: 'text', text: expect.stringContaining('good morning') })
    expect(streamed.stop_reason).toBe('end_turn')
  })

  it('completes a prompt for the OpenAI SDK, plain and streamed', async () => {
    const asked = { model: 'm', prompt: 'good morning', max_tokens: 3 }
    const answer = await openai().completions.create(asked)
    expect(answer).toMatchObject({ choices: [{ text: 'This is the', finish_reason: 'length' }], usage: { completion_tokens: 3 } })
    const chunks: OpenAI.Completion[] = []
    const stream = await openai().completions.create({ ...asked, stream: true, stream_options: { include_usage: true } })
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks.map(({ choices }) => choices[0]?.text ?? '').join('')).toBe('This is the')
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 3 } })
    expect(await (await post({ ...asked, stream: true }, {}, '/v1/completions')).text()).not.toContain('usage')
  })

  it('answers a response for the OpenAI SDK, plain and streamed, with its usage', async () => {
    const input = [{ role: 'user' as const, content: [{ type: 'input_text' as const, text: 'good morning' }] }]
    const answer = await openai().responses.create({ model: 'm', input })
    expect(answer.output_text).toContain('You said: good morning')
    expect(answer).toMatchObject({ status: 'completed', usage: { output_tokens: answer.output_text.split(' ').length } })
    const streamed = await openai().responses.stream({ model: 'm', input, max_output_tokens: 3 }).finalResponse()
    expect(streamed).toMatchObject({ output_text: 'This is the', status: 'incomplete', usage: { output_tokens: 3 } })
  })

  it('embeds texts for the OpenAI SDK, which reads base64, and counts their words', async () => {
    const input = ['good morning', 'good night', 'good morning']
    const { data, usage } = await openai().embeddings.create({ model: 'm', input })
    const [one, other, again] = data.map(({ embedding }) => embedding)
    expect([one?.length, again, usage]).toEqual([8, one, { prompt_tokens: 4, total_tokens: 4 }])
    expect(other).not.toEqual(one)
    const plain = await openai().embeddings.create({ model: 'm', input: 'good morning', encoding_format: 'float' })
    expect(plain.data[0]?.embedding[0]).toBeCloseTo(one?.[0] ?? 0, 5)
  })

  it('ranks documents by the words of a query', async () => {
    const answer = await post({ query: 'a fox', documents: ['no animal', 'the fox', 'a fox'], top_n: 2 }, {}, '/v1/rerank')
    const results = [
      { index: 2, relevance_score: 1 },
      { index: 1, relevance_score: 0.5 },
    ]
    expect(await answer.json()).toMatchObject({ results, usage: { total_tokens: 10 } })
  })

  it('transcribes a sound file for the OpenAI SDK, plain and streamed, with its usage', async () => {
    const asked = { model: 'm', file: new File([Buffer.alloc(2_500)], 'a.wav'), response_format: 'json' as const }
    const text = 'This is the stub model; it has no mind of its own. You said:'
    const usage = { type: 'tokens', input_tokens: 3, output_tokens: 14, total_tokens: 17 }
    expect(await openai().audio.transcriptions.create(asked)).toMatchObject({ text, usage })
    const events = []
    for await (const event of await openai().audio.transcriptions.create({ ...asked, stream: true })) events.push(event)
    expect(events.map((event) => (event.type === 'transcript.text.delta' ? event.delta : '')).join('')).toBe(text)
    expect(events.at(-1)).toMatchObject({ type: 'transcript.text.done', text, usage })
  })

  it('speaks to the OpenAI SDK: a quarter of a second of silence for a word', async () => {
    const answer = await openai().audio.speech.create({ model: 'm', voice: 'amy', input: 'hi stub:words=4' })
    const sound = Buffer.from(await answer.arrayBuffer())
    expect([answer.headers.get('content-type'), sound.length, sound.toString('latin1', 0, 4)]).toEqual(['audio/wav', 44 + 8_000, 'RIFF'])
  })

  it('counts the tokens of a message for the Anthropic SDK', async () => {
    const { input_tokens: counted } = await anthropic().messages.countTokens({ model: 'm', messages })
    const { usage } = await anthropic().messages.create({ model: 'm', max_tokens: 3, messages })
    expect(counted).toBe(usage.input_tokens)
  })

  it('follows a directive from the session header, the model name or the last message', async () => {
    const refused = await post({ model: 'm', messages }, { 'x-session-id': 'stub:status=503,retry-after=7' })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '7'])
    expect((await post({ model: 'm-stub:status=429', messages })).status).toBe(429)
    const overloaded = await post(
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'stub:status=529' }] }] },
      {},
      '/v1/messages',
    )
    expect(await overloaded.json()).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } })
    const counted = await post({ model: 'm', messages }, { 'x-session-id': 'stub:words=5,nousage' })
    const body: unknown = await counted.json()
    expect(body).toMatchObject({ choices: [{ message: { content: 'word1 word2 word3 word4 word5' } }] })
    expect(body).not.toHaveProperty('usage')
  })

  const STREAMED = ['chat/completions', 'completions', 'responses', 'audio/transcriptions', 'messages'] as const
  const send = (route: string, directives: string, fields: object = {}): Promise<Response> => {
    const prompts = { messages, prompt: 'hi', input: 'hi', query: 'hi', documents: ['hi'] }
    return post({ model: 'm', ...prompts, ...fields }, { 'x-session-id': `stub:${directives}` }, `/v1/${route}`)
  }

  describe.each(CALL_ROUTES)('on /v1/%s', (route) => {
    it('answers a status with an error, waits, and breaks off', async () => {
      const refused = await send(route, 'status=503,retry-after=7')
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '7'])
      expect(await refused.json()).toMatchObject({ error: { message: 'stub model answers 503 as asked' } })
      const began = performance.now()
      expect((await send(route, 'delay=60')).status).toBe(200)
      expect(performance.now() - began).toBeGreaterThan(50)
      await expect(send(route, 'cut=1').then((answer) => answer.arrayBuffer())).rejects.toThrow('terminated')
    })

    it('reports no usage if asked so', async () => {
      expect(await (await send(route, 'nousage,words=2')).text()).not.toContain('"usage":{')
    })
  })

  it.each(STREAMED)('streams each word of /v1/%s', async (route) => {
    const text = await (await send(route, 'words=3', { stream: true })).text()
    expect(['word1', ' word2', ' word3'].every((word) => text.includes(`"${word}"`))).toBe(true)
  })

  it.each([...STREAMED, 'audio/speech'])('sends pieces of /v1/%s with gaps, and falls silent or breaks off after some', async (route) => {
    const began = performance.now()
    await (await send(route, 'words=3,gap=20', { stream: true })).text()
    expect(performance.now() - began).toBeGreaterThan(60)
    await expect(send(route, 'words=3,cut=2', { stream: true }).then((answer) => answer.text())).rejects.toThrow('terminated')
    const silent = await send(route, 'words=9,hang=2', { stream: true })
    expect(await Promise.race([silent.text(), sleep(100)])).toBeUndefined()
  })

  it('lists its models, is healthy, and refuses unknown routes', async () => {
    expect(await (await fetch(`${stub.url}/v1/models`)).json()).toMatchObject({ object: 'list', data: [{ id: 'stub' }] })
    expect((await fetch(`${stub.url}/health`)).status).toBe(200)
    expect((await fetch(`${stub.url}/v1/other`)).status).toBe(404)
    expect((await fetch(`${stub.url}/v1/messages`, { method: 'POST', body: '{' })).status).toBe(400)
  })
})
