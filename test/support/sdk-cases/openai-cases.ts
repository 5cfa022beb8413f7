/** Uses of the official OpenAI SDK by applications. */
import OpenAI from 'openai'
import {
  endOf,
  hasText,
  isCounted,
  isStreamed,
  LONG_METADATA,
  MAX_TOKENS,
  QUESTION,
  type SdkCases,
  STRUCTURED_TOKENS,
  type Via,
} from './sdk-case.ts'

const client = ({ openaiUrl, credential }: Via): OpenAI => new OpenAI({ apiKey: credential, baseURL: openaiUrl, maxRetries: 0 })
const base = ({ model }: Via) => ({ model, max_tokens: MAX_TOKENS, messages: [{ role: 'user' as const, content: QUESTION }] })
const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'weather',
    description: 'The weather at a place.',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  },
}
const COLOUR = { type: 'object', properties: { colour: { enum: ['red', 'blue'] } }, required: ['colour'], additionalProperties: false }

function facts(answer: OpenAI.ChatCompletion): unknown {
  const { object, choices, usage } = answer
  return {
    object,
    choices: choices.map(({ index, message, finish_reason }) => ({
      index,
      role: message.role,
      text: hasText(message.content),
      end: endOf(finish_reason),
    })),
    usage: [usage?.prompt_tokens, isCounted(usage?.completion_tokens)],
  }
}

async function streamFacts(stream: AsyncIterable<OpenAI.ChatCompletionChunk>): Promise<unknown> {
  let text = ''
  let chunks = 0
  let usage: unknown
  const finishReasons = new Set<string>()
  for await (const chunk of stream) {
    chunks += 1
    for (const { delta, finish_reason } of chunk.choices) {
      text += delta.content ?? ''
      if (finish_reason) finishReasons.add(endOf(finish_reason))
    }
    if (chunk.usage) usage = [chunk.usage.prompt_tokens, isCounted(chunk.usage.completion_tokens)]
  }
  return { text: hasText(text), isStreamed: isStreamed(chunks), finishReasons: [...finishReasons], usage }
}

export const OPENAI_CASES: SdkCases = {
  plain: async (via) => facts(await client(via).chat.completions.create(base(via))),
  'system, developer and several turns': async (via) => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'system', content: 'You are brief.' },
      { role: 'developer', content: 'You like canals.' },
      { role: 'user', content: QUESTION },
      { role: 'assistant', content: 'They are wet.' },
      { role: 'user', content: [{ type: 'text', text: 'More.' }] },
    ]
    return facts(await client(via).chat.completions.create({ ...base(via), messages }))
  },
  streamed: async (via) => streamFacts(await client(via).chat.completions.create({ ...base(via), stream: true })),
  'streamed with usage': async (via) =>
    streamFacts(await client(via).chat.completions.create({ ...base(via), stream: true, stream_options: { include_usage: true } })),
  'the stream helper': async (via) =>
    facts(
      await client(via)
        .chat.completions.stream({ ...base(via), stream_options: { include_usage: true } })
        .finalChatCompletion(),
    ),
  'two choices': async (via) => facts(await client(via).chat.completions.create({ ...base(via), n: 2 })),
  'log probabilities': async (via) => {
    const answer = await client(via).chat.completions.create({ ...base(via), logprobs: true, top_logprobs: 2 })
    return answer.choices[0]?.logprobs?.content?.every(({ top_logprobs }) => top_logprobs.length === 2)
  },
  'structured output': async (via) => {
    const json_schema = { name: 'colour', strict: true, schema: COLOUR }
    const fields = { max_tokens: STRUCTURED_TOKENS, response_format: { type: 'json_schema' as const, json_schema } }
    const answer = await client(via).chat.completions.create({ ...base(via), ...fields })
    return Object.keys(JSON.parse(answer.choices[0]?.message.content ?? '') as object)
  },
  'tools that the model must not call this time': async (via) =>
    facts(await client(via).chat.completions.create({ ...base(via), tools: [WEATHER], tool_choice: 'none' })),
  'stop, seed, penalties and fields of one server': async (via) => {
    const fields = { stop: ['\u0000never'], seed: 7, temperature: 0, frequency_penalty: 0.1, min_p: 0.1, cache_prompt: false }
    return facts(await client(via).chat.completions.create({ ...base(via), ...fields }))
  },
  'a large body': async (via) => facts(await client(via).chat.completions.create({ ...base(via), metadata: { about: LONG_METADATA } })),
  'twelve at once': async (via) =>
    Promise.all(Array.from({ length: 12 }, async () => facts(await client(via).chat.completions.create(base(via))))),
  'a stream that is left early': async (via) => {
    const stream = await client(via).chat.completions.create({ ...base(via), max_tokens: 2_000, stream: true })
    for await (const { choices } of stream) if (choices[0]?.delta.content) break
    return stream.controller.signal.aborted
  },
  'a mistake in the request': async (via) => {
    const json_schema = { name: 'x', schema: { type: 'no-type' } }
    const refusal: unknown = await client(via)
      .chat.completions.create({ ...base(via), response_format: { type: 'json_schema', json_schema } })
      .catch((error: unknown) => error)
    if (!(refusal instanceof OpenAI.BadRequestError)) throw new Error(`the mistake was not refused with 400: ${String(refusal)}`)
    return refusal.status
  },
  'the list of models': async (via) => (await client(via).models.list()).data.some(({ id }) => id === via.model),
}
