/** The messages that a developer reads when a call through an official SDK fails: the six commonest mistakes. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { modelRecord, startFront, type FrontGateway } from '../../test/support/front-gateway.ts'

let front: FrontGateway
let key: string

beforeEach(async () => {
  const embedder = modelRecord('embedder')
  const backends = embedder.backends.map((backend) => ({ ...backend, routes: ['embeddings'] }))
  front = await startFront({ models: [modelRecord('llama'), { ...embedder, backends }] })
  key = front.issue({ models: [['llama', 'embedder']] })
})
afterEach(() => front.stop())

interface Client {
  /** The environment of the SDK. */
  readonly apiKey?: string
  /** Behind the address of the gateway. */
  readonly base?: string
  readonly model?: string
}

const USER = { role: 'user' as const, content: 'hi' }

async function openai({ apiKey = key, base = '/v1', model = 'llama' }: Client): Promise<string> {
  const client = new OpenAI({ apiKey, baseURL: front.base + base })
  return shown(client.chat.completions.create({ model, messages: [USER] }))
}

async function anthropic({ apiKey = key, base = '', model = 'llama' }: Client): Promise<string> {
  const client = new Anthropic({ authToken: apiKey, apiKey: null, baseURL: front.base + base })
  return shown(client.messages.create({ model, max_tokens: 5, messages: [USER] }))
}

/** The text of the exception, which ends the program of a developer and is on the screen. */
async function shown(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof Error)) throw new Error('the call was answered')
  return error.message
}

describe.each([
  ['openai', openai],
  ['@anthropic-ai/sdk', anthropic],
])('a developer with %s reads', (_, call) => {
  test('that the key belongs elsewhere, where it is unknown', async () => {
    expect(await call({ apiKey: `sk-${'x'.repeat(40)}` })).toMatch(/401.*unknown API key; it was deleted, or it belongs to another gateway/)
  })

  test('the route that was meant, where the base URL is wrong', async () => {
    const [path, base] = call === openai ? ['/chat/completions', ''] : ['/gateway/v1/messages', '/gateway']
    const route = call === openai ? 'POST /v1/chat/completions' : 'POST /v1/messages'
    const text = await call({ base })
    expect(text).toContain(`Invalid URL (POST ${path}): did you mean ${route}? The path `)
    expect(text).toContain('a base URL ends in /v1 for OpenAI clients and has no path for Anthropic clients')
  })

  test('the name that was meant, where the model is misspelt', async () => {
    expect(await call({ model: 'Llama' })).toMatch(
      /403.*key not allowed to access model Llama; did you mean \\?"llama\\?"\? GET \/v1\/models lists/,
    )
  })
})

test('an OpenAI developer reads that a route is not served', async () => {
  const client = new OpenAI({ apiKey: key, baseURL: `${front.base}/v1` })
  expect(await shown(client.moderations.create({ model: 'llama', input: 'x' }))).toMatch(
    /404 Invalid URL \(POST \/v1\/moderations\): this gateway does not serve this route; this gateway serves POST \/v1\/chat\/completions/,
  )
})

test('an Anthropic developer reads what to do with a model that has neither messages nor chat completions', async () => {
  expect(await anthropic({ model: 'embedder' })).toMatch(
    /400.*model embedder does not serve this route; no backend of it serves \/v1\/messages\. Ask the platform team/,
  )
})
