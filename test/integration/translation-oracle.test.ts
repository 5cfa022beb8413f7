/** What an SDK rebuilds of an answer is the same whether llama-server speaks Messages itself or the gateway translates, but for a written list. */
import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLab } from '../support/lab.ts'
import { ENDS_AFTER_CALL, ModelServerPart, UPSTREAM_MODEL } from '../support/model-server-part.ts'
import { type Conversation, CONVERSATIONS, rebuiltFacts } from '../support/sdk-cases/conversations.ts'
import type { Stack } from '../support/stack.ts'

type Facts = ReturnType<typeof rebuiltFacts>
type Params = Anthropic.MessageCreateParamsNonStreaming
type Way = (client: Anthropic, params: Params) => Promise<Anthropic.Message>

/** The same server behind two models. */
interface Models {
  readonly native: string
  readonly translated: string
}

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
const servers: ModelServerPart[] = []
let client: Anthropic
let talker: Models
let caller: Models

beforeAll(async () => {
  const stack = await lab.stack({ gateways: 1 })
  // one slot: two calls in a row find the same cached prompt, so a model at temperature 0 writes the same words
  talker = await serve(stack, 'talker', await ModelServerPart.start(lab.folder, lab.address.ip, 'chat', ['--parallel', '1']))
  caller = await serve(stack, 'caller', await ModelServerPart.startCaller(lab.folder, lab.address.ip, ENDS_AFTER_CALL))
  const authToken = await stack.issueKey('oracle-key')
  client = new Anthropic({ authToken, apiKey: null, baseURL: stack.gateway.url }) // llama-server may close an idle connection as a request comes
})

afterAll(async () => {
  for (const server of servers) await server.stop()
})

async function serve(stack: Stack, name: string, server: ModelServerPart): Promise<Models> {
  servers.push(server)
  const models = { native: `${name}-native`, translated: `${name}-translated` }
  await stack.exposeService(name, server.port)
  const backend = { name: 'main', service: { name, port: server.port }, upstreamModel: UPSTREAM_MODEL, engine: 'LlamaCpp' }
  await stack.serveModel(models.native, { backends: [{ ...backend, messages: 'Native' }] })
  await stack.serveModel(models.translated, { backends: [{ ...backend, messages: 'Translate' }] })
  return models
}

/** The calls of tools of an answer. */
function callsIn({ content }: Facts): number {
  return (content as ReadonlyArray<readonly unknown[]>).filter(([type]) => type === 'tool_use').length
}

async function factsOf(way: Way, model: string, request: Conversation['request']): Promise<Facts> {
  return rebuiltFacts(await way(client, { ...request, model }))
}

/** @returns the request, with a stop sequence from the model's own answer if its kind wants one */
async function requestOf({ kind, request }: Conversation): Promise<Conversation['request']> {
  if (kind !== 'a stop sequence') return request
  const { content } = await client.messages.create({ ...request, model: talker.native })
  const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  const stop = STOP.exec(text)?.[0]
  if (stop === undefined) throw new Error(`the model says too little for a stop sequence: ${JSON.stringify(text)}`)
  return { ...request, stop_sequences: [stop] }
}

describe.each(WAYS)('an answer, %s, is the same natively and translated:', (_way, way) => {
  it.each(CONVERSATIONS)('$kind, $topic', async (conversation) => {
    const request = await requestOf(conversation)
    const models = conversation.calls > 0 ? caller : talker
    await factsOf(way, models.native, request) // fills the cache of the server
    const native = await factsOf(way, models.native, request)
    const translated = await factsOf(way, models.translated, request)
    expect([callsIn(native), callsIn(translated)], JSON.stringify({ native, translated })).toEqual([conversation.calls, conversation.calls])
    const differing = Object.keys(native).filter((fact) => JSON.stringify(native[fact]) !== JSON.stringify(translated[fact]))
    expect(differing, JSON.stringify({ native, translated })).toEqual(DIFFERENCES[conversation.kind] ?? [])
  })
})

it('the transcript has 48 conversations', () => {
  expect(CONVERSATIONS).toHaveLength(48)
})

it('llama-server offers all tools natively if the choice names one, and this tool alone where the choice is translated', async () => {
  const request = CONVERSATIONS.find(({ calls, request: { tools } }) => calls > 0 && tools?.length === 2)?.request
  if (request === undefined) throw new Error('no conversation offers two tools')
  const named = (name: string): Conversation['request'] => ({ ...request, tool_choice: { type: 'tool', name } })
  for (const [name, way] of WAYS) {
    const native = await factsOf(way, caller.native, request)
    for (const tool of ['read', 'write']) {
      expect(await factsOf(way, caller.native, named(tool)), `${name}, natively`).toEqual(native)
      const translated = await factsOf(way, caller.translated, named(tool))
      expect(translated['content'], `${name}, translated`).toEqual([['tool_use', tool, { path: 'canals' }]])
      expect(Number(translated['promptTokens'])).toBeLessThan(Number(native['promptTokens']))
    }
  }
})
