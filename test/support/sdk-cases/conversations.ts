/** A transcript of 40 conversations for a deterministic model, and what an SDK rebuilds of each. */
import type Anthropic from '@anthropic-ai/sdk'

type Request = Omit<Anthropic.MessageCreateParamsNonStreaming, 'model'> & { readonly temperature: number }

export interface Conversation {
  readonly kind: keyof typeof KINDS
  readonly topic: string
  readonly request: Request
}

/** Calls of tools have more tokens than this, so each is complete: the grammar leaves the model no choice of words. */
const CALL_TOKENS = 400
const TEXT_TOKENS = 24
const TOPICS = ['canals', 'Grachtengürtel', '運河', 'a 🚤 race', 'locks\nand “weirs”', 'SELECT * FROM boats;', 'tides', 'Ebbe & Flut']

const user = (content: Anthropic.MessageParam['content']): Anthropic.MessageParam => ({ role: 'user', content })
const assistant = (content: Anthropic.MessageParam['content']): Anthropic.MessageParam => ({ role: 'assistant', content })
const base = (messages: Anthropic.MessageParam[]): Request => ({ max_tokens: TEXT_TOKENS, temperature: 0, messages })
const tool = (name: string, ...choices: string[]): Anthropic.Tool => ({
  name,
  description: `Runs ${name}.`,
  input_schema: { type: 'object', properties: { path: { type: 'string', enum: choices } }, required: ['path'] },
})

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
  'a forced call': (topic: string): Request => ({
    ...base([user(`Read about ${topic}.`)]),
    max_tokens: CALL_TOKENS,
    tools: [tool('read', 'a.txt', 'b.txt'), tool('write', 'a.txt')],
    tool_choice: { type: 'any' },
  }),
  'a stop sequence': (topic: string): Request => base([user(`Once more about ${topic}.`)]),
} as const

export const CONVERSATIONS: readonly Conversation[] = Object.entries(KINDS).flatMap(([kind, make]) =>
  TOPICS.map((topic) => ({ kind: kind as Conversation['kind'], topic, request: make(topic) })),
)

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
