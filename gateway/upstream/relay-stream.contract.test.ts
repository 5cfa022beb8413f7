import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  CHAT,
  DONE,
  HELLO_STREAM,
  Harness,
  MESSAGES,
  chunk,
  gatewayTo,
  readAll,
  sse,
  startBackend,
  until,
  type Reply,
} from '../../test/support/upstream-harness.ts'
import type { ModelRecord } from '#contract/records/model-record.ts'

const MESSAGE_START =
  'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"llama","content":[]}}\n\n'
const MESSAGE_TEXT = [
  'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}\n\n',
  'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
].join('')
const MESSAGE_END =
  'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'

type Backed = ReturnType<typeof gatewayTo>
/** On a slow machine no tick can interfere. */
const untimed = (reply: Reply, upstreamModel = 'llama'): Backed => gatewayTo(reply, { tickMs: 60_000, backend: { upstreamModel } })
/** A second passes each 5 ms. */
const hurried = (reply: Reply, model: Partial<ModelRecord> = {}): Backed => gatewayTo(reply, { model })

/** Writes each part in its own packet. */
async function writeParts(response: ServerResponse, parts: readonly Buffer[]): Promise<void> {
  for (const part of parts) {
    response.write(part)
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

/** Reads until `text` has arrived. */
async function readUntil(answer: IncomingMessage, text: string): Promise<string> {
  let seen = ''
  while (!seen.includes(text)) {
    const part: Buffer = await new Promise((resolve) => answer.once('data', resolve))
    seen += part.toString('utf8')
  }
  return seen
}

function lastError(text: string): { message: string; type: string; code: string } {
  const frames = text.split('\n\n').filter((frame) => frame.includes('"error"'))
  expect(frames).toHaveLength(1)
  return JSON.parse(frames[0]?.replace(/^[^]*data: /, '') ?? '').error
}

describe('a successful stream', () => {
  it('S1 a stream cut at every byte arrives byte-equal', async () => {
    const text = `: hello\r\n\r\n${chunk('grüße 🐟')}data:{"x":1}\r\n\r\nid: 7\ndata: a\ndata: b\n\n\n\n${chunk('x\r', 'stop').replaceAll('\n', '\r')}${DONE}`
    const { gateway } = await untimed((response) => {
      const bytes = Buffer.from(text)
      void writeParts(
        sse(response),
        Array.from(bytes, (_, i) => bytes.subarray(i, i + 1)),
      )
    })
    expect((await gateway.post(CHAT, HELLO_STREAM)).text).toBe(text)
  })

  it('has the headers of a stream, whatever headers the backend has sent', async () => {
    const { gateway } = await untimed((response) => {
      response
        .writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'max-age=3', 'x-powered-by': 'y' })
        .end(chunk('a', 'stop') + DONE)
    })
    const { headers } = await gateway.post(CHAT, HELLO_STREAM)
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    })
    expect(headers['request-id']).toBe(headers['x-request-id'])
    expect(headers).not.toHaveProperty('x-powered-by')
  })

  it('S5 a finish without [DONE] is completed with exactly that', async () => {
    const { gateway } = await untimed((response) => sse(response).end(chunk('a') + chunk('', 'stop')))
    expect((await gateway.post(CHAT, HELLO_STREAM)).text).toBe(chunk('a') + chunk('', 'stop') + DONE)
    expect(gateway.outcomes[0]).toMatchObject({ wasSent: true, error: undefined })
  })

  it('S5 an end marker without its last line end counts', async () => {
    const { gateway } = await untimed((response) => sse(response).end(`${chunk('a')}data: [DONE]`))
    expect((await gateway.post(CHAT, HELLO_STREAM)).text).toBe(chunk('a') + DONE)
  })

  it('S8 retry lines and events without data never reach a client; comments do', async () => {
    const { gateway } = await untimed((response) =>
      sse(response).end(`retry: 3000\n\n: ok\n\nevent: ping\n\n${chunk('a', 'stop')}retry: 1\n\n${DONE}`),
    )
    expect((await gateway.post(CHAT, HELLO_STREAM)).text).toBe(`: ok\n\n${chunk('a', 'stop')}${DONE}`)
  })

  it('S9 a compressed answer arrives plain', async () => {
    const text = chunk('a') + chunk('b', 'stop') + DONE
    const { gateway, backend } = await untimed((response) => {
      const bytes = gzipSync(text)
      response
        .writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip', 'content-length': bytes.length })
        .end(bytes)
    })
    const answer = await gateway.post(CHAT, HELLO_STREAM, { 'accept-encoding': 'gzip' })
    expect(answer.text).toBe(text)
    expect(answer.headers).not.toHaveProperty('content-encoding')
    expect(answer.headers).not.toHaveProperty('content-length')
    expect(backend.received[0]?.headers['accept-encoding']).toBe('identity')
  })

  it('an event that no writer can nest as deep ends its own stream alone, compressed as well', async () => {
    const deep = `data: {"model":"z","model":"z","choices":[],"x":${'['.repeat(8_000)}${']'.repeat(8_000)}}\n\n`
    const { gateway } = await untimed((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }).end(gzipSync(deep))
    })
    const answer = await gateway.post(CHAT, HELLO_STREAM)
    expect([answer.status, JSON.parse(answer.text).error.message]).toEqual([502, expect.stringContaining('Backend error')])
  })

  it('S14 with another name upstream every frame shows the name asked for', async () => {
    const text = chunk('the "model" is "model": "x"', null, 'org/up') + chunk('', 'stop', 'org/up') + DONE
    const { gateway } = await untimed((response) => sse(response).end(text), 'org/up')
    expect((await gateway.post(CHAT, HELLO_STREAM)).text).toBe(text.replaceAll('"model":"org/up"', '"model":"llama"'))
  })

  it('S14 with another name upstream message_start shows the name asked for', async () => {
    const text = MESSAGE_START.replace('"llama"', '"org/up"') + MESSAGE_TEXT + MESSAGE_END
    const { gateway } = await untimed((response) => sse(response).end(text), 'org/up')
    expect((await gateway.post(MESSAGES, HELLO_STREAM)).text).toBe(MESSAGE_START + MESSAGE_TEXT + MESSAGE_END)
  })

  it('S14 with equal names the bytes are untouched', async () => {
    const text = chunk('a \\u0061', null, 'llama') + 'data:  {"odd" : 1}\r\n\r\n' + chunk('', 'stop', 'llama') + DONE
    const { gateway } = await untimed((response) => sse(response).end(text))
    expect((await gateway.post(CHAT, HELLO_STREAM)).text).toBe(text)
  })

  it('S14 a server with another name for the model shows the requested name', async () => {
    const text = chunk('a', null, 'tiny') + chunk('b', 'stop', 'tiny') + DONE
    const { gateway } = await untimed((response) => sse(response).end(text))
    expect((await gateway.post(CHAT, HELLO_STREAM)).text).toBe(text.replaceAll('"model":"tiny"', '"model":"llama"'))
  })

  it('bytes after the end marker are dropped, and the connection is used again', async () => {
    const sockets = new Set<unknown>()
    const open: ServerResponse[] = []
    const { gateway } = await untimed((response) => {
      sockets.add(response.socket)
      open.push(sse(response))
      response.write(chunk('a', 'stop') + DONE + chunk('b'))
    })
    for (let i = 0; i < 2; i++) {
      const answer = await gateway.open(CHAT, HELLO_STREAM)
      expect((await readAll(answer)).toString()).toBe(chunk('a', 'stop') + DONE)
      answer.destroy()
      await new Promise((resolve) => open[i]?.end(chunk('c'), () => resolve(undefined))) // the client has already left
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    expect(sockets.size).toBe(1)
  })
})

describe('a silent stream', () => {
  it('S10 sends its head and a comment within 16 s, before the backend has said a word', async () => {
    const { gateway } = await hurried(() => undefined)
    const answer = await gateway.open(CHAT, HELLO_STREAM)
    expect(answer).toMatchObject({ statusCode: 200, headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
    expect(await readUntil(answer, ': keep-alive\n\n: keep-alive\n\n')).toBe(': keep-alive\n\n: keep-alive\n\n')
    answer.destroy()
  })

  it('S10 is kept alive between its events in the way of its dialect', async () => {
    const { gateway } = await hurried((response) => sse(response).write(MESSAGE_START))
    const answer = await gateway.open(MESSAGES, HELLO_STREAM)
    expect(await readUntil(answer, 'ping')).toBe(`${MESSAGE_START}event: ping\ndata: {"type":"ping"}\n\n`)
    answer.destroy()
  })

  it('S10 a head without an event counts as silence: the client gets comments, and a late error is a frame', async () => {
    const { gateway } = await hurried((response) => sse(response).flushHeaders(), {
      timeouts: { firstByteSeconds: 30, idleSeconds: 600, totalSeconds: 600 },
    })
    const { status, text } = await gateway.post(CHAT, HELLO_STREAM)
    expect(status).toBe(200)
    expect(text.startsWith(': keep-alive\n\n')).toBe(true)
    expect(lastError(text)).toMatchObject({ message: 'Backend timed out', code: 'upstream_timeout' })
    expect(text.endsWith(DONE)).toBe(true)
    expect(gateway.outcomes[0]?.error?.row.number).toBe(33)
  })

  it('that falls silent for idleSeconds ends with one error frame', async () => {
    const { gateway, backend } = await hurried((response) => sse(response).write(chunk('a')), {
      timeouts: { firstByteSeconds: 600, idleSeconds: 4, totalSeconds: 600 },
    })
    const { text } = await gateway.post(CHAT, HELLO_STREAM)
    expect(text.startsWith(chunk('a'))).toBe(true)
    expect(lastError(text)).toMatchObject({ message: 'Backend timed out' })
    await backend.aborted
  })

  it('that never ends by itself ends after totalSeconds', async () => {
    const { gateway } = await hurried(
      (response) => {
        sse(response)
        const timer = setInterval(() => response.write(chunk('a')), 2)
        response.on('close', () => clearInterval(timer))
      },
      { timeouts: { firstByteSeconds: 600, idleSeconds: 600, totalSeconds: 6 } },
    )
    expect(lastError((await gateway.post(CHAT, HELLO_STREAM)).text)).toMatchObject({ message: 'Backend timed out' })
  })
})

describe('a stream that fails', () => {
  it.each([':\n\n', 'data:\n\n', 'data: \n\n', 'event: x\n\n'])(
    'with only %j is ended after two hundred within a second',
    async (event) => {
      const { gateway } = await untimed((response) => sse(response).end(event.repeat(5_000)))
      expect(await gateway.post(CHAT, HELLO_STREAM)).toMatchObject({ status: 502 })
      expect(String(gateway.refusals[0]?.params.reason)).toContain('empty events')
    },
  )

  it.each([
    ['vLLM', 'data: {"error":{"message":"engine dead at 10.0.0.7:8000","type":"InternalServerError","code":500}}\n\ndata: [DONE]\n\n'],
    [
      'llama.cpp',
      'error: x\n\ndata: {"error":{"code":500,"message":"engine dead at http://llama.shop.svc:8000/x","type":"server_error"}}\n\n',
    ],
    ['TGI', 'data: {"error":{"message":"engine dead at <b>10.0.0.7</b>","http_status_code":500}}\n\ndata: [DONE]\n\n'],
    ['SGLang', 'data: {"object":"error","message":"engine dead at 10.0.0.7","type":"x","code":500}\n\n'],
  ])('S4 the error of %s in the middle becomes one frame and the end', async (_, frame) => {
    const { gateway } = await hurried((response) => sse(response).end(chunk('a') + frame))
    const { text } = await gateway.post(CHAT, HELLO_STREAM)
    expect(text.startsWith(chunk('a'))).toBe(true)
    expect(lastError(text)).toMatchObject({
      message: 'Backend error: engine dead at [host]',
      type: 'server_error',
      code: 'upstream_error',
      param: null,
    })
    expect(text.endsWith(`\n\n${DONE}`)).toBe(true)
    expect(text.split(DONE)).toHaveLength(2)
    expect(text).not.toMatch(/10\.0\.0\.7|shop/)
  })

  it('S4 on messages it is one error event, without message_stop', async () => {
    const { gateway } = await untimed((response) =>
      sse(response).end(`${MESSAGE_START}event: error\ndata: {"message":"dead","code":500}\n\n`),
    )
    const { text } = await gateway.post(MESSAGES, HELLO_STREAM)
    const [, ...frames] = text.split('\n\n')
    expect(frames[0]).toMatch(
      /^event: error\ndata: \{"type":"error","error":\{"type":"api_error","message":"Backend error: dead"\},"request_id":"req_/,
    )
    expect(frames.slice(1)).toEqual([''])
  })

  it.each([
    ['S5 a clean end without finish_reason and [DONE]', (response: ServerResponse) => response.end()],
    ['S4 a reset', (response: ServerResponse) => response.socket?.resetAndDestroy()],
    ['S4 half an event', (response: ServerResponse) => response.end('data: {"choices":[{"del')],
  ])('%s is a failure with one frame', async (_, end) => {
    const { gateway } = await untimed((response) => sse(response).write(chunk('a'), () => end(response)))
    const { text } = await gateway.post(CHAT, HELLO_STREAM)
    expect(text.startsWith(chunk('a'))).toBe(true)
    expect(lastError(text)).toMatchObject({ code: 'upstream_error', message: expect.stringMatching(/^Backend error/) })
    expect(text.endsWith(DONE)).toBe(true)
    expect(gateway.outcomes[0]).toMatchObject({ wasSent: true, error: { row: { number: 35 } } })
  })

  it('S5 a clean end after chunks whose finish_reason is empty is a failure', async () => {
    const { gateway } = await untimed((response) => sse(response).end(chunk('a', '') + chunk('b', '')))
    expect(lastError((await gateway.post(CHAT, HELLO_STREAM)).text)).toMatchObject({ code: 'upstream_error' })
  })

  const choiceOf = (index: number, finish: string | null) => chunk('a', finish).replace('"index":0', `"index":${index}`)
  it.each([
    ['one of two answers', [choiceOf(0, null), choiceOf(1, null), choiceOf(0, 'stop')]],
    ['one of two answers, whose end came twice', [choiceOf(1, null), choiceOf(0, 'stop'), choiceOf(0, 'stop')]],
    ['the first answer, before the second began', [choiceOf(0, null), choiceOf(0, 'stop')]],
  ])('S5 a clean end after the end of %s is a failure', async (_, chunks) => {
    const { gateway } = await untimed((response) => sse(response).end(chunks.join('')))
    const { text } = await gateway.post(CHAT, { ...HELLO_STREAM, n: 2 })
    expect(lastError(text)).toMatchObject({ code: 'upstream_error' })
    expect(gateway.outcomes[0]).toMatchObject({ wasSent: true, error: { row: { number: 35 } } })
  })

  it.each([
    ['a clean end after the ends of both answers', [choiceOf(0, null), choiceOf(1, 'length'), choiceOf(0, 'stop')]],
    ['an end marker, which a server sends that makes one answer whatever was asked', [choiceOf(0, 'stop'), DONE]],
  ])('S5 %s is none', async (_, chunks) => {
    const { gateway } = await untimed((response) => sse(response).end(chunks.join('')))
    const { text } = await gateway.post(CHAT, { ...HELLO_STREAM, n: 2 })
    expect(text).toBe(`${chunks.join('').replace(DONE, '')}${DONE}`)
    expect(gateway.outcomes[0]).toMatchObject({ error: undefined })
  })

  it('S5 a Messages stream that ends without message_stop is a failure', async () => {
    const [messageDelta] = MESSAGE_END.split('event: message_stop')
    const { gateway } = await untimed((response) => sse(response).end(MESSAGE_START + MESSAGE_TEXT + messageDelta))
    expect((await gateway.post(MESSAGES, HELLO_STREAM)).text).toContain('event: error')
  })

  it('S13 an error as the first frame is an HTTP error', async () => {
    const { gateway } = await untimed((response) =>
      sse(response).end('data: {"error":{"message":"top_k is bad","code":400}}\n\ndata: [DONE]\n\n'),
    )
    const answer = await gateway.post(CHAT, HELLO_STREAM)
    expect(answer).toMatchObject({ status: 400, headers: { 'content-type': 'application/json' } })
    expect(JSON.parse(answer.text)).toMatchObject({ error: { message: 'top_k is bad', type: 'invalid_request_error' } })
  })

  it.each([
    ['an error as the first frame', (response: ServerResponse) => sse(response).end('data: {"error":{"message":"dead","code":503}}\n\n')],
    ['an end without a frame', (response: ServerResponse) => sse(response).end(': hi\n\n')],
    ['a reset after the head', (response: ServerResponse) => sse(response).write(': hi\n\n', () => response.socket?.resetAndDestroy())],
  ])('S13 after %s another backend answers, and nothing of the first shows', async (_, reply) => {
    const bad = await startBackend(reply)
    const good = await startBackend((response) => sse(response).end(chunk('good', 'stop') + DONE))
    const gateway = await new Harness().start()
    gateway.serve([bad.address, good.address])
    expect(await gateway.post(CHAT, HELLO_STREAM)).toMatchObject({ status: 200, text: chunk('good', 'stop') + DONE })
    expect([bad.received.length, good.received.length]).toEqual([1, 1])
  })

  it('an event over 1 MiB ends the stream, before the first byte as an HTTP error', async () => {
    const huge = `data: {"x":"${'x'.repeat(1_100_000)}`
    const first = await untimed((response) => void sse(response).write(huge))
    expect(await first.gateway.post(CHAT, HELLO_STREAM)).toMatchObject({ status: 502 })
    const later = await untimed((response) => void sse(response).write(chunk('a') + huge))
    expect(lastError((await later.gateway.post(CHAT, HELLO_STREAM)).text)).toMatchObject({
      message: 'Backend error: an event of its stream is too large',
    })
  })
})

describe('a stream under pressure', () => {
  it('S12 a client that stops reading pauses the backend and is closed after idleSeconds', async () => {
    let written = 0
    const { gateway, backend } = await hurried(
      (response) => {
        sse(response)
        const event = Buffer.from(chunk('x'.repeat(60_000)))
        const more = (): void => {
          do written += event.length
          while (response.write(event) && !response.destroyed)
        }
        response.on('drain', more)
        more()
      },
      { timeouts: { firstByteSeconds: 600, idleSeconds: 40, totalSeconds: 600 } },
    )
    const answer = await gateway.open(CHAT, HELLO_STREAM)
    answer.pause()
    const broken = new Promise((resolve) => answer.once('error', resolve))
    await backend.aborted
    const afterPause = written
    expect(afterPause).toBeLessThan(30_000_000) // what the socket buffers of the kernel take; without a pause it would be endless
    answer.resume()
    await broken
    expect(gateway.outcomes[0]).toMatchObject({ wasSent: true, error: undefined })
  })

  it('S12 a slow client gets every byte in order', async () => {
    const events = Array.from({ length: 60 }, (_, i) => chunk(`${i}-${'x'.repeat(50_000)}`))
    const text = events.join('') + chunk('', 'stop') + DONE
    const { gateway } = await hurried((response) => sse(response).end(text))
    const answer = await gateway.open(CHAT, HELLO_STREAM)
    answer.pause()
    await until(() => answer.readableLength > 0)
    await new Promise((resolve) => setTimeout(resolve, 30))
    const keptAlive = /^:.*\n\n/gm
    expect((await readAll(answer)).toString().replace(keptAlive, '') === text).toBe(true)
  })

  it('S11 at the deadline of a shutdown open streams end with one frame, finished ones are whole, waiting ones get row 24', async () => {
    const { gateway } = await untimed((response, { body }) => {
      const kind = JSON.parse(body.toString()).kind as string
      if (kind === 'silent') return
      sse(response).write(chunk('a'))
      if (kind === 'short') setImmediate(() => response.end(chunk('', 'stop') + DONE))
    })
    const open = await Promise.all(Array.from({ length: 20 }, () => gateway.open(CHAT, { ...HELLO_STREAM, kind: 'long' })))
    const short = gateway.post(CHAT, { ...HELLO_STREAM, kind: 'short' })
    const silent = gateway.post(MESSAGES, { ...HELLO_STREAM, kind: 'silent' })
    await short
    await gateway.drain(20)
    expect((await short).text).toBe(chunk('a') + chunk('', 'stop') + DONE)
    expect(await silent).toMatchObject({ status: 503, headers: { connection: 'close' } })
    for (const answer of open) {
      const text = (await readAll(answer)).toString()
      expect(lastError(text)).toMatchObject({ message: 'The gateway is shutting down; this answer is not complete' })
      expect(text.endsWith(DONE)).toBe(true)
    }
  })
})
