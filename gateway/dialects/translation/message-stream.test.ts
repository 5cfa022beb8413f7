import { describe, expect, it } from 'vitest'
import { checkMessageStream } from '../../../test/support/message-grammar.ts'
import type { JsonObject } from '../json-body.ts'
import { UnreadableAnswer } from '../unreadable-answer.ts'
import { MessageStream } from './message-stream.ts'

const ASKED = { model: 'llama', stopSequences: ['END'], inputTokens: 12 }
const USAGE = { choices: [], usage: { prompt_tokens: 20, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 15 } } }

const delta = (fields: JsonObject, more: JsonObject = {}): JsonObject => ({
  choices: [{ index: 0, delta: fields, finish_reason: null, ...more }],
})
const finish = (reason: string, more: JsonObject = {}): JsonObject => delta({}, { finish_reason: reason, ...more })
const call = (index: number, args: string, named: JsonObject = {}): JsonObject =>
  delta({ tool_calls: [{ index, ...named, function: { ...(named.id === undefined ? {} : { name: 'read' }), arguments: args } }] })

/** The events that chunks become, checked by the grammar. The end marker follows. */
function translated(...chunks: readonly JsonObject[]): readonly JsonObject[] {
  const stream = new MessageStream(ASKED)
  const text = chunks.map((chunk) => stream.push(chunk, 3)).join('') + stream.end(3)
  return checkMessageStream(text) as unknown as readonly JsonObject[]
}

/** Events without those of every stream: the start, the ping and the end. */
function blocks(...chunks: readonly JsonObject[]): unknown[] {
  return translated(...chunks)
    .filter(({ type }) => String(type).startsWith('content_block'))
    .map((event) => event.content_block ?? event.delta ?? 'stop')
}

function ending(...chunks: readonly JsonObject[]): unknown {
  return translated(...chunks).find(({ type }) => type === 'message_delta')
}

describe('a translated stream', () => {
  it('X1, X2: has one start and one block for each kind, each with its first delta', () => {
    expect(blocks(delta({ reasoning_content: 'hm' }), delta({ content: 'a' }), delta({ content: 'b' }), finish('stop'))).toEqual([
      { type: 'thinking', thinking: '', signature: '' },
      { type: 'thinking_delta', thinking: 'hm' },
      { type: 'signature_delta', signature: '' },
      'stop',
      { type: 'text', text: '' },
      { type: 'text_delta', text: 'a' },
      { type: 'text_delta', text: 'b' },
      'stop',
    ])
  })

  it('X3: sends arguments that come in the only chunk of a call', () => {
    expect(blocks(call(0, '{"a":1}', { id: 'c1' }), finish('tool_calls'))).toEqual([
      { type: 'tool_use', id: 'c1', name: 'read', input: {} },
      { type: 'input_json_delta', partial_json: '{"a":1}' },
      'stop',
    ])
  })

  it.each([null, {}, { index: 0 }, { index: 0, id: '', function: { name: null, arguments: '' } }])(
    'X4: has no call for a piece without id, name and arguments: %j',
    (piece) => {
      const empty = delta({ tool_calls: [piece] })
      expect(ending(empty, delta({ content: 'a' }), empty, finish('stop'))).toMatchObject({ delta: { stop_reason: 'end_turn' } })
    },
  )

  it('X4: has no empty block before a call', () => {
    const first = delta({ role: 'assistant', content: '', tool_calls: [] })
    expect(blocks(first, delta({ content: null }), call(0, '{}', { id: 'c1' }), finish('tool_calls'))[0]).toMatchObject({
      type: 'tool_use',
    })
  })

  it('X5: keeps interleaved calls apart and sends them one after the other', () => {
    const chunks = [call(0, '{"a"', { id: 'c1' }), call(1, '{"b"', { id: 'c2' }), call(0, ':1}'), call(1, ':2}'), finish('tool_calls')]
    expect(blocks(...chunks)).toEqual([
      { type: 'tool_use', id: 'c1', name: 'read', input: {} },
      { type: 'input_json_delta', partial_json: '{"a"' },
      { type: 'input_json_delta', partial_json: ':1}' },
      'stop',
      { type: 'tool_use', id: 'c2', name: 'read', input: {} },
      { type: 'input_json_delta', partial_json: '{"b":2}' },
      'stop',
    ])
  })

  it('X5: streams a call as soon as the call before it is complete', () => {
    const stream = new MessageStream(ASKED)
    stream.push(call(0, '{"a":1}', { id: 'c1' }), 1)
    expect(stream.push(call(1, '{"b"', { id: 'c2' }), 1)).toContain('"partial_json":"{\\"b\\""')
  })

  it('X5: fails if more than 1 MiB of arguments would have to wait', () => {
    const stream = new MessageStream(ASKED)
    stream.push(call(0, '{"a"', { id: 'c1' }), 1)
    expect(() => stream.push(call(1, 'x'.repeat(1024 * 1024 + 1), { id: 'c2' }), 1)).toThrow(UnreadableAnswer)
  })

  it('X5: fails at more calls, or longer arguments, than it can keep', () => {
    const many = Array.from({ length: 1_001 }, (_, index) => ({ index, id: `c${index}`, function: { name: 'read', arguments: '{}' } }))
    expect(() => new MessageStream(ASKED).push(delta({ tool_calls: many }), 1)).toThrow('too many tool calls')
    const long = new MessageStream(ASKED)
    for (let mebibytes = 0; mebibytes < 4; mebibytes++) long.push(call(0, 'x'.repeat(2 ** 20), { id: 'c1' }), 1)
    expect(() => long.push(call(0, 'x'), 1)).toThrow('too long')
    const parts = new MessageStream(ASKED)
    parts.push(call(0, `[${'{},'.repeat(100_000)}0]`, { id: 'c1' }), 1)
    parts.push(finish('tool_calls'), 1)
    expect(() => parts.end(1)).toThrow('too many parts')
  })

  it('X5: keeps complete calls apart that all have the index 0', () => {
    const starts = blocks(call(0, '{"a":1}', { id: 'c1' }), call(0, '{"b":2}', { id: 'c2' }), finish('tool_calls'))
    expect(starts.filter((event) => (event as JsonObject).type === 'tool_use')).toMatchObject([{ id: 'c1' }, { id: 'c2' }])
  })

  it('X5: takes pieces with ever new ids for one call while it is not complete', () => {
    const chunks = [call(0, '{"a"', { id: 'c1' }), call(0, ':1}', { id: 'c2' }), call(0, '', { id: 'c3' }), finish('tool_calls')]
    expect(blocks(...chunks).filter((event) => (event as JsonObject).type === 'tool_use')).toMatchObject([{ id: 'c1' }])
  })

  it('X6: opens a new block for reasoning after text', () => {
    const kinds = blocks(delta({ content: 'a' }), delta({ reasoning: 'hm' }), delta({ content: 'b' }), finish('stop'))
      .filter((event) => (event as JsonObject).type !== undefined)
      .map((event) => (event as JsonObject).type)
    expect(kinds).toEqual(['text', 'text_delta', 'thinking', 'thinking_delta', 'signature_delta', 'text', 'text_delta'])
  })

  it('X7: stops for a tool whatever the server says of the end', () => {
    expect(ending(delta({ content: 'a' }), call(0, '{}', { id: 'c1' }), finish('stop'))).toMatchObject({
      delta: { stop_reason: 'tool_use' },
    })
  })

  it('X8: stops at the limit of tokens if arguments were cut off', () => {
    for (const reason of ['length', 'tool_calls', 'stop']) {
      expect(ending(call(0, '{"a":"unfin', { id: 'c1' }), finish(reason))).toMatchObject({ delta: { stop_reason: 'max_tokens' } })
    }
  })

  it('X9: is a refusal where the server has filtered', () => {
    expect(ending(delta({ content: 'a' }), finish('content_filter'))).toMatchObject({
      delta: { stop_reason: 'refusal', stop_details: { type: 'refusal' } },
    })
  })

  it.each(['stop_reason', 'matched_stop'])('X10: names a stop sequence that the server names in %s', (field) => {
    expect(ending(delta({ content: 'a' }), finish('stop', { [field]: 'END' }))).toMatchObject({
      delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
    })
    expect(ending(delta({ content: 'a' }), finish('stop', { [field]: 128_001 }))).toMatchObject({ delta: { stop_reason: 'end_turn' } })
  })

  it('X16: has an empty object where the arguments are an empty text', () => {
    expect(blocks(call(0, '', { id: 'c1' }), finish('tool_calls'))[1]).toEqual({ type: 'input_json_delta', partial_json: '{}' })
  })

  it('X22: counts cached tokens apart, and leaves out what the server does not count', () => {
    expect(ending(delta({ content: 'a' }), finish('stop'), USAGE)).toMatchObject({
      usage: { input_tokens: 5, cache_read_input_tokens: 15, output_tokens: 7 },
    })
    const plain = { choices: [], usage: { prompt_tokens: 20, completion_tokens: 7 } }
    expect(ending(delta({ content: 'a' }), finish('stop'), plain)).toHaveProperty('usage', { input_tokens: 20, output_tokens: 7 })
  })

  it('X22: waits for the last of several reports', () => {
    const early = { usage: { prompt_tokens: 20, completion_tokens: 1 } }
    expect(ending({ ...delta({ content: 'a' }), ...early }, { ...finish('stop'), ...early }, USAGE)).toMatchObject({
      usage: { input_tokens: 5, cache_read_input_tokens: 15, output_tokens: 7 },
    })
  })

  it('X22: has an estimate where the server counts no token', () => {
    const none = { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } }
    expect(ending(delta({ content: 'a' }), finish('stop'), none)).toHaveProperty('usage', { input_tokens: 12, output_tokens: 3 })
  })

  it('X22: shows a client nothing of a cache that it shares with others', () => {
    const stream = new MessageStream({ ...ASKED, hidesCached: true })
    const text = stream.push(delta({ content: 'a' }), 1) + stream.push(finish('stop'), 1) + stream.push(USAGE, 1)
    expect(checkMessageStream(text).at(-2)).toHaveProperty('usage', { input_tokens: 20, output_tokens: 7 })
  })

  it('X22: has estimates where the server reports no usage', () => {
    expect(ending(delta({ content: 'a' }), finish('stop'))).toHaveProperty('usage', { input_tokens: 12, output_tokens: 3 })
  })

  it('begins with the estimate of the prompt and one ping', () => {
    const [start, ping] = translated(delta({ content: 'a' }), finish('stop'))
    expect(start).toMatchObject({ message: { model: 'llama', usage: { input_tokens: 12 }, content: [] } })
    expect(ping).toEqual({ type: 'ping' })
  })

  it('takes pieces of a call with neither index nor id for the last call, and makes an id', () => {
    const piece = (fields: JsonObject): JsonObject => delta({ tool_calls: [{ function: fields }] })
    const [start, ...rest] = blocks(piece({ name: 'read', arguments: '{"a"' }), piece({ arguments: ':1}' }), finish('tool_calls'))
    expect(start).toMatchObject({ type: 'tool_use', name: 'read', id: expect.stringMatching(/^toolu_/) as string })
    expect(rest).toEqual([{ type: 'input_json_delta', partial_json: '{"a"' }, { type: 'input_json_delta', partial_json: ':1}' }, 'stop'])
  })

  it('holds arguments until the name of their call is known', () => {
    const nameless = delta({ tool_calls: [{ index: 0, id: 'c1', function: { arguments: '{"a"' } }] })
    const named = delta({ tool_calls: [{ index: 0, function: { name: 'read', arguments: ':1}' } }] })
    expect(blocks(nameless, named, finish('tool_calls'))[1]).toEqual({ type: 'input_json_delta', partial_json: '{"a":1}' })
  })

  it.each(['0', 'call_1'])('replaces the id %s, which comes again in the next turn, and still finds its call', (id) => {
    const piece = (args: string): JsonObject => delta({ tool_calls: [{ id, function: { name: 'read', arguments: args } }] })
    const [start, ...rest] = blocks(piece('{"a"'), piece(':1}'), finish('tool_calls'))
    expect(start).toMatchObject({ id: expect.stringMatching(/^toolu_/) as string })
    expect(rest).toHaveLength(3)
  })

  it('gives two calls with one id different ids', () => {
    const starts = blocks(call(0, '{}', { id: 'same' }), call(1, '{}', { id: 'same' }), finish('tool_calls'))
    const ids = starts.map((event) => (event as JsonObject).id).filter((id) => id !== undefined)
    expect(new Set(ids).size).toBe(2)
  })

  it('ignores a second end, and everything after the usage that follows the end', () => {
    const stream = new MessageStream(ASKED)
    stream.push(delta({ content: 'a' }), 1)
    stream.push(finish('stop'), 1)
    expect(stream.push(finish('length'), 1)).toBe('')
    expect(stream.push(USAGE, 1)).toContain('"stop_reason":"end_turn"')
    expect([stream.isEnded, stream.push(delta({ content: 'b' }), 1), stream.end(1)]).toEqual([true, '', ''])
  })

  it.each(['abort', 'error'])('fails at finish_reason %s, and without any', (reason) => {
    expect(() => translated(delta({ content: 'a' }), finish(reason))).toThrow(UnreadableAnswer)
    expect(() => translated(delta({ content: 'a' }))).toThrow(UnreadableAnswer)
  })
})
