import { expect, test } from 'vitest'
import { GatewayError } from '../errors.ts'
import { chatCompletions } from './chat-completions.ts'
import { readRequest } from './read-request.ts'
import { bytesFor } from './request-body.ts'

/** Options that stand twice: where usage is asked for, such a body is written anew. */
const TEXT =
  '{"model":"a", "stream":true, "messages":[{"role":"user","content":"hi"}], "stream_options":{"x":1}, "y":{"stream_options":{}}}'

function sent(isMetered: boolean): Buffer {
  const read = readRequest(Buffer.from(TEXT), chatCompletions, isMetered)
  if (read instanceof GatewayError) throw read
  return bytesFor(read.body, { upstreamModel: 'a', asksUsage: isMetered })
}

test('the stream of a call that nobody meters is asked for with the bytes of the client', () => {
  expect(sent(false).toString()).toBe(TEXT)
})

test('a metered call asks for the usage of its stream, and changes nothing else', () => {
  const asked = JSON.parse(TEXT) as object
  expect(JSON.parse(sent(true).toString())).toEqual({ ...asked, stream_options: { x: 1, include_usage: true } })
})
