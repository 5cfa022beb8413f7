import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../json-body.ts'
import { UnreadableAnswer } from '../unreadable-answer.ts'
import { messageAnswer } from './message-answer.ts'

const ASKED = { model: 'llama', stopSequences: ['END'], inputTokens: 12 }
const COUNTS = { prompt_tokens: 20, completion_tokens: 7 }

interface Given extends JsonObject {
  readonly message: JsonObject
  readonly finish?: string
}

/** The message of a plain answer with one choice. */
function answered({ message, finish = 'stop', ...more }: Given, usage?: JsonObject, asked: typeof ASKED = ASKED): JsonObject {
  const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish, ...more }]
  return messageAnswer({ choices, ...(usage && { usage }) }, asked, 3)
}

const call = (id: string, args: unknown): JsonObject => ({ id, type: 'function', function: { name: 'read', arguments: args } })
const use = (id: string, input: object): JsonObject => ({ type: 'tool_use', id, name: 'read', input })

describe('a translated plain answer', () => {
  it('X1: has one block of thinking, then one of text', () => {
    expect(answered({ message: { content: 'a', reasoning_content: 'hm' } })).toMatchObject({
      content: [
        { type: 'thinking', thinking: 'hm', signature: '' },
        { type: 'text', text: 'a' },
      ],
      stop_reason: 'end_turn',
    })
  })

  it('X3, X5: has the arguments of each call, in the order of the calls, after the text', () => {
    const message = { content: 'a', tool_calls: [call('c1', '{"a":1}'), call('c2', { b: 2 })] }
    expect(answered({ message, finish: 'tool_calls' }).content).toEqual([
      { type: 'text', text: 'a' },
      use('c1', { a: 1 }),
      use('c2', { b: 2 }),
    ])
  })

  it('X3: has the digits of a number that no double holds: the rounded id would be that of something else', () => {
    const args = '{"id":1234567890123456789,"at":-9007199254740993,"x":0.1234567890123456789,"n":12,"s":"1234567890123456789"}'
    const { content } = answered({ message: { content: null, tool_calls: [call('c1', args)] }, finish: 'tool_calls' })
    expect(JSON.stringify(content)).toContain(
      '{"id":1234567890123456789,"at":-9007199254740993,"x":0.12345678901234568,"n":12,"s":"1234567890123456789"}',
    )
  })

  it.each([null, '', undefined])('X4: has no empty block beside a call where the text is %j', (content) => {
    const message = { content, reasoning_content: '', tool_calls: [call('c1', '{}')] }
    expect(answered({ message, finish: 'tool_calls' }).content).toEqual([use('c1', {})])
  })

  it('X7: stops for a tool whatever the server says of the end', () => {
    const message = { content: 'a', tool_calls: [call('c1', '{}')] }
    expect(answered({ message, finish: 'stop' })).toMatchObject({ stop_reason: 'tool_use', stop_sequence: null })
  })

  it.each(['length', 'tool_calls', 'stop'])('X8: leaves out a call that was cut off, and stops at the limit of tokens: %s', (finish) => {
    const message = { content: null, tool_calls: [call('c1', '{}'), call('c2', '{"a":"unfin')] }
    expect(answered({ message, finish })).toMatchObject({ content: [use('c1', {})], stop_reason: 'max_tokens' })
  })

  it('X9: is a refusal where the server has filtered', () => {
    expect(answered({ message: { content: 'a' }, finish: 'content_filter' })).toMatchObject({
      ...{ stop_reason: 'refusal', stop_details: { type: 'refusal' } },
      content: [{ type: 'text', text: 'a' }],
    })
  })

  it.each(['stop_reason', 'matched_stop'])('X10: names a stop sequence that the server names in %s, and no other', (field) => {
    const end = (value: unknown): JsonObject => answered({ message: { content: 'a' }, [field]: value })
    expect(end('END')).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'END' })
    for (const other of [128_001, 'never asked for', null])
      expect(end(other)).toMatchObject({ stop_reason: 'end_turn', stop_sequence: null })
  })

  it.each(['', ' ', undefined, null])('X16: has an empty object where the arguments are %j', (args) => {
    expect(answered({ message: { tool_calls: [call('c1', args)] }, finish: 'tool_calls' })).toMatchObject({
      content: [use('c1', {})],
      stop_reason: 'tool_use',
    })
  })

  it('X22: counts cached tokens apart, and leaves out what the server does not count', () => {
    const cached = { ...COUNTS, prompt_tokens_details: { cached_tokens: 15 } }
    expect(answered({ message: { content: 'a' } }, cached).usage).toEqual({
      ...{ input_tokens: 5, cache_read_input_tokens: 15, output_tokens: 7 },
    })
    expect(answered({ message: { content: 'a' } }, COUNTS).usage).toEqual({ input_tokens: 20, output_tokens: 7 })
    const unknown = { ...COUNTS, prompt_tokens_details: null }
    expect(answered({ message: { content: 'a' } }, unknown).usage).toEqual({ input_tokens: 20, output_tokens: 7 })
    const excessive = { ...COUNTS, prompt_tokens_details: { cached_tokens: 25 } }
    expect(answered({ message: { content: 'a' } }, excessive).usage).toMatchObject({ input_tokens: 0, cache_read_input_tokens: 20 })
  })

  it('X22: has estimates where the server reports no usage', () => {
    expect(answered({ message: { content: 'a' } }).usage).toEqual({ input_tokens: 12, output_tokens: 3 })
  })

  it('has ids of its own, and replaces ids of calls that would come again', () => {
    const message = { tool_calls: [call('0', '{}'), call('same', '{}'), call('same', '{}')] }
    const { id, content, model } = answered({ message, finish: 'tool_calls' })
    const ids = (content as readonly JsonObject[]).map((block) => block.id)
    expect([id, model]).toEqual([expect.stringMatching(/^msg_/), 'llama'])
    expect(ids).toEqual([expect.stringMatching(/^toolu_/), 'same', expect.stringMatching(/^toolu_/)])
  })

  it('without content has none', () => {
    expect(answered({ message: { content: '' } })).toMatchObject({ content: [], stop_reason: 'end_turn' })
  })

  it('fails if the arguments of its calls together would become too many objects: they are texts, which no bound of the answer counts', () => {
    const half = `{"a":[${'{},'.repeat(60_000)}{}]}` // of a brace and a comma each
    const message = { tool_calls: [call('c1', half), call('c2', half)] }
    expect(answered({ message: { tool_calls: [call('c1', half)] } }).content).toHaveLength(1)
    expect(() => answered({ message })).toThrow('too many parts')
    expect(() => answered({ message: { tool_calls: [call('c1', '"'), call('c2', half), call('c3', half)] } })).toThrow('too many parts')
    expect(answered({ message: { tool_calls: [call('c1', JSON.stringify({ text: half + half }))] } }).content).toHaveLength(1)
  })

  it.each(['abort', 'error'])('fails at finish_reason %s, without any, and at a call without a name', (finish) => {
    expect(() => answered({ message: { content: 'a' }, finish })).toThrow(UnreadableAnswer)
    expect(() => messageAnswer({ choices: [{ message: { content: 'a' } }] }, ASKED, 3)).toThrow(UnreadableAnswer)
    expect(() => answered({ message: { tool_calls: [{ id: 'c1', function: { arguments: '{}' } }] } })).toThrow('no name')
  })
})
