import { describe, expect, test } from 'vitest'
import { DeltaText, UsageTally } from './usage.ts'

const reader = new DeltaText('"delta":')
const deltaBytes = (event: string): number => reader.bytesOf(event)
const latin1 = (text: string): string => Buffer.from(text).toString('latin1')
const chat = (...deltas: readonly object[]): string =>
  latin1(
    `data: ${JSON.stringify({ id: 'c', model: 'm', choices: deltas.map((delta, index) => ({ index, delta, logprobs: { content: [{ token: 'x' }] } })) })}\n\n`,
  )
const message = (delta: object): string =>
  latin1(`event: content_block_delta\ndata: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta })}\n\n`)

describe('the text in an event', () => {
  test.each<[string, string, number]>([
    ['content', chat({ role: 'assistant', content: 'hello' }), 5],
    ['content of several bytes', chat({ content: 'grüße 漢😀' }), 7 + 1 + 3 + 4],
    ['content with quotes, braces and ends of lines', chat({ content: '"}\n\\{"' }), 6],
    ['content that contains deltas', chat({ content: '"delta":{"content":"no"}' }), 24],
    ['reasoning', chat({ reasoning_content: 'hmm', content: null }), 3],
    [
      'a call',
      chat({ tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'get', arguments: '{"a":1}' } }] }),
      3 + 7,
    ],
    ['two choices', chat({ content: 'ab' }, { content: 'cde' }), 5],
    ['a role alone', chat({ role: 'assistant', content: '' }), 0],
    ['no delta', latin1('data: {"choices":[],"usage":{"prompt_tokens":7}}\n\n'), 0],
    ['text of a message', message({ type: 'text_delta', text: 'hello' }), 5],
    ['thinking', message({ type: 'thinking_delta', thinking: 'hmm' }), 3],
    ['a signature', message({ type: 'signature_delta', signature: 'x'.repeat(400) }), 0],
    ['arguments of a message', message({ type: 'input_json_delta', partial_json: '{"a":' }), 5],
    ['escapes of a server that writes ASCII alone', 'data: {"choices":[{"delta": {"content": "\\u6f22\\ud83d\\ude00"}}]}\n\n', 9],
    ['half an event', 'data: {"choices":[{"delta":{"content":"ab', 2],
    ['a comment', ': keep-alive\n\n', 0],
  ])('of %s', (_what, event, bytes) => {
    expect(deltaBytes(event)).toBe(bytes)
  })

  test.each([
    ['within each other', '"delta":{"a":"x","b":'],
    ['that never end', '"delta":{"a":"x'],
    ['without an object', '"delta":"delta":'],
    ['of escapes', '"delta":{"a":"\\\\\\"'],
  ])('of a mebibyte of deltas %s is measured in one pass', (_what, part) => {
    const event = `data: ${part.repeat(2 ** 20 / part.length)}`
    expect(deltaBytes(event)).toBeGreaterThanOrEqual(0) // a pass takes some 20 ms; one for each delta would exceed the time-out
  })
})

describe('a stream without usage is estimated by its events', () => {
  const estimate = (...contents: readonly string[]): number => {
    const tally = new UsageTally('"delta":')
    for (const content of contents) tally.addEvent(chat({ content }))
    return tally.settled(7).outputTokens
  }

  test('as long as each brings about a token', () => {
    expect(estimate(...' one two three international 漢'.split(/(?= )/))).toBe(5)
  })

  test('and by its bytes if each event has several tokens', () => {
    expect(estimate('one two three four five', 'six seven eight nine ten')).toBe(Math.ceil(47 / 4))
  })

  test('and never as nothing', () => {
    expect(new UsageTally('"delta":').settled(7)).toEqual({ inputTokens: 7, cachedInputTokens: 0, outputTokens: 1, isEstimated: true })
  })
})
