/** Refusals have statuses that every client shows, and repeats only where a repetition may help. */
import Anthropic from '@anthropic-ai/sdk'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText } from 'ai'
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '#platform/clock.ts'
import { type FrontGateway, type FrontOptions, modelRecord, startFront } from '../../test/support/front-gateway.ts'
import { budget, LedgerWorld } from '../../test/support/ledger-world.ts'
import { ERROR_ROWS, GatewayError } from '../errors.ts'
import { CallLimits } from '../limits/call-limits.ts'

let front: FrontGateway
let world: LedgerWorld
afterEach(() => front.stop())

const [ONE] = modelRecord('embedder').backends
const EMBEDDER = modelRecord('embedder', { backends: ONE ? [{ ...ONE, routes: ['embeddings'] }] : [] })

async function start(forward?: FrontOptions['forward']): Promise<void> {
  world = new LedgerWorld()
  const limits = new CallLimits({ ledger: world.process(), clock: systemClock, tokenHold: 'Declared' })
  front = await startFront({ models: [modelRecord('llama'), EMBEDDER], app: { limits }, ...(forward && { forward }) })
}

/** Asks by both formats. */
function both(key: string, change: object = {}): Promise<Response[]> {
  const body = JSON.stringify({ model: 'llama', messages: [{ role: 'user', content: 'hi' }], ...change })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return Promise.all(['/v1/chat/completions', '/v1/messages'].map((path) => fetch(front.base + path, { method: 'POST', headers, body })))
}

interface Clients {
  readonly key: string
  readonly model?: string
  readonly maxTokens?: number
  readonly text?: string
}

/** One call by each client, with its own retries. @returns what it threw */
const CLIENTS: Readonly<Record<string, (how: Clients) => Promise<unknown>>> = {
  openai: ({ key, model = 'llama', maxTokens = 5, text = 'hi' }) =>
    new OpenAI({ apiKey: key, baseURL: `${front.base}/v1` }).chat.completions.create({
      model,
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: text }],
    }),
  '@anthropic-ai/sdk': ({ key, model = 'llama', maxTokens = 5, text = 'hi' }) =>
    new Anthropic({ authToken: key, apiKey: null, baseURL: front.base }).messages.create({
      ...{ model, max_tokens: maxTokens, messages: [{ role: 'user', content: text }] },
    }),
  'the AI SDK': ({ key, model = 'llama', maxTokens = 5, text = 'hi' }) =>
    generateText({ model: vercel(key, model), prompt: text, maxOutputTokens: maxTokens }),
}
const LONG = 'a text of many words, '.repeat(50)
const vercel = (key: string, model: string) =>
  createOpenAICompatible({ name: 'headgate', apiKey: key, baseURL: `${front.base}/v1` }).chatModel(model)

describe.each(Object.entries(CLIENTS))('%s asks once, and shows the text, of', (_, ask) => {
  test.each<[string, () => Clients, RegExp]>([
    [
      'a request larger than all tokens per minute',
      () => ({ key: front.issue({ limits: { tokensPerMinute: 5 } }), text: LONG }),
      /Request too large for the tokens-per-minute limit of this key/,
    ],
    ['a call that does not fit the budget', () => ({ key: spent('k'), maxTokens: 5_000 }), /This call does not fit the budget/],
    ['a suspended key', () => ({ key: front.issue({ state: 'Suspended' }) }), /API key suspended/],
    ['a model outside its scope', () => ({ key: front.issue({ models: [['other']] }) }), /key not allowed to access model llama/],
  ])('%s', async (_what, how, text) => {
    await start()
    await expect(ask(how())).rejects.toThrow(text)
    expect(front.requests).toBe(1)
  })
})

/** A key whose budget has a few tokens. */
function spent(uid: string): string {
  world.memory.seed(uid, 'seed')
  return front.issue({ uid, budgets: [budget({ name: 'life', unit: 'Tokens', amount: 100, window: 'Lifetime' })] })
}

test('an Anthropic client asks once for a route that its model does not serve', async () => {
  await start()
  const ask = CLIENTS['@anthropic-ai/sdk']
  await expect(ask?.({ key: front.issue(), model: 'embedder' })).rejects.toThrow(/400.*model embedder does not serve this route/)
  expect(front.requests).toBe(1)
})

test('a request larger than all tokens per minute is 400 in both formats, which no client repeats', async () => {
  await start()
  const answers = await both(front.issue({ limits: { tokensPerMinute: 5 } }), { messages: [{ role: 'user', content: LONG }] })
  for (const answer of answers) {
    expect([answer.status, answer.headers.get('x-should-retry'), answer.headers.get('retry-after')]).toEqual([400, 'false', null])
    expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request_error' } })
  }
})

test('a call beyond the concurrent ones is told to ask again after 5 s, as long as model calls usually last', async () => {
  const running = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  await start(async ({ exchange }) => {
    begun.resolve()
    await running.promise
    exchange.response.writeHead(200).end('{}')
    return { usage: undefined, wasSent: true, error: undefined }
  })
  const key = front.issue({ limits: { maxConcurrentRequests: 1 } })
  const first = CLIENTS['openai']?.({ key })
  await begun.promise
  const answers = await both(key)
  expect(answers.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual([
    [429, '5'],
    [429, '5'],
  ])
  running.resolve()
  await first
})

test('a call whose limits cannot be checked is 503 and told to ask again after 5 s', async () => {
  await start()
  world.store.fate = () => 'never arrives'
  const answers = await both(front.issue({ limits: { requestsPerMinute: 5 } }))
  expect(answers.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual([
    [503, '5'],
    [503, '5'],
  ])
})

describe('x-should-retry: false', () => {
  test('comes with no status that clients repeat, but for two faults that only the platform team can end', () => {
    const repeated = (status: number): boolean => status === 408 || status === 409 || status === 429 || status >= 500
    const ofClients = ERROR_ROWS.filter(({ noRetry, status }) => noRetry && repeated(status.openai))
    expect(ofClients.map(({ id }) => id)).toEqual(['loopDetected', 'backendAuth'])
  })

  test('is read by the official SDKs, and not by the AI SDK', async () => {
    await start(() => Promise.reject(new GatewayError('backendAuth')))
    const key = front.issue()
    await expect(CLIENTS['openai']?.({ key })).rejects.toThrow(/502/)
    await expect(CLIENTS['@anthropic-ai/sdk']?.({ key })).rejects.toThrow(/502/)
    expect(front.requests).toBe(2)
    await expect(generateText({ model: vercel(key, 'llama'), prompt: 'hi', maxRetries: 1 })).rejects.toThrow(/refused the credential/)
    expect(front.requests).toBe(4)
  })
})
