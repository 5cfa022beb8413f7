import { describe, expect, test } from 'vitest'
import { GatewayError } from '../errors.ts'
import { MODEL_CHOOSING, readMessagesRequest } from './request-shape.ts'

const ASK = { model: 'llama', messages: [{ role: 'user', content: 'hi' }] }

/** Row and field of the refusal; undefined for a request that passes. */
function refusal(body: object): readonly [number, string | undefined] | undefined {
  const read = readMessagesRequest(body as Record<string, unknown>)
  return read instanceof GatewayError ? [read.row.number, read.params.field] : undefined
}

describe('a field that makes a server choose another model', () => {
  test.each([...MODEL_CHOOSING])('%s is refused', (field) => {
    expect(refusal({ ...ASK, [field]: ['other'] })).toEqual([42, field])
  })

  test('is refused in any spelling', () => {
    expect(refusal({ ...ASK, Models: ['other'] })).toEqual([42, 'Models'])
  })

  test('passes where it chooses nothing, and within other fields', () => {
    expect(refusal({ ...ASK, models: null, metadata: { route: 'x', models: ['y'] } })).toBeUndefined()
  })
})

test('a field with a NUL character in its name is refused, since parsers on C strings end it there', () => {
  expect(refusal({ ...ASK, 'model\0': 'other' })).toEqual([11, 'model\0'])
})
