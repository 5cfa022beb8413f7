import fc from 'fast-check'
import { expect, it } from 'vitest'
import { checkMessageStream } from '../../../test/support/message-grammar.ts'
import type { JsonObject } from '../json-body.ts'
import { UnreadableAnswer } from '../unreadable-answer.ts'
import { MessageStream } from './message-stream.ts'

const ASKED = { model: 'llama', stopSequences: [], inputTokens: 12 }
const text = fc.string({ maxLength: 6 })
const callPiece = fc.record(
  {
    index: fc.constantFrom(-1, 0, 1, 2),
    id: fc.constantFrom('a', 'b', '0'),
    function: fc.record(
      { name: fc.constantFrom('read', 'write'), arguments: fc.constantFrom('', '{}', '{"a"', ':1}', 'x') },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ['function'] },
)
const delta = fc.record(
  {
    content: fc.oneof(text, fc.constant(null)),
    reasoning: text,
    reasoning_content: text,
    tool_calls: fc.array(callPiece, { maxLength: 3 }),
  },
  { requiredKeys: [] },
)
const chunk: fc.Arbitrary<JsonObject> = fc.oneof(
  { weight: 8, arbitrary: delta.map((fields) => ({ choices: [{ index: 0, delta: fields, finish_reason: null }] })) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('stop', 'length', 'tool_calls', 'content_filter', 'abort')
      .map((reason) => ({ choices: [{ delta: {}, finish_reason: reason }] })),
  },
  { weight: 1, arbitrary: fc.constant({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } }) },
  { weight: 1, arbitrary: fc.jsonValue().map((value) => ({ choices: value })) },
)

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** All text of one kind, in its order. */
function written(events: readonly JsonObject[], field: 'text' | 'thinking'): string {
  return events.map((event) => textOf((event.delta as JsonObject | undefined)?.[field])).join('')
}

it('any stream becomes a stream of correct grammar with its text in order and nothing else, or fails', () => {
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 20 }), (chunks) => {
      const stream = new MessageStream(ASKED)
      let out = ''
      try {
        for (const each of chunks) out += stream.push(each, 1)
        out += stream.end(1)
      } catch (error) {
        expect(error).toBeInstanceOf(UnreadableAnswer)
        return
      }
      const events = checkMessageStream(out) as unknown as readonly JsonObject[]
      const end = chunks.findIndex(({ choices }) => typeof (choices as JsonObject[] | undefined)?.[0]?.finish_reason === 'string')
      const said = chunks.slice(0, end + 1).map(({ choices }) => ((choices as JsonObject[] | undefined)?.[0]?.delta ?? {}) as JsonObject)
      expect(written(events, 'text')).toBe(said.map(({ content }) => textOf(content)).join(''))
      const thoughts = said.map(({ reasoning_content: first, reasoning: second }) => textOf(first) || textOf(second))
      expect(written(events, 'thinking')).toBe(thoughts.join(''))
    }),
    { numRuns: 10_000 },
  )
})
