/** A transcript of 48 conversations for deterministic models, and what an SDK rebuilds of each. */
import type Anthropic from '@anthropic-ai/sdk'

type Request = Omit<Anthropic.MessageCreateParamsNonStreaming, 'model'> & { readonly temperature: number }

export interface Conversation {
  readonly kind: Kind
  readonly topic: string
  readonly request: Request
  /** Calls of tools in the answer. A conversation with some is for `ModelServerPart.startCaller`. */
  readonly calls: number
}

/** A call has fewer tokens, so each call is complete: the grammar of the server leaves the model no choice of words. */
const CALL_TOKENS = 400
const TEXT_TOKENS = 24
const TOPICS = ['canals', 'Grachtengürtel', '運河', 'a 🚤 race', 'locks\nand “weirs”', 'SELECT * FROM boats;', 'tides', 'Ebbe & Flut']

const user = (content: Anthropic.MessageParam['content']): Anthropic.MessageParam => ({ role: 'user', content })
const assistant = (content: Anthropic.MessageParam['content']): Anthropic.MessageParam => ({ role: 'assistant', content })
const base = (messages: Anthropic.MessageParam[]): Request => ({ max_tokens: TEXT_TOKENS, temperature: 0, messages })
const tool = (name: string, path: object): Anthropic.Tool => ({
  name,
  description: `Runs ${name}.`,
  input_schema: { type: 'object', properties: { path: { type: 'string', ...path } }, required: ['path'] },
})
const forced = (topic: string, ...tools: Anthropic.Tool[]): Request => ({
  ...base([user(`Read about ${topic}.`)]),
  ...{ max_tokens: CALL_TOKENS, tools, tool_choice: { type: 'any' } },
})
/** Ends the first call and begins a second one, as the template of `make-tiny-gguf.py --calls` writes calls. */
const TWICE = String.raw`^a\.txt"\}\}</tool_call><tool_call>\{"name": "read", "arguments": \{"path": "b\.txt$`

/** The requests of each kind, by their topic. No turn has what servers order in their own way: texts beside results, turns of one role in a row. */
const KINDS = {
  'one turn': (topic: string): Request => base([user(`Say something about ${topic}.`)]),
  'several turns and a system text': (topic: string): Request => ({
    ...base([user([{ type: 'text', text: topic }]), assistant('They are wet.'), user('More.')]),
    system: [{ type: 'text', text: 'You are brief.', cache_control: { type: 'ephemeral' } }],
  }),
  'a call and its result': (topic: string): Request =>
    base([
      user(`Read about ${topic}.`),
      assistant([{ type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'a.txt' } }]),
      user([{ type: 'tool_result', tool_use_id: 'toolu_1', content: topic }]),
    ]),
  'a forced call': (topic: string): Request => forced(topic, tool('read', { enum: [topic] }), tool('write', { enum: [topic] })),
  'two forced calls': (topic: string): Request => forced(topic, tool('read', { pattern: TWICE })),
  'a stop sequence': (topic: string): Request => base([user(`Once more about ${topic}.`)]),
} as const

type Kind = keyof typeof KINDS
const CALLS: Readonly<Partial<Record<Kind, number>>> = { 'a forced call': 1, 'two forced calls': 2 }

export const CONVERSATIONS: readonly Conversation[] = Object.entries(KINDS).flatMap(([name, make]) => {
  const kind = name as Kind
  return TOPICS.map((topic) => ({ kind, topic, request: make(topic), calls: CALLS[kind] ?? 0 }))
})

/** What an SDK has rebuilt, without ids and names. The parts of a prompt are added up, since servers count cached tokens in different ways. */
export function rebuiltFacts({
  type,
  role,
  content,
  stop_reason,
  stop_sequence,
  usage,
}: Anthropic.Message): Readonly<Record<string, unknown>> {
  return {
    ...{ type, role, stop_reason, stop_sequence },
    content: content.map((block) => {
      if (block.type === 'tool_use') return [block.type, block.name, block.input]
      return block.type === 'text' ? [block.type, block.text] : [block.type]
    }),
    promptTokens: usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0),
    answerTokens: usage.output_tokens,
  }
}
