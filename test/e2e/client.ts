/**
 * The program in the client pod: unmodified SDKs whose only configuration is the environment that `envFrom` makes of the user's Secret.
 *   client.js wait            keeps running, so that `kubectl exec` finds the same environment after the key and its Secret are deleted
 *   client.js ask MODEL       one call of each kind; prints an Outcome[] as JSON
 *   client.js load MODEL URL… 200 plain calls a second and 50 streams to these base URLs; prints a LoadReport as JSON once stdin ends
 *   client.js model PORT      no client, but the stub model server: each request chooses its answer
 */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { startStubModel } from '../../examples/stub-model/stub-model.ts'
import { checkedFetch } from './checked-fetch.ts'
import { runSteadyLoad } from './steady-load.ts'

export interface Outcome {
  readonly call: string
  /** HTTP status; 0 without an answer. */
  readonly status: number
  readonly events: number
  readonly characters: number
  readonly message?: string
}

type Counted = Pick<Outcome, 'events' | 'characters'>
type Call = (model: string) => Promise<Counted>

const MAX_TOKENS = 32
const QUESTION = [{ role: 'user' as const, content: 'Say something about canals.' }]

const CALLS: Readonly<Record<string, Call>> = {
  'openai, plain': async (model) => {
    const answer = await new OpenAI().chat.completions.create({ model, messages: QUESTION, max_tokens: MAX_TOKENS })
    return { events: 1, characters: answer.choices[0]?.message.content?.length ?? 0 }
  },
  'openai, streamed': async (model) => {
    const stream = await new OpenAI().chat.completions.create({ model, messages: QUESTION, max_tokens: MAX_TOKENS, stream: true })
    return count(stream, (chunk) => chunk.choices[0]?.delta.content ?? '')
  },
  'anthropic, plain': async (model) => {
    const answer = await new Anthropic().messages.create({ model, messages: QUESTION, max_tokens: MAX_TOKENS })
    return { events: 1, characters: answer.content.map((block) => (block.type === 'text' ? block.text : '')).join('').length }
  },
  'anthropic, streamed': async (model) => {
    const stream = await new Anthropic().messages.create({ model, messages: QUESTION, max_tokens: MAX_TOKENS, stream: true })
    return count(stream, (event) => (event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : ''))
  },
}

async function count<T>(stream: AsyncIterable<T>, textOf: (event: T) => string): Promise<Counted> {
  let events = 0
  let characters = 0
  for await (const event of stream) {
    events += 1
    characters += textOf(event).length
  }
  return { events, characters }
}

async function outcomeOf(call: string, run: Call, model: string): Promise<Outcome> {
  try {
    const counted = await run(model)
    return { call, status: 200, ...counted }
  } catch (error) {
    const status = error instanceof OpenAI.APIError || error instanceof Anthropic.APIError ? (error.status ?? 0) : 0
    return { call, status, events: 0, characters: 0, message: error instanceof Error ? error.message : 'not an Error' }
  }
}

async function ask(model: string): Promise<void> {
  const outcomes: Outcome[] = []
  for (const [call, run] of Object.entries(CALLS)) outcomes.push(await outcomeOf(call, run, model))
  process.stdout.write(JSON.stringify(outcomes))
}

async function load(model: string, targets: readonly string[]): Promise<void> {
  const until = new AbortController()
  process.stdin.once('end', () => until.abort()).resume()
  const credential = process.env['SERVICE_API_KEY'] ?? ''
  const report = await runSteadyLoad({ targets, model, credential, perSecond: 200, streams: 50 }, until.signal)
  process.stdout.write(JSON.stringify(report))
}

function stay(): void {
  process.once('SIGTERM', () => process.exit(0))
  setInterval(() => undefined, 1 << 30)
}

globalThis.fetch = checkedFetch(globalThis.fetch)
const [command, first = '', ...rest] = process.argv.slice(2)
if (command === 'ask') await ask(first)
else if (command === 'load') await load(first, rest)
else {
  if (command === 'model') await startStubModel({ host: '0.0.0.0', port: Number(first) })
  stay()
}
