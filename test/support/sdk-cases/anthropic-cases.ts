/** Uses of the official Anthropic SDK by applications. */
import Anthropic from '@anthropic-ai/sdk'
import { endOf, hasText, isCounted, isStreamed, LONG_METADATA, MAX_TOKENS, QUESTION, type SdkCases, type Via } from './sdk-case.ts'

const client = ({ anthropicUrl, credential }: Via): Anthropic =>
  new Anthropic({ authToken: credential, apiKey: null, baseURL: anthropicUrl, maxRetries: 0 })
const base = ({ model }: Via) => ({ model, max_tokens: MAX_TOKENS, messages: [{ role: 'user' as const, content: QUESTION }] })

function facts({ type, role, content, stop_reason, usage }: Anthropic.Message): unknown {
  const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  return {
    type,
    role,
    blocks: content.map((block) => block.type),
    text: hasText(text),
    end: endOf(stop_reason),
    usage: isCounted(usage.output_tokens),
  }
}

export const ANTHROPIC_CASES: SdkCases = {
  plain: async (via) => facts(await client(via).messages.create(base(via))),
  'x-api-key instead of a bearer token': async (via) => {
    const keyed = new Anthropic({ apiKey: via.credential, authToken: null, baseURL: via.anthropicUrl, maxRetries: 0 })
    return facts(await keyed.messages.create(base(via)))
  },
  'system blocks, several turns and a prefill': async (via) => {
    const messages: Anthropic.MessageParam[] = [
      { role: 'user', content: QUESTION },
      { role: 'assistant', content: 'They are wet.' },
      { role: 'user', content: [{ type: 'text', text: 'More.' }] },
      { role: 'assistant', content: 'Well' },
    ]
    const system = [{ type: 'text' as const, text: 'You are brief.', cache_control: { type: 'ephemeral' as const } }]
    return facts(await client(via).messages.create({ ...base(via), system, messages }))
  },
  streamed: async (via) => {
    const types: string[] = []
    let text = ''
    for await (const event of await client(via).messages.create({ ...base(via), stream: true })) {
      types.push(event.type)
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text
    }
    return { text: hasText(text), isStreamed: isStreamed(types.length), types: [...new Set(types)].filter((type) => type !== 'ping') }
  },
  'the stream helper': async (via) => facts(await client(via).messages.stream(base(via)).finalMessage()),
  'tools that the model must not call this time': async (via) => {
    const tool: Anthropic.Tool = { name: 'weather', description: 'At a place.', input_schema: { type: 'object', properties: {} } }
    return facts(await client(via).messages.create({ ...base(via), tools: [tool], tool_choice: { type: 'none' } }))
  },
  'stop sequences, sampling and metadata': async (via) => {
    const fields = { stop_sequences: ['\u0001never'], temperature: 0, top_k: 5, metadata: { user_id: 'somebody' } }
    return facts(await client(via).messages.create({ ...base(via), ...fields }))
  },
  'the tokens of a prompt': async (via) => {
    const { model, messages } = base(via)
    const tool: Anthropic.Tool = { name: 'weather', description: 'At a place.', input_schema: { type: 'object', properties: {} } }
    const plain = await client(via).messages.countTokens({ model, messages })
    const withTool = await client(via).messages.countTokens({ model, messages, system: 'You are brief.', tools: [tool] })
    return [plain.input_tokens, withTool.input_tokens]
  },
  'a large body': async (via) => facts(await client(via).messages.create({ ...base(via), metadata: { user_id: LONG_METADATA } })),
  'twelve at once': async (via) => Promise.all(Array.from({ length: 12 }, async () => facts(await client(via).messages.create(base(via))))),
  'a stream that is left early': async (via) => {
    const stream = client(via).messages.stream({ ...base(via), max_tokens: 2_000 })
    for await (const event of stream) if (event.type === 'content_block_delta') break
    return stream.controller.signal.aborted
  },
}
