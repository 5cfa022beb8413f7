/** The whole path on real parts: a manifest becomes a working key, a real model answers both SDKs, and a deleted key is refused. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { ask as call } from '../support/ask.ts'
import { openLab } from '../support/lab.ts'
import type { Stack } from '../support/stack.ts'

const lab = openLab()
let stack: Stack
let env: Record<string, string>

beforeAll(async () => {
  stack = await lab.stack({ gateways: 2 })
  await stack.serveModel('story-model')
  await stack.issueKey('story-key', { models: ['story-*'] })
  env = await stack.secret('story-key')
})

const ask = { model: 'story-model', max_tokens: 24, messages: [{ role: 'user' as const, content: 'Say something.' }] }
const openai = (key = env['OPENAI_API_KEY'] ?? ''): OpenAI => new OpenAI({ apiKey: key, baseURL: env['OPENAI_BASE_URL'] ?? '' })
const anthropic = (): Anthropic =>
  new Anthropic({ authToken: env['ANTHROPIC_AUTH_TOKEN'] ?? '', apiKey: null, baseURL: env['ANTHROPIC_BASE_URL'] ?? '' })

describe('an ApiKey manifest', () => {
  it('is programmed on both gateways, and says so', async () => {
    const key = await stack.untilCondition('ApiKey', 'story-key', 'Programmed')
    expect(key.status).toMatchObject({ programmed: { ready: 2, total: 2 }, secretRef: { name: 'story-key' } })
  })

  it('C5 C9 configures the OpenAI SDK by its Secret alone: plain', async () => {
    const answer = await openai().chat.completions.create(ask)
    expect(answer.model).toBe('story-model')
    expect(answer.choices[0]?.message.content).not.toBe('')
    expect(answer.usage?.completion_tokens).toBeGreaterThan(0)
  })

  it('C5 C9 configures the OpenAI SDK by its Secret alone: streamed', async () => {
    const chunks = []
    for await (const chunk of await openai().chat.completions.create({ ...ask, stream: true })) chunks.push(chunk)
    expect(chunks.length).toBeGreaterThan(3)
    expect(new Set(chunks.map((chunk) => chunk.model))).toEqual(new Set(['story-model']))
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).not.toBe('')
  })

  it('C5 C9 configures the Anthropic SDK by its Secret alone: plain and streamed', async () => {
    const answer = await anthropic().messages.create(ask)
    expect(answer).toMatchObject({ type: 'message', model: 'story-model', role: 'assistant' })
    const message = await anthropic().messages.stream(ask).finalMessage()
    expect(message.model).toBe('story-model')
    expect(message.content[0]).toMatchObject({ type: 'text' })
  })

  it('C9 adds ANTHROPIC_API_KEY to the Secret on request, removes the entry again, and keeps the value of the key', async () => {
    const credential = await stack.issueKey('anthropic-key', { secret: { anthropicApiKey: 'Include' } })
    const { ANTHROPIC_API_KEY: apiKey = '', ANTHROPIC_BASE_URL: baseURL = '' } = await stack.secret('anthropic-key')
    expect(apiKey).toBe(credential)
    const answer = await new Anthropic({ apiKey, authToken: null, baseURL }).messages.create(ask)
    expect(answer.model).toBe('story-model')
    await stack.kube.merge(stack.path('ApiKey', 'anthropic-key'), { spec: { secret: { anthropicApiKey: 'Omit' } } })
    await expect.poll(() => stack.secret('anthropic-key')).not.toHaveProperty('ANTHROPIC_API_KEY')
    expect(await stack.secret('anthropic-key')).toMatchObject({ SERVICE_API_KEY: credential, ANTHROPIC_AUTH_TOKEN: credential })
  })

  it('lists the models that the key may call', async () => {
    const models = await openai().models.list()
    expect(models.data.map((model) => model.id)).toEqual(['story-model'])
  })

  it('E2 refuses a model out of scope with 403, whether or not the model exists, after one request of each SDK', async () => {
    const refused = await openai()
      .chat.completions.create({ ...ask, model: 'other' })
      .catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(OpenAI.PermissionDeniedError)
    expect(String(refused)).toContain('key not allowed to access model other')
  })
})

describe('kubectl delete', () => {
  it('makes every gateway answer 401 for the key by the time it has returned', async () => {
    const credential = await stack.issueKey('doomed')
    for (const gateway of stack.gateways) expect(await status(gateway.url, credential)).toBe(200)
    await stack.deleteKey('doomed')
    for (const gateway of stack.gateways) expect(await status(gateway.url, credential)).toBe(401)
    const failure = await openai(credential)
      .chat.completions.create(ask)
      .catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(OpenAI.AuthenticationError)
    expect(String(failure)).toContain('Authentication Error')
  })
})

async function status(url: string, credential: string): Promise<number> {
  return (await call(lab, url, { credential, body: ask })).status
}
