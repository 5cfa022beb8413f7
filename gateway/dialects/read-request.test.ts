import { describe, expect, test } from 'vitest'
import { GatewayError } from '../errors.ts'
import { chatCompletions } from './chat-completions.ts'
import { hasTooManyParts, readRequest } from './read-request.ts'

const repeated = (part: string, count: number): Buffer => Buffer.from(`{"model":"m","messages":[${part.repeat(count)}]}`)

describe('a body has too many parts', () => {
  test.each([
    ['empty objects', repeated('{},', 150_000)],
    ['arrays that only open', Buffer.from('['.repeat(200_001))],
    ['distinct keys', Buffer.from(`{${Array.from({ length: 200_002 }, (_, i) => `"k${i}":1`).join(',')}}`)],
    ['numbers', repeated('1,', 200_001)],
  ])('when it holds hundreds of thousands of %s', (_what, bytes) => {
    expect(hasTooManyParts(bytes)).toBe(true)
  })

  test.each([
    ['a long text full of brackets, commas, quotes and escapes', repeated(JSON.stringify('{[,"\\'.repeat(200_000)), 1)],
    ['an image in base64', repeated(`"${'a'.repeat(8 * 2 ** 20)}"`, 1)],
    ['ten thousand messages', repeated('{"role":"user","content":[{"type":"text","text":"a, b"}]},', 10_000)],
    ['a text of escaped quotes and backslashes', repeated(`"${'\\\\\\"{,'.repeat(200_000)}"`, 1)],
    ['a text that never ends', Buffer.from(`{"a":"${'x,'.repeat(300_000)}`)],
  ])('but not when it is %s', (_what, bytes) => {
    expect(hasTooManyParts(bytes)).toBe(false)
  })
})

test('a body has at most a thousand fields at its top level', () => {
  const withFields = (count: number) => {
    const more = Array.from({ length: count - 2 }, (_, at) => [`k${at}`, 1] as const)
    return readRequest(
      Buffer.from(JSON.stringify({ model: 'm', messages: [{ content: '' }], ...Object.fromEntries(more) })),
      chatCompletions,
    )
  }
  expect(withFields(1_000)).toMatchObject({ fields: expect.toSatisfy((fields: string[]) => fields.length === 1_000) })
  const refused = withFields(1_001)
  expect(refused).toBeInstanceOf(GatewayError)
  expect(refused).toMatchObject({ row: { id: 'invalidJson' }, params: { reason: 'too many fields at its top level' } })
})
