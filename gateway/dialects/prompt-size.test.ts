import { describe, expect, test } from 'vitest'
import type { JsonObject } from './json-body.ts'
import { promptSize } from './prompt-size.ts'
import { TextWeight } from './text-weight.ts'

const size = (body: JsonObject): ReturnType<typeof promptSize> => promptSize(body, Buffer.byteLength(JSON.stringify(body)))
const user = (content: unknown): JsonObject => ({ model: 'm', messages: [{ role: 'user', content }] })
const tokens = (body: JsonObject): number => size(body).tokens
function weigh(text: string): number {
  const weight = new TextWeight()
  weight.add(text)
  return weight.tokens
}
const within =
  (low: number, high: number) =>
  (value: number): boolean =>
    value >= low && value <= high
const BASE64 = 'kR8mfQ2v0cJtV7xYw3Zl5sN1oPbAe4Gh9uDiKjLM6nXyTzSqWrEU+FgHBvCaI/0pOd8k2mJ7Qf5tRxYw3Vl9sZ1oNbPe4Ah6uGiDjKLcMnXyTzSqWrEU=='

describe('T29 the weight of a text', () => {
  // the truth by o200k_base and cl100k_base, as gpt-tokenizer 4.0.0 counts them
  test.each([
    ['prose', 'All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience.', 21, 21],
    [
      'code',
      'for (let at = start; at < end; at++) {\n    const kind = KIND_OF[text.charCodeAt(at)]\n    if (kind === LETTER) continue\n  }\n',
      37,
      35,
    ],
    ['Chinese', '人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。', 37, 52],
    ['Hindi', 'सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।', 25, 84],
    ['Russian', 'Все люди рождаются свободными и равными в своем достоинстве и правах.', 17, 35],
    ['German', 'Alle Menschen sind frei und gleich an Würde und Rechten geboren.', 14, 16],
    ['digits', '7919 31 245489 490978 736467 981956 1227445', 20, 20],
    ['emoji', '😀🎉🚀🔥'.repeat(5), 30, 55],
  ])('of %s is 0.8 to 3.2 times the truth', (_what, text, ...truths) => {
    for (const truth of truths) expect(weigh(text) / truth).toSatisfy(within(0.8, 3.2))
  })
})

describe('the size of a prompt', () => {
  test('is never 0', () => {
    expect(tokens({ messages: [{}] })).toBeGreaterThan(0)
    expect(tokens({})).toBe(1)
  })

  test('counts every message and every tool', () => {
    const message = { role: 'user', content: 'one two three' }
    expect(tokens({ messages: Array.from({ length: 10 }, () => message) })).toBe(10 * (4 + 3))
    const tool = { type: 'function', function: { name: 'x', parameters: {} } }
    expect(tokens({ ...user(''), tools: [tool, tool] })).toBeGreaterThan(tokens(user('')) + 2 * 10)
  })

  test.each<[string, JsonObject]>([
    ['a string', user('alpha beta gamma')],
    ['blocks', user([{ type: 'text', text: 'alpha beta gamma' }])],
    ['the system text', { ...user(''), system: 'alpha beta gamma' }],
    ['system blocks', { ...user(''), system: [{ type: 'text', text: 'alpha beta gamma', cache_control: { type: 'ephemeral' } }] }],
    ['a tool result', user([{ type: 'tool_result', tool_use_id: 'toolu_01A', content: [{ type: 'text', text: 'alpha beta gamma' }] }])],
    ['thinking', user([{ type: 'thinking', thinking: 'alpha beta gamma', signature: BASE64 }])],
    [
      'arguments of a call',
      {
        messages: [
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'call_1', type: 'function', function: { arguments: 'alpha beta gamma' } }],
          },
        ],
      },
    ],
  ])('counts the words of %s', (_what, body) => {
    expect(tokens(body)).toBe(4 + 3)
  })

  test('counts the arguments of tool calls, including names', () => {
    expect(tokens(user([{ type: 'tool_use', id: 'toolu_01A', name: 'x', input: { alpha: 'beta' } }]))).toBe(4 + 1 + 1 + 1 + 1 + 1)
  })

  test('X23: counts the digits of numbers in arguments and tools: some tokenizers have a token for each', () => {
    const values = Array.from({ length: 100 }, (_, i) => i + 0.123456789012)
    const digits = JSON.stringify(values).replaceAll(/\D/g, '').length
    expect(tokens(user([{ type: 'tool_use', id: 'toolu_01A', name: 'x', input: { values } }]))).toBeGreaterThan(digits)
    expect(tokens({ ...user(''), tools: [{ name: 'x', input_schema: { enum: values } }] })).toBeGreaterThan(digits)
  })

  test.each<[string, JsonObject]>([
    ['an image by OpenAI', { type: 'image_url', image_url: { url: `data:image/png;base64,${BASE64.repeat(1000)}` } }],
    ['an image by url', { type: 'image_url', image_url: 'https://example.net/a.png' }],
    ['an image by Anthropic', { type: 'image', source: { type: 'base64', media_type: 'image/png', data: BASE64.repeat(1000) } }],
    ['a document', { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: BASE64.repeat(1000) } }],
    ['a file', { type: 'file', file: { file_data: BASE64.repeat(1000) } }],
    ['a sound', { type: 'input_audio', input_audio: { data: BASE64.repeat(1000), format: 'wav' } }],
    [
      'an image in a tool result',
      { type: 'tool_result', content: [{ type: 'image', source: { type: 'base64', data: BASE64.repeat(1000) } }] },
    ],
  ])('W8 counts %s as a thousand, whatever its bytes, and the upper bound grows with them', (_what, block) => {
    const { tokens: estimate, mediaTokens, maxTokens } = size(user([block]))
    expect([estimate, mediaTokens]).toEqual([expect.toSatisfy(within(1_004, 1_010)), 1_000])
    const bytes = JSON.stringify(block).length
    expect(maxTokens).toSatisfy(within(1_000 + (bytes > 1_000 ? bytes / 50 - 10 : 0), 1_400 + bytes / 50))
  })

  test('counts the text of a document', () => {
    const text = 'alpha beta '.repeat(500)
    expect(
      tokens(user([{ type: 'document', title: 'one', source: { type: 'text', media_type: 'text/plain', data: text } }])),
    ).toBeGreaterThan(2_000)
    expect(tokens(user([{ type: 'document', source: { type: 'content', content: [{ type: 'text', text }] } }]))).toBeGreaterThan(2_000)
  })

  test('has the bytes of the body as its upper bound, which no estimate exceeds', () => {
    const { tokens: estimate, maxTokens } = size(user('漢'.repeat(100)))
    expect([estimate, maxTokens]).toEqual([4 + 108, 3 * 100 + Buffer.byteLength(JSON.stringify(user(''))) + 64])
    expect(size(user('1'.repeat(30))).maxTokens).toBeGreaterThan(30)
  })
})
