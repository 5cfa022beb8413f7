import { expect, test } from 'vitest'
import { GatewayError } from '../errors.ts'
import { chatCompletions } from './chat-completions.ts'
import { readRequest } from './read-request.ts'
import { bytesFor } from './request-body.ts'

/** Duplicate options: a body with them is serialised again to request usage. */
const TEXT =
  '{"model":"a", "stream":true, "messages":[{"role":"user","content":"hi"}], "stream_options":{"x":1}, "y":{"stream_options":{}}}'

function sent(isMetered: boolean): Buffer {
  const read = readRequest(Buffer.from(TEXT), chatCompletions, isMetered)
  if (read instanceof GatewayError) throw read
  return bytesFor(read.body, { upstreamModel: 'a', asksUsage: isMetered })
}

test('an unmetered call requests its stream with the original bytes', () => {
  expect(sent(false).toString()).toBe(TEXT)
})

test('a metered call requests the usage of its stream, and changes nothing else', () => {
  const asked = JSON.parse(TEXT) as object
  expect(JSON.parse(sent(true).toString())).toEqual({ ...asked, stream_options: { x: 1, include_usage: true } })
})
