import { describe, expect, test } from 'vitest'
import { messages } from '../messages.ts'
import { GatewayError } from '../../errors.ts'
import { translateBody } from './translate-body.ts'

/** The arguments of the one call in the body of the server. @param input JSON */
function argumentsOf(input: string, more = ''): string {
  const call = `{"role":"assistant","content":[{"type":"text","text":"1234567890123456789"},{"type":"tool_use","id":"t","name":"find","input":${input}}]}`
  const result = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"found"}]}'
  const body = `{"model":"m","max_tokens":9,"messages":[${more}{"role":"user","content":"go"},${call},${result}]}`
  const translated = translateBody(Buffer.from(body), messages, { engine: 'VLLM' })
  if (translated instanceof GatewayError) throw translated
  const sent = JSON.parse(translated.body.bytes.toString()) as { messages: { tool_calls?: { function: { arguments: string } }[] }[] }
  return sent.messages.flatMap(({ tool_calls: calls = [] }) => calls)[0]?.function.arguments ?? ''
}

describe('the input of a tool call in a request', () => {
  test('keeps the digits of integers that no double holds, at any depth, and no other layout', () => {
    const input = '{ "id": 1234567890123456789, "n": 1.0, "at": [ { "x": -9007199254740993 } ], "s": "9007199254740993" }'
    expect(argumentsOf(input)).toBe('{"id":1234567890123456789,"n":1,"at":[{"x":-9007199254740993}],"s":"9007199254740993"}')
  })

  test('of several fields of one name has the last, as without such an integer', () => {
    expect(argumentsOf('{"a":1234567890123456781,"a":1234567890123456789}')).toBe('{"a":1234567890123456789}')
  })

  test('must be an object still', () => {
    expect(() => argumentsOf('1234567890123456789')).toThrow(
      expect.objectContaining({ row: expect.objectContaining({ id: 'invalidField' }) }),
    )
  })

  test('is rounded in a body of very many values, each of which would take time', () => {
    const many = `{"role":"user","content":[${'{"type":"text","text":"a"},'.repeat(20_000)}{"type":"text","text":"b"}]},`
    expect(argumentsOf('{"id":1234567890123456789}', many)).toBe('{"id":1234567890123456800}')
  })
})

test('a number that the gateway reads is a number whatever its digits are', () => {
  const body = '{"model":"m","max_tokens":12345678901234567890,"messages":[{"role":"user","content":"go"}]}'
  const translated = translateBody(Buffer.from(body), messages, { engine: 'VLLM', contextTokens: 1_000 })
  if (translated instanceof GatewayError) throw translated
  expect((JSON.parse(translated.body.bytes.toString()) as { max_tokens: number }).max_tokens).toBeLessThan(1_000)
})
