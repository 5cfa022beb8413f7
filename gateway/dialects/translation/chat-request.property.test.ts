import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ENGINES } from '#contract/values/call-routes.ts'
import { wrongChatRequest } from '../../../test/support/openai-schema.ts'
import { GatewayError } from '../../errors.ts'
import { asObject, type JsonObject } from '../json-body.ts'
import { messages as dialect } from '../messages.ts'
import { readRequest } from '../read-request.ts'
import { ENGINE_TRAITS } from './engine-traits.ts'
import { translateBody } from './translate-body.ts'

const RUNS = 5_000
const OPENAI_STOPS = 4
/** Most random requests can be translated; the others are refused by their field. */
const FEWEST_TRANSLATED = RUNS / 2

const text = fc.string({ unit: 'grapheme', maxLength: 12 })
const word = fc.string({ unit: fc.constantFrom('a', 'b', 'X', 'Y', '0', '9', '_', '-'), minLength: 1, maxLength: 10 })
const cached = fc.option(fc.constant({ cache_control: { type: 'ephemeral' } }), { nil: {}, freq: 4 })
const block = (arbitrary: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> =>
  fc.tuple(arbitrary, cached).map(([fields, control]) => ({ ...fields, ...control }))
const oneOrMany = (one: fc.Arbitrary<JsonObject>): fc.Arbitrary<unknown> => fc.oneof(text, fc.array(one, { maxLength: 3 }))
const optional = <T extends Record<string, fc.Arbitrary<unknown>>>(fields: T): fc.Arbitrary<JsonObject> =>
  fc.record(fields, { requiredKeys: [] }) as fc.Arbitrary<JsonObject>

const textBlock = block(text.map((value) => ({ type: 'text', text: value })))
const image = block(
  fc.constantFrom<JsonObject>(
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
  ),
)
const documentBlock = block(
  fc
    .tuple(optional({ title: fc.option(text), context: text }), oneOrMany(textBlock))
    .map(([heading, content]) => ({ type: 'document', ...heading, source: { type: 'content', content } })),
)
const searchResult = block(
  fc
    .tuple(text, fc.array(textBlock, { maxLength: 2 }))
    .map(([title, content]) => ({ type: 'search_result', source: 'https://example.com', title, content })),
)
/** Blocks that a chat completion cannot express, or that nobody knows. */
const odd = fc.constantFrom<JsonObject>(
  { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } },
  { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
  { type: 'text' },
  { type: 'hologram' },
)
const userBlock = fc.oneof(
  { weight: 20, arbitrary: textBlock },
  { weight: 5, arbitrary: image },
  { weight: 5, arbitrary: documentBlock },
  { weight: 5, arbitrary: searchResult },
  { weight: 1, arbitrary: odd },
)
const thought = fc.oneof(
  text.map((thinking): JsonObject => ({ type: 'thinking', thinking, signature: 's' })),
  fc.constant<JsonObject>({ type: 'redacted_thinking', data: 'x' }),
)
const resultBlock = fc.oneof(textBlock, image, documentBlock, fc.constant<JsonObject>({ type: 'tool_reference', tool_name: 't' }))

interface Call {
  readonly name: string
  readonly input: unknown
  readonly result: JsonObject
}
const call: fc.Arbitrary<Call> = fc.record({
  name: word,
  input: fc.oneof(fc.dictionary(word, fc.jsonValue({ maxDepth: 2 })), fc.constant(null)),
  result: optional({ content: fc.option(oneOrMany(resultBlock)), is_error: fc.boolean() }),
})

/** An assistant turn with calls, and the user turn with their results in any order. */
const exchange = fc
  .record({
    before: fc.array(fc.oneof(thought, textBlock), { maxLength: 2 }),
    calls: fc.array(call, { minLength: 1, maxLength: 3 }),
    note: fc.option(text),
    after: fc.array(userBlock, { maxLength: 2 }),
    isReversed: fc.boolean(),
  })
  .map(({ before, calls, note, after, isReversed }): JsonObject[] => {
    const uses = calls.map(({ name, input }, index) => ({ type: 'tool_use', id: `c${index}`, name, input }))
    const results = calls.map(({ result }, index) => ({ type: 'tool_result', tool_use_id: `c${index}`, ...result }))
    return [
      { role: 'assistant', content: [...before, ...uses] },
      ...(note === null ? [] : [{ role: 'system', content: note }]),
      { role: 'user', content: [...(isReversed ? results.toReversed() : results), ...after] },
    ]
  })
const turns = fc.oneof(
  { weight: 4, arbitrary: oneOrMany(userBlock).map((content): JsonObject[] => [{ role: 'user', content }]) },
  { weight: 3, arbitrary: oneOrMany(fc.oneof(textBlock, thought)).map((content): JsonObject[] => [{ role: 'assistant', content }]) },
  { weight: 1, arbitrary: oneOrMany(textBlock).map((content): JsonObject[] => [{ role: 'system', content }]) },
  { weight: 3, arbitrary: exchange },
)

const TOOL_NAME = 'known'
const tool = fc
  .tuple(
    fc.oneof(word, fc.constant(TOOL_NAME)),
    optional({
      description: text,
      type: fc.constantFrom('custom', 'bash_20250124', 'web_search_20250305'),
      input_schema: fc.oneof(fc.dictionary(word, fc.jsonValue({ maxDepth: 2 })), fc.constant(null)),
    }),
    cached,
  )
  .map(([name, fields, control]): JsonObject => ({ name, ...fields, ...control }))
const choice = fc
  .record({ type: fc.constantFrom('auto', 'any', 'none', 'tool'), disable_parallel_tool_use: fc.boolean() }, { requiredKeys: ['type'] })
  .map((fields): JsonObject => (fields.type === 'tool' ? { ...fields, name: TOOL_NAME } : fields))

const request = fc
  .record({
    first: oneOrMany(fc.oneof({ weight: 9, arbitrary: textBlock }, { weight: 1, arbitrary: userBlock })),
    later: fc.array(turns, { maxLength: 4 }),
    fields: optional({
      system: oneOrMany(textBlock),
      stream: fc.boolean(),
      max_tokens: fc.integer({ min: 1, max: 1_000_000 }),
      tools: fc.array(tool, { maxLength: 3 }),
      tool_choice: choice,
      stop_sequences: fc.array(text, { maxLength: 6 }),
      temperature: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      top_p: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
      top_k: fc.option(fc.nat(100)),
      thinking: fc.constantFrom<JsonObject>({ type: 'disabled' }, { type: 'adaptive' }, { type: 'enabled', budget_tokens: 1024 }),
      output_config: optional({
        effort: fc.constantFrom('low', 'medium', 'high', 'xhigh', 'max', 'extreme'),
        format: fc.constantFrom<JsonObject>({ type: 'json_schema', schema: { type: 'object' } }, { type: 'json_schema' }),
      }),
      metadata: optional({ user_id: fc.string({ maxLength: 300 }) }),
      context_management: fc.constant({ edits: [] }),
      hologram: fc.jsonValue({ maxDepth: 2 }),
    }),
  })
  .map(({ first, later, fields }): JsonObject => {
    const messages: JsonObject[] = [{ role: 'user', content: first }, ...later.flat()]
    return { model: 'llama', ...fields, messages }
  })

describe('a translated request', () => {
  it('is valid by the schema that OpenAI has published, or refused by the name of its field', () => {
    let translated = 0
    fc.assert(
      fc.property(request, fc.constantFrom(...ENGINES), fc.option(fc.integer({ min: 1, max: 200_000 })), (body, engine, contextTokens) => {
        const bytes = Buffer.from(JSON.stringify(body))
        expect(readRequest(bytes, dialect), 'the gateway reads it').not.toBeInstanceOf(GatewayError)
        const result = translateBody(bytes, dialect, { engine, contextTokens: contextTokens ?? undefined })
        if (result instanceof GatewayError) {
          expect(['invalidField', 'untranslatable']).toContain(result.row.id)
          expect(result.params.field).toMatch(/^(messages|tools\.\d+|tool_choice|system|stop_sequences)/)
          return
        }
        const sent = asObject(JSON.parse(result.body.bytes.toString()))
        // OpenAI takes four sequences, and servers of one's own take more
        const { stop, ...others } = sent ?? {}
        const checked = Array.isArray(stop) && ENGINE_TRAITS[engine].maxStops > OPENAI_STOPS ? others : sent
        expect(wrongChatRequest(checked), JSON.stringify(sent)).toBeUndefined()
        translated++
      }),
      { numRuns: RUNS },
    )
    expect(translated).toBeGreaterThan(FEWEST_TRANSLATED)
  })

  const VALID = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
  it.each<[string, JsonObject]>([
    ['no message', { messages: [] }],
    ['a role of another API', { messages: [{ role: 'robot', content: 'hi' }] }],
    ['a block of another API', { messages: [{ role: 'user', content: [{ type: 'image', source: {} }] }] }],
    ['a result without its call', { messages: [{ role: 'tool', content: 'x' }] }],
    ['a tool of another API', { tools: [{ name: 'read', input_schema: {} }] }],
    ['a choice of another API', { tool_choice: { type: 'any' } }],
    ['a cap as a text', { max_tokens: '10' }],
    ['an effort that is unknown', { reasoning_effort: 'extreme' }],
  ])('would be refused by that schema with %s', (_, change) => {
    expect(wrongChatRequest(VALID)).toBeUndefined()
    expect(wrongChatRequest({ ...VALID, ...change })).toMatch(/./)
  })
})
