import { expect, test } from 'vitest'
import { AnswerUsage } from './answer-usage.ts'

const usage = { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } }
const LONG = 'x'.repeat(60_000)

/** The usage of an answer that arrives in pieces of this many bytes. */
function usageOf(answer: object | string, size = 1_000): unknown {
  const bytes = Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer))
  const found = new AnswerUsage()
  for (let at = 0; at < bytes.length; at += size) found.add(bytes.subarray(at, at + size))
  return found.usage()
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
])('%s is none', (_what, answer) => {
  expect(usageOf(answer)).toBeUndefined()
})

test('of two the one at the top level counts', () => {
  const input = { usage: { output_tokens: 1 } }
  expect(usageOf({ content: LONG, usage: { output_tokens: 9 }, metadata: { input } })).toEqual({ usage: { output_tokens: 9 } })
  expect(usageOf({ content: [LONG, { input }], usage: { output_tokens: 9 } })).toEqual({ usage: { output_tokens: 9 } })
})

test.each([1, 7, 1_000, 100_000])('W9 the usage before long log probabilities is found, whatever its pieces: %i bytes', (size) => {
  const escaped = { 'a"usage":{': '\\', text: `\\"usage":{"prompt_tokens":1},${LONG}\\` }
  expect(usageOf({ choices: [escaped], usage, prompt_logprobs: [LONG, escaped] }, size)).toEqual({ usage })
})

test('a usage that broke off is none', () => {
  expect(usageOf(JSON.stringify({ content: LONG, usage }).slice(0, -2))).toBeUndefined()
})

test('an object that is too large for a usage is none', () => {
  expect(usageOf({ usage: { pad: LONG }, content: 'x' })).toBeUndefined()
})
