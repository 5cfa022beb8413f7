/** The routes beside chat completions and messages, on real llama-servers: what a call costs, and how limits refuse it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callHeaders } from '../support/ask.ts'
import { spentMicros } from '../support/key-spend.ts'
import { openLab } from '../support/lab.ts'
import { ModelServerPart, UPSTREAM_MODEL } from '../support/model-server-part.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'

/** Of a token and of a call, in millionths of the currency; a million tokens cost so many units. */
const PRICE = { fresh: 3, cached: 1, output: 15, call: 2_000 }
const PRICING = {
  ...{ inputPerMillion: String(PRICE.fresh), cachedInputPerMillion: String(PRICE.cached), outputPerMillion: String(PRICE.output) },
  perRequest: '0.002',
}
const BUDGET = { name: 'ever', amount: '1000', unit: 'Currency', window: 'Lifetime' }
const WRITER = 'route-writer'
const EMBEDDER = 'route-embedder'
const RANKER = 'route-ranker'
const TEXT = 'The quick brown fox jumps over the lazy dog, again and again, until the night falls over the wide land. '

interface Call {
  readonly route: string
  readonly model: string
  readonly fields: Readonly<Record<string, unknown>>
  /** The fields of a call that asks for its usage in a stream; undefined: the route has no streams. */
  readonly streamed?: Readonly<Record<string, unknown>>
}

const CALLS: readonly Call[] = [
  {
    ...{ route: 'completions', model: WRITER, fields: { prompt: TEXT, max_tokens: 4 } },
    streamed: { stream: true, stream_options: { include_usage: true } },
  },
  { route: 'responses', model: WRITER, fields: { input: TEXT, max_output_tokens: 4 }, streamed: { stream: true } },
  { route: 'embeddings', model: EMBEDDER, fields: { input: [TEXT, 'Another text.'] } },
  { route: 'rerank', model: RANKER, fields: { query: 'Which animal?', documents: [TEXT, 'No animal.', 'A fox.'] } },
]

const lab = openLab()
let stack: Stack
const servers: ModelServerPart[] = []

beforeAll(async () => {
  stack = await lab.stack()
  const serve = async (model: string, port: number): Promise<void> => {
    await stack.exposeService(model, port)
    const service = { name: model, port }
    const backends = [{ name: 'llama', service, upstreamModel: UPSTREAM_MODEL, engine: 'LlamaCpp', messages: 'Native' }]
    await stack.serveModel(model, { backends, pricing: PRICING, contextTokens: 4_096 })
  }
  for (const purpose of ['embeddings', 'rerank'] as const)
    servers.push(await ModelServerPart.start(lab.address.folder, lab.address.ip, purpose))
  await serve(WRITER, lab.address.modelServer.port)
  await serve(EMBEDDER, servers[0]?.port ?? 0)
  await serve(RANKER, servers[1]?.port ?? 0)
})
afterAll(async () => {
  for (const server of servers) await server.stop()
})

interface Answered {
  readonly status: number
  readonly text: string
}

async function send(credential: string, { route, model, fields }: Call, more: Readonly<Record<string, unknown>> = {}): Promise<Answered> {
  const body = JSON.stringify({ model, ...fields, ...more })
  const answer = await fetch(`${stack.gateway.url}/v1/${route}`, { method: 'POST', headers: callHeaders(credential), body })
  return { status: answer.status, text: lab.record(await answer.text()) }
}

interface ReportedUsage {
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly prompt_tokens_details?: { readonly cached_tokens?: number }
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly input_tokens_details?: { readonly cached_tokens?: number }
}

/** The price of an answer by the server's own report, read here and not by the product: the last usage holds. */
function priceOf(text: string): number {
  const usages = [...text.matchAll(/"usage":(\{(?:[^{}]|\{[^{}]*\})*\})/g)].map(([, json = '']) => JSON.parse(json) as ReportedUsage)
  const { prompt_tokens, completion_tokens, prompt_tokens_details, ...other } = usages.at(-1) ?? {}
  const input = prompt_tokens ?? other.input_tokens ?? Number.NaN
  const cached = (prompt_tokens_details ?? other.input_tokens_details)?.cached_tokens ?? 0
  const output = completion_tokens ?? other.output_tokens ?? 0
  return PRICE.fresh * (input - cached) + PRICE.cached * cached + PRICE.output * output + PRICE.call
}

const spent = async (credential: string): Promise<number> => await spentMicros(lab, stack.gateway.url, credential)

describe.each(CALLS)('POST /v1/$route', (call) => {
  const { route } = call
  const issue = async (name: string, spec: Readonly<Record<string, unknown>>): Promise<string> =>
    await stack.issueKey(`${route}-${name}`, spec)

  it('costs what the server reported, and the call', async () => {
    const credential = await issue('plain', { budgets: [BUDGET] })
    const { status, text } = await send(credential, call)
    expect(status, text).toBe(200)
    await waitFor('the cost to be settled', async () => (await spent(credential)) === priceOf(text))
  })

  it.each<[string, Readonly<Record<string, unknown>>, status: number, code: string]>([
    ['requests per minute', { limits: { requestsPerMinute: 1 } }, 429, 'rate_limit_exceeded'],
    ['tokens per minute', { limits: { tokensPerMinute: 5 } }, 400, 'request_too_large'],
    ['a budget of money', { budgets: [{ ...BUDGET, amount: '0.000001' }] }, 402, 'insufficient_quota'],
    ['a budget of tokens', { budgets: [{ ...BUDGET, unit: 'Tokens', amount: '5' }] }, 402, 'insufficient_quota'],
  ])('is refused by %s', async (what, spec, status, code) => {
    const credential = await issue(what.replaceAll(' ', '-'), spec)
    if (code === 'rate_limit_exceeded') expect((await send(credential, call)).status).toBe(200)
    const refused = await send(credential, call)
    expect([refused.status, JSON.parse(refused.text)], refused.text).toMatchObject([status, { error: { code } }])
  })
})

describe.each(CALLS.filter(({ streamed }) => streamed !== undefined))('a stream of POST /v1/$route', (call) => {
  it('costs what the server reported, and the call', async () => {
    const credential = await stack.issueKey(`${call.route}-streamed`, { budgets: [BUDGET] })
    const { status, text } = await send(credential, call, call.streamed)
    expect([status, text.startsWith('data:') || text.startsWith('event:')], text).toEqual([200, true])
    await waitFor('the cost to be settled', async () => (await spent(credential)) === priceOf(text))
  })
})

it('a response whose client leaves costs what was generated until then', async () => {
  const credential = await stack.issueKey('response-left', { budgets: [BUDGET] })
  const stop = new AbortController()
  const body = JSON.stringify({ model: WRITER, input: TEXT, max_output_tokens: 2_000, stream: true })
  const answer = await fetch(`${stack.gateway.url}/v1/responses`, {
    method: 'POST',
    headers: callHeaders(credential),
    body,
    signal: stop.signal,
  })
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  for (let seen = ''; !seen.includes('response.output_text.delta');) seen += (await reader?.read())?.value ?? ''
  stop.abort()
  await waitFor('the cost to be settled', async () => (await spent(credential)) > PRICE.call)
})

it('the count of tokens is that of the server, and costs nothing', async () => {
  const credential = await stack.issueKey('counted', { budgets: [BUDGET], limits: { requestsPerMinute: 1 } })
  const call: Call = { route: 'messages/count_tokens', model: WRITER, fields: { messages: [{ role: 'user', content: TEXT }] } }
  const direct = await fetch(`${lab.address.modelServer.url}/v1/messages/count_tokens`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: JSON.stringify({ model: UPSTREAM_MODEL, ...call.fields }),
  })
  const counted: unknown = await direct.json()
  for (let at = 0; at < 3; at += 1) {
    const { status, text } = await send(credential, call)
    expect([status, JSON.parse(text)]).toEqual([200, counted])
  }
  expect(await spent(credential)).toBe(0)
})
