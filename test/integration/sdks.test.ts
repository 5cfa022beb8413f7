/** Every SDK case that passes directly against a real model server passes through the gateway too. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLab } from '../support/lab.ts'
import { ANTHROPIC_CASES } from '../support/sdk-cases/anthropic-cases.ts'
import { EMBEDDING_CASES } from '../support/sdk-cases/embedding-cases.ts'
import { LANGCHAIN_CASES } from '../support/sdk-cases/langchain-cases.ts'
import { OPENAI_CASES } from '../support/sdk-cases/openai-cases.ts'
import { OPENAI_ROUTE_CASES } from '../support/sdk-cases/openai-route-cases.ts'
import type { SdkCases, Via } from '../support/sdk-cases/sdk-case.ts'
import { VERCEL_CASES } from '../support/sdk-cases/vercel-cases.ts'
import { ModelServerPart, UPSTREAM_MODEL } from '../support/model-server-part.ts'

const MODEL = 'sdk-model'
const EMBEDDER = 'sdk-embedder'
const TRANSLATED = 'sdk-translated'

const lab = openLab()
let embedder: ModelServerPart
let direct: Via
let gateway: Via

beforeAll(async () => {
  const stack = await lab.stack({ gateways: 1 })
  embedder = await ModelServerPart.start(lab.address.folder, lab.address.ip, 'embeddings')
  await stack.exposeService(EMBEDDER, embedder.port)
  const backend = (name: string, port: number) => ({
    backends: [{ name: 'main', service: { name, port }, upstreamModel: UPSTREAM_MODEL, engine: 'LlamaCpp', messages: 'Native' }],
  })
  await stack.serveModel(MODEL, backend('llama', lab.address.modelServer.port))
  const chatOnly = { ...backend('llama', lab.address.modelServer.port).backends[0], messages: 'Translate' }
  await stack.serveModel(TRANSLATED, { backends: [chatOnly] })
  await stack.serveModel(EMBEDDER, backend(EMBEDDER, embedder.port))
  const credential = await stack.issueKey('sdk-key', { models: [MODEL, EMBEDDER, TRANSLATED] })
  const { url: server } = lab.address.modelServer
  direct = { openaiUrl: `${server}/v1`, anthropicUrl: server, credential: 'none-needed', model: UPSTREAM_MODEL }
  gateway = { openaiUrl: `${stack.gateway.url}/v1`, anthropicUrl: stack.gateway.url, credential, model: MODEL }
})

afterAll(() => embedder.stop())

describe.each<[name: string, cases: SdkCases]>([
  ['openai', OPENAI_CASES],
  ['openai, on other routes,', OPENAI_ROUTE_CASES],
  ['@anthropic-ai/sdk', ANTHROPIC_CASES],
  ['Vercel AI SDK', VERCEL_CASES],
  ['LangChain.js', LANGCHAIN_CASES],
])('%s gives the same through the gateway as directly:', (_, cases) => {
  // retried, since a random model sometimes ends at its first token
  it.each(Object.entries(cases))('%s', { retry: 2 }, async (_name, run) => {
    const expected = await run(direct)
    expect(JSON.stringify(expected), 'each fact holds directly').not.toContain('false')
    expect(await run(gateway)).toEqual(expected)
  })
})

describe('@anthropic-ai/sdk gives the same through a translation as directly:', () => {
  // retried, since a random model sometimes ends at its first token
  it.each(Object.entries(ANTHROPIC_CASES))('%s', { retry: 2 }, async (_name, run) => {
    expect(await run({ ...gateway, model: TRANSLATED })).toEqual(await run(direct))
  })
})

describe('embeddings are the same through the gateway as directly:', () => {
  it.each(Object.entries(EMBEDDING_CASES))('%s', async (_name, run) => {
    const expected = await run({ ...direct, openaiUrl: `${embedder.url}/v1` })
    expect(JSON.stringify(expected), 'each fact holds directly').not.toContain('false')
    expect(await run({ ...gateway, model: EMBEDDER })).toEqual(expected)
  })
})
