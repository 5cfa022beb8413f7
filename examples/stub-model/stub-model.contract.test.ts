import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
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

  it('lists its models, is healthy, and refuses unknown routes', async () => {
    expect(await (await fetch(`${stub.url}/v1/models`)).json()).toMatchObject({ object: 'list', data: [{ id: 'stub' }] })
    expect((await fetch(`${stub.url}/health`)).status).toBe(200)
    expect((await fetch(`${stub.url}/v1/other`)).status).toBe(404)
    expect((await fetch(`${stub.url}/v1/messages`, { method: 'POST', body: '{' })).status).toBe(400)
  })
})
