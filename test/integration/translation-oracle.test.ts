/** What an SDK rebuilds of an answer is the same whether llama-server speaks Messages itself or the gateway translates, but for a written list. */
import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLab } from '../support/lab.ts'
import { ModelServerPart, UPSTREAM_MODEL } from '../support/model-server-part.ts'
import { type Conversation, CONVERSATIONS, rebuiltFacts } from '../support/sdk-cases/conversations.ts'

type Facts = ReturnType<typeof rebuiltFacts>
type Params = Anthropic.MessageCreateParamsNonStreaming
type Way = (client: Anthropic, params: Params) => Promise<Anthropic.Message>

const NATIVE = 'oracle-native'
const TRANSLATED = 'oracle-translated'
const SERVICE = 'oracle'
/** Some characters of an answer, not at its start, that become a stop sequence. */
const STOP = /(?<=..)\S.?\S/su

/**
 * The facts that differ, by the kind of the conversation.
 * - A stop sequence: on chat completions llama-server does not say which sequence has ended the answer.
 */
const DIFFERENCES: Readonly<Partial<Record<Conversation['kind'], readonly string[]>>> = {
  'a stop sequence': ['stop_sequence'],
}

const WAYS: ReadonlyArray<readonly [name: string, way: Way]> = [
  ['plain', (client, params) => client.messages.create(params)],
  ['streamed', (client, params) => client.messages.stream(params).finalMessage()],
]

const lab = openLab()
let server: ModelServerPart
let client: Anthropic

beforeAll(async () => {
  const stack = await lab.stack({ gateways: 1 })
  // one slot: two calls in a row find the same cached prompt, so a model at temperature 0 writes the same words
  server = await ModelServerPart.start(lab.folder, lab.address.ip, 'chat', ['--parallel', '1'])
  await stack.exposeService(SERVICE, server.port)
  const backend = { name: 'main', service: { name: SERVICE, port: server.port }, upstreamModel: UPSTREAM_MODEL, engine: 'LlamaCpp' }
  await stack.serveModel(NATIVE, { backends: [{ ...backend, messages: 'Native' }] })
  await stack.serveModel(TRANSLATED, { backends: [{ ...backend, messages: 'Translate' }] })
  const authToken = await stack.issueKey('oracle-key')
  client = new Anthropic({ authToken, apiKey: null, baseURL: stack.gateway.url }) // llama-server may close an idle connection as a request comes
})

afterAll(() => server.stop())

async function factsOf(way: Way, model: string, request: Conversation['request']): Promise<Facts> {
  return rebuiltFacts(await way(client, { ...request, model }))
}

/** @returns the request, with a stop sequence from the model's own answer if its kind wants one */
async function requestOf({ kind, request }: Conversation): Promise<Conversation['request']> {
  if (kind !== 'a stop sequence') return request
  const { content } = await client.messages.create({ ...request, model: NATIVE })
  const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  const stop = STOP.exec(text)?.[0]
  if (stop === undefined) throw new Error(`the model says too little for a stop sequence: ${JSON.stringify(text)}`)
  return { ...request, stop_sequences: [stop] }
}

describe.each(WAYS)('an answer, %s, is the same natively and translated:', (_way, way) => {
  it.each(CONVERSATIONS)('$kind, $topic', async (conversation) => {
    const request = await requestOf(conversation)
    await factsOf(way, NATIVE, request) // fills the cache of the server
    const native = await factsOf(way, NATIVE, request)
    const translated = await factsOf(way, TRANSLATED, request)
    const differing = Object.keys(native).filter((fact) => JSON.stringify(native[fact]) !== JSON.stringify(translated[fact]))
    expect(differing, JSON.stringify({ native, translated })).toEqual(DIFFERENCES[conversation.kind] ?? [])
  })
})

it('the transcript has 40 conversations', () => {
  expect(CONVERSATIONS).toHaveLength(40)
})
