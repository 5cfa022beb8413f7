/** X23: the count of the tokens of a message for a model none of whose servers takes such a question. */
import { describe, expect, it } from 'vitest'
import type { BackendRecord, ModelRecord } from '#contract/records/model-record.ts'
import {
  type Answer,
  backendRecord as record,
  deadAddress,
  type FakeBackend,
  gatewayTo,
  Harness,
  json,
  type Received,
  type Reply,
  until,
} from '../../test/support/upstream-harness.ts'

const COUNT = '/v1/messages/count_tokens'
const ESTIMATE = { tokens: 1_234, mediaTokens: 0 }
const BODY = {
  model: 'llama',
  system: 'be kind',
  messages: [{ role: 'user', content: 'hi' }],
  tools: [{ name: 'read', description: 'Reads.', input_schema: { type: 'object', properties: { path: { type: 'string' } } } }],
  thinking: { type: 'disabled' },
  metadata: { user_id: 'u' },
}
const TRANSLATED = {
  messages: [
    { role: 'system', content: 'be kind' },
    { role: 'user', content: 'hi' },
  ],
  tools: [
    {
      type: 'function',
      function: { name: 'read', description: 'Reads.', parameters: { type: 'object', properties: { path: { type: 'string' } } } },
    },
  ],
  chat_template_kwargs: { enable_thinking: false },
}

const chatOnly = (engine: string): Partial<BackendRecord> => ({ engine, routes: ['chat/completions'], upstreamModel: 'up' })

interface Counted {
  readonly answer: Answer
  readonly gateway: Harness
  readonly backend: FakeBackend
}

async function count(engine: string, reply: Reply, { body = BODY, media = 0 }: { body?: object; media?: number } = {}): Promise<Counted> {
  const { gateway, backend } = await gatewayTo(reply, { backend: chatOnly(engine), tickMs: 60_000 })
  gateway.job = { count: { ...ESTIMATE, mediaTokens: media }, isMetered: false }
  return { answer: await gateway.post(COUNT, body, { 'anthropic-version': '2023-06-01' }), gateway, backend }
}

/** More than any tokenizer answers. */
function endless(response: Parameters<Reply>[0]): void {
  const more = Buffer.alloc(64 * 1024, '1,')
  const write = (): void => {
    while (!response.destroyed && response.write(more)) continue
  }
  response.writeHead(200, { 'content-type': 'application/json' }).on('drain', write)
  write()
}

const sent = ({ body }: Received): unknown => JSON.parse(body.toString())
const tokensIn = ({ status, text }: Answer): unknown => [status, JSON.parse(text)]
const counting = (tokens: number) => [200, { input_tokens: tokens }]

describe('the tokens of a message', () => {
  it('are counted by vLLM from the chat completion that the message becomes', async () => {
    const { answer, backend } = await count('VLLM', json(200, { count: 321, max_model_len: 4096, tokens: [1, 2] }))
    expect(tokensIn(answer)).toEqual(counting(321))
    expect(answer.headers).toMatchObject({ 'content-type': 'application/json' })
    const [asked] = backend.received
    expect(backend.received.map(({ path }) => path)).toEqual(['/tokenize'])
    expect(asked && sent(asked)).toEqual({ model: 'up', ...TRANSLATED, add_generation_prompt: true })
  })

  it('are counted by llama.cpp in two steps, as it would render and tokenize the prompt itself', async () => {
    const { answer, backend } = await count('LlamaCpp', (response, received) =>
      json(200, received.path === '/apply-template' ? { prompt: '<|im_start|>hi' } : { tokens: Array.from({ length: 77 }, (_, id) => id) })(
        response,
        received,
      ),
    )
    expect(tokensIn(answer)).toEqual(counting(77))
    expect(backend.received.map(({ path }) => path)).toEqual(['/apply-template', '/tokenize'])
    const [rendered, tokenized] = backend.received.map(sent)
    expect(rendered).toMatchObject({ model: 'up', ...TRANSLATED })
    expect(tokenized).toEqual({ content: '<|im_start|>hi', add_special: true, parse_special: true })
  })

  it('are counted by SGLang from the message itself, under the name that the server knows', async () => {
    const { answer, backend } = await count('SGLang', json(200, { input_tokens: 55 }))
    expect(tokensIn(answer)).toEqual(counting(55))
    expect(backend.received.map(({ path, headers }) => [path, headers['anthropic-version']])).toEqual([[COUNT, '2023-06-01']])
    expect(backend.received.map(sent)).toEqual([{ ...BODY, model: 'up' }])
  })

  it('have the estimate of images beside the count of a tokenizer, which sees none', async () => {
    const { answer } = await count('VLLM', json(200, { count: 20 }), { media: 1_250 })
    expect(tokensIn(answer)).toEqual(counting(1_270))
  })

  it.each(['Ollama', 'TGI', 'DeepSeek', 'Other'])('are estimated for %s, which is not asked', async (engine) => {
    const { answer, backend } = await count(engine, json(200, { count: 5, input_tokens: 5 }))
    expect(tokensIn(answer)).toEqual(counting(ESTIMATE.tokens))
    expect(backend.received).toEqual([])
  })

  it.each<[string, Reply]>([
    ['is missing', json(404, { detail: 'Not Found' })],
    ['refuses the credential', json(401, { error: 'no' })],
    ['breaks', json(500, 'oh')],
    ['answers no JSON', json(200, '<html>')],
    ['answers no number', json(200, { count: '7' })],
    ['answers no whole number', json(200, { count: 1.5 })],
    ['answers 0', json(200, { count: 0 })],
    ['resets the connection', (response) => void response.destroy()],
    ['breaks off', (response) => void response.writeHead(200, { 'content-length': '99' }).write('{"count":', () => response.destroy())],
    ['answers without end', (response) => endless(response)],
  ])('are estimated if the tokenizer %s, and no server is marked for it', async (_, reply) => {
    const { answer, gateway, backend } = await count('VLLM', reply)
    expect(tokensIn(answer)).toEqual(counting(ESTIMATE.tokens))
    for (let more = 0; more < 5; more += 1) await gateway.post(COUNT, BODY)
    expect(gateway.upstream.unhealthy()).toEqual({})
    expect(backend.received).toHaveLength(6)
    expect(gateway.refusals).toEqual([])
  })

  it('are estimated if no server listens', async () => {
    const gateway = await new Harness({ tickMs: 60_000 }).start()
    gateway.serve([await deadAddress()], {}, chatOnly('VLLM'))
    gateway.job = { count: ESTIMATE }
    expect(tokensIn(await gateway.post(COUNT, BODY))).toEqual(counting(ESTIMATE.tokens))
    expect(gateway.upstream.unhealthy()).toEqual({})
  })

  it('are estimated after two seconds of silence, and the server learns that nobody waits', async () => {
    const { gateway, backend } = await gatewayTo(() => undefined, { backend: chatOnly('VLLM') })
    gateway.job = { count: ESTIMATE }
    expect(tokensIn(await gateway.post(COUNT, BODY))).toEqual(counting(ESTIMATE.tokens))
    await backend.aborted
    expect(gateway.upstream.unhealthy()).toEqual({})
  })

  it('are estimated for a message that cannot be translated', async () => {
    const content = [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'x' } }]
    const { answer, backend } = await count('VLLM', json(200, { count: 5 }), { body: { ...BODY, messages: [{ role: 'user', content }] } })
    expect(tokensIn(answer)).toEqual(counting(ESTIMATE.tokens))
    expect(backend.received).toEqual([])
  })

  it('are asked no longer when the client leaves', async () => {
    const { gateway, backend } = await gatewayTo(() => undefined, { backend: chatOnly('VLLM'), tickMs: 60_000 })
    gateway.job = { count: ESTIMATE }
    const asking = gateway.post(COUNT, BODY).catch(() => undefined)
    await until(() => backend.received.length === 1)
    gateway.exchanges[0]?.response.destroy()
    await Promise.all([asking, backend.aborted])
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes).toEqual([{ usage: undefined, wasSent: false, error: undefined }])
  })

  it('are awaited for two seconds from a server that counts by itself, which is not marked for its silence', async () => {
    const { gateway } = await gatewayTo(() => undefined)
    for (let asked = 0; asked < 5; asked += 1) await gateway.post(COUNT, BODY)
    expect(gateway.refusals.map(({ row }) => row.id)).toEqual(Array.from({ length: 5 }, () => 'backendTimeout'))
    expect(gateway.upstream.unhealthy()).toEqual({})
  })

  it('are counted by a backend with a share of the requests', async () => {
    const { gateway, backend } = await gatewayTo(json(200, { count: 5 }), { tickMs: 60_000 })
    const idle = { ...chatOnly('VLLM'), name: 'idle', endpoints: [backend.address] }
    const model = (weight: number): Partial<ModelRecord> => ({ backends: [record({ ...idle, weight }), record(chatOnly('Other'))] })
    gateway.job = { count: ESTIMATE }
    gateway.serve([], model(0))
    expect(tokensIn(await gateway.post(COUNT, BODY))).toEqual(counting(ESTIMATE.tokens))
    gateway.serve([], model(1))
    expect(tokensIn(await gateway.post(COUNT, BODY))).toEqual(counting(5))
  })
})
