import { describe, expect, it } from 'vitest'
import {
  CHAT,
  deadAddress,
  HELLO,
  HELLO_STREAM,
  Harness,
  json,
  sse,
  startBackend,
  type Reply,
} from '../../test/support/upstream-harness.ts'

describe('one table assigns each failure to the client, the server or the gateway', () => {
  const tooLong = { message: "The input (9000 tokens) is longer than the model's context length (4096 tokens)." }
  const streamed =
    (error: object): Reply =>
    (response) =>
      sse(response).end(`data: ${JSON.stringify({ error })}\n\n`)
  interface Case {
    readonly reply: Reply
    readonly body?: object
    /** The answer to the client. */
    readonly row: number
    /** Another server is asked. */
    readonly isRetried?: true
    /** Five such answers in a row eject the server. */
    readonly isEjected?: true
  }
  const body = HELLO_STREAM
  const cases: readonly [string, Case][] = [
    ['a prompt that is too long, as a 500', { reply: json(500, { error: tooLong }), row: 30 }],
    ['the same for a stream', { reply: json(500, { error: tooLong }), body, row: 30 }],
    ['the same as the first event', { reply: streamed({ ...tooLong, code: 500 }), body, row: 30 }],
    ['a refused input in a 200', { reply: json(200, { error: { message: 'bad', code: 400 } }), row: 29 }],
    ['the same for a requested stream', { reply: json(200, { error: { message: 'bad', code: 400 } }), body, row: 29 }],
    ['the same as the first event', { reply: streamed({ message: 'bad', code: 400 }), body, row: 29 }],
    ['a 500', { reply: json(500, { error: 'broken' }), row: 32, isEjected: true }],
    ['a 500 as the first event', { reply: streamed({ message: 'broken', code: 500 }), body, row: 32, isEjected: true }],
    ['a 500 inside a 200', { reply: json(200, { error: { message: 'broken', code: 500 } }), row: 32, isEjected: true }],
    ['a 429', { reply: json(429, { error: 'slow down' }), row: 27, isRetried: true }],
    ['a 429 as the first event', { reply: streamed({ message: 'slow down', code: 429 }), body, row: 27, isRetried: true }],
    ['a gateway that finds itself in a ring', { reply: json(508, { error: { message: 'Loop detected' } }), row: 41 }],
    [
      'a model that the server does not know',
      { reply: json(404, { error: { message: 'model not found', code: 'model_not_found' } }), row: 39 },
    ],
    ['a 503', { reply: json(503, { error: 'busy' }), row: 27, isRetried: true, isEjected: true }],
    [
      'a 503 inside a 200',
      { reply: json(200, { error: { message: 'busy', code: 503 } }), body, row: 27, isRetried: true, isEjected: true },
    ],
  ]

  it.each(cases)('%s: the client gets its row, and retry and ejection follow from it', async (_what, given) => {
    const [first, second] = [await startBackend(given.reply), await startBackend(given.reply)]
    const gateway = await new Harness().start()
    gateway.serve([first.address, second.address])
    await gateway.post(CHAT, given.body ?? HELLO)
    expect(gateway.refusals[0]?.row.number).toBe(given.row)
    expect(first.received.length + second.received.length).toBe(given.isRetried ? 2 : 1)
    const alone = await new Harness().start()
    alone.serve([first.address])
    for (let count = 0; count < 5; count++) await alone.post(CHAT, given.body ?? HELLO)
    expect(alone.upstream.unhealthy()).toEqual(given.isEjected ? { 'uid-1/b0': { up: 0, total: 1 } } : {})
  })

  it.each([
    ['plain', HELLO, json(200, { choices: [] })],
    ['streamed', HELLO_STREAM, ((response) => sse(response).end('data: [DONE]\n\n')) as Reply],
  ])(
    'a connection that is refused, %s: row 26, another server is asked, and one such call ejects the server',
    async (_how, body, reply) => {
      const dead = await deadAddress()
      const alone = await new Harness().start()
      alone.serve([dead])
      await alone.post(CHAT, body)
      expect(alone.refusals[0]?.row.number).toBe(26)
      expect(alone.upstream.unhealthy()).toEqual({ 'uid-1/b0': { up: 0, total: 1 } })
      const live = await startBackend(reply)
      const gateway = await new Harness().start()
      gateway.serve([dead, live.address])
      for (let call = 0; call < 10; call += 1) expect(await gateway.post(CHAT, body)).toMatchObject({ status: 200 })
      expect([live.received.length, gateway.refusals]).toEqual([10, []])
    },
  )
})
