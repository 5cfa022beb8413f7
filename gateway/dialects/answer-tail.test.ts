import { expect, test } from 'vitest'
import { AnswerTail } from './answer-tail.ts'

const usage = { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } }
const LONG = 'x'.repeat(60_000)

/** The tail of an answer that arrives in pieces of this many bytes. */
function usageOf(answer: object | string, size = 1_000): unknown {
  const bytes = Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer))
  const tail = new AnswerTail()
  for (let at = 0; at < bytes.length; at += size) tail.add(bytes.subarray(at, at + size))
  return tail.usage()
}

test.each([1, 7, 1_000, 16_384, 100_000])('the usage at the end of a large answer is found, whatever its pieces: %i bytes', (size) => {
  expect(usageOf({ choices: [{ message: { content: LONG } }], usage, prompt_logprobs: null, kv: { a: ['}'] } }, size)).toEqual({ usage })
})

test('is found between blanks', () => {
  expect(usageOf(JSON.stringify({ content: LONG, usage }, null, 2))).toEqual({ usage })
})

test.each<[string, object]>([
  ['a text that contains it', { content: `${LONG}"usage":{"prompt_tokens":1}` }],
  ['the arguments of a call', { content: [{ type: 'tool_use', input: { pad: LONG, usage: { output_tokens: 1 } } }] }],
  ['a key that ends in it', { content: LONG, '"usage': { prompt_tokens: 1 } }],
  ['no object', { content: LONG, usage: null }],
  ['an answer without it', { content: LONG }],
  ['an answer that has it before a long text', { usage, content: LONG }],
])('%s is none', (_what, answer) => {
  expect(usageOf(answer)).toBeUndefined()
})

test('of two the one at the top level counts', () => {
  const input = { usage: { output_tokens: 1 } }
  expect(usageOf({ content: LONG, usage: { output_tokens: 9 }, metadata: { input } })).toEqual({ usage: { output_tokens: 9 } })
  expect(usageOf({ content: [LONG, { input }], usage: { output_tokens: 9 } })).toEqual({ usage: { output_tokens: 9 } })
})

test('an answer that broke off has none', () => {
  expect(usageOf(JSON.stringify({ content: LONG, usage }).slice(0, -1))).toBeUndefined()
})
