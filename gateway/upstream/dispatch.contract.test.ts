import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  CHAT,
  DONE,
  HELLO,
  HELLO_STREAM,
  Harness,
  MESSAGES,
  backendRecord,
  chunk,
  deadAddress,
  gatewayTo,
  json,
  modelRecord,
  sse,
  startBackend,
  until,
} from '../../test/support/upstream-harness.ts'

const SUM = 'ab'.repeat(32)

const OK = {
  id: 'c1',
  object: 'chat.completion',
  model: 'llama',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
}
const error = (text: string): { type: string; code: string; message: string } => JSON.parse(text).error

describe('a plain answer', () => {
  it('arrives byte for byte, with our request id and nothing of the backend but two headers', async () => {
    const text = `{ "odd" : [1,  2],"model":"llama","choices":[] }`
    const { gateway, backend } = await gatewayTo(
      json(200, text, { server: 'x', 'set-cookie': 'a=b', 'openai-processing-ms': '7', 'x-request-id': 'theirs' }),
    )
    const answer = await gateway.post(CHAT, HELLO)
    expect(answer.text).toBe(text)
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(text.length),
      'openai-processing-ms': '7',
    })
    expect(answer.headers).not.toHaveProperty('server')
    expect(answer.headers).not.toHaveProperty('set-cookie')
    expect(answer.headers['x-request-id']).toBe(backend.received[0]?.headers['x-request-id'])
    expect(answer.headers['request-id']).toBe(answer.headers['x-request-id'])
    expect(gateway.outcomes).toMatchObject([{ wasSent: true, error: undefined }])
    expect(gateway.exchanges[0]?.backend).toBe('b0')
  })

  it.each([
    ['text/html+json; charset=utf-7', OK],
    ['application/json; charset=utf-16', { ...OK, padding: 'x'.repeat(100_000) }],
  ])('has the content type of the gateway, not that of the server: %s', async (type, answer) => {
    const { gateway } = await gatewayTo((response) => response.writeHead(200, { 'content-type': type }).end(JSON.stringify(answer)))
    const { status, headers } = await gateway.post(CHAT, HELLO)
    expect([status, headers['content-type'], headers['x-content-type-options']]).toEqual([200, 'application/json', 'nosniff'])
  })

  it('the backend gets the unchanged body, at the path of the url followed by the path of the route', async () => {
    const body = '{"model" : "llama",\n "messages":[], "seed": 12345678901234567890}'
    const backend = await startBackend(json(200, OK))
    const gateway = await new Harness().start()
    gateway.put(modelRecord({ backends: [backendRecord({ url: `http://${backend.address}/base/` })] }))
    await gateway.post(CHAT, body)
    expect(backend.received[0]?.path).toBe('/base/v1/chat/completions')
    expect(backend.received[0]?.body.toString()).toBe(body)
    expect(backend.received[0]?.headers).toMatchObject({
      'content-length': String(body.length),
      'accept-encoding': 'identity',
      'content-type': 'application/json',
    })
  })

  it('credentials, cookies and claims of identity are not forwarded; that of the backend is', async () => {
    const backend = await startBackend(json(200, OK))
    const gateway = await new Harness({
      credentials: (sums) => sums && (sums.sum === SUM && sums.former === null ? 'tok-1' : undefined),
    }).start()
    gateway.serve([backend.address], {}, { credentialSum: SUM, formerCredentialSum: null })
    const sent = {
      authorization: 'Bearer sk-x',
      'x-api-key': 'sk-x',
      cookie: 'a=b',
      'x-forwarded-for': '1.2.3.4',
      'x-stainless-lang': 'js',
      'x-user': 'eve',
      'x-codex-turn': 'c',
      traceparent: 't',
    }
    await gateway.post(CHAT, HELLO, { ...sent, 'anthropic-version': '2023-06-01' })
    const { headers } = backend.received[0] ?? { headers: {} }
    expect(headers).toMatchObject({ authorization: 'Bearer tok-1', 'x-codex-turn': 'c', traceparent: 't' })
    for (const name of ['x-api-key', 'cookie', 'x-forwarded-for', 'x-stainless-lang', 'x-user', 'anthropic-version'])
      expect(headers).not.toHaveProperty(name)
  })

  it('a header that the model forwards reaches its servers as it was sent, and no other header does, nor those of another model', async () => {
    const backend = await startBackend(json(200, OK))
    const gateway = await new Harness().start()
    gateway.serve([backend.address], { forwardHeaders: ['x-conversation-id', 'x-trace'] })
    gateway.put(modelRecord({ uid: 'uid-2', servedName: 'other', backends: [backendRecord({ endpoints: [backend.address] })] }))
    const sent = { 'X-Conversation-Id': 'Conv 42; a=b', 'x-tenant': 'acme', 'x-conversation': 'no' }
    await gateway.post(CHAT, HELLO, sent)
    await gateway.post(CHAT, { ...HELLO, model: 'other' }, sent)
    const [own, other] = backend.received.map(({ headers }) => headers)
    expect(own).toMatchObject({ 'x-conversation-id': 'Conv 42; a=b' })
    expect(Object.keys(own ?? {}).toSorted()).toEqual([...Object.keys(other ?? {}), 'x-conversation-id'].toSorted())
    for (const name of ['x-tenant', 'x-conversation', 'x-trace']) expect(own).not.toHaveProperty(name)
  })

  it('a record that names credentials, the connection or the body makes none of them pass', async () => {
    const names = ['authorization', 'x-api-key', 'cookie', 'x-forwarded-for', 'x-user-id', 'content-language', 'x-access-token', 'x-tenant']
    const { gateway, backend } = await gatewayTo(json(200, OK), { model: { forwardHeaders: names } })
    await gateway.post(CHAT, HELLO, Object.fromEntries(names.map((name) => [name, 'planted'])))
    const passed = Object.entries(backend.received[0]?.headers ?? {}).filter(([, value]) => value === 'planted')
    expect(passed).toEqual([['x-tenant', 'planted']])
  })

  it('anthropic headers reach a native backend byte for byte', async () => {
    const { gateway, backend } = await gatewayTo(json(200, { type: 'message', model: 'llama', content: [] }))
    await gateway.post(MESSAGES, HELLO, { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'a-1,b-2' })
    expect(backend.received[0]).toMatchObject({
      path: '/v1/messages',
      headers: { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'a-1,b-2' },
    })
  })

  it('S14 the backend gets its own name for the model, and the client gets the requested name', async () => {
    const { gateway, backend } = await gatewayTo(json(200, { ...OK, model: 'org/Llama-3' }), {
      model: { aliases: ['fast'] },
      backend: { upstreamModel: 'org/Llama-3' },
    })
    const answer = await gateway.post(CHAT, { ...HELLO, model: 'fast' })
    expect(JSON.parse(backend.received[0]?.body.toString() ?? '')).toMatchObject({ model: 'org/Llama-3' })
    expect(JSON.parse(answer.text)).toMatchObject({ model: 'fast', choices: OK.choices })
    expect(answer.headers['content-length']).toBe(String(answer.text.length))
  })

  it.each([false, true])('that no writer can nest as deep ends its own request alone, compressed or not: gzip %s', async (isGzip) => {
    const deep = `{"model":"z","model":"z","choices":[],"x":${'['.repeat(8_000)}${']'.repeat(8_000)}}`
    const { gateway } = await gatewayTo((response) => {
      response.writeHead(200, { 'content-type': 'application/json', ...(isGzip ? { 'content-encoding': 'gzip' } : {}) })
      response.end(isGzip ? gzipSync(deep) : deep)
    })
    const answer = await gateway.post(CHAT, HELLO)
    expect([answer.status, JSON.parse(answer.text).error.message]).toEqual([502, expect.stringContaining('Backend error')])
  })

  it('a large answer contains the requested model name, and is not held back for the change', async () => {
    const text = (model: string): string =>
      JSON.stringify({ id: '1', usage: { model: 'inner' }, model, choices: [{ message: { content: 'é'.repeat(100_000) } }] })
    const { gateway } = await gatewayTo(json(200, text('org/up')), { backend: { upstreamModel: 'org/up' } })
    const answer = await gateway.post(CHAT, HELLO)
    expect(answer.text).toBe(text('llama'))
  })

  it('an answer that inflates to a thousand times its size ends its own request', async () => {
    const bomb = gzipSync(Buffer.concat([Buffer.from('{"model":"llama","x":"'), Buffer.alloc(40 * 2 ** 20, 'x'), Buffer.from('"}')]))
    const { gateway } = await gatewayTo((response) =>
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(bomb),
    )
    await expect(gateway.post(CHAT, HELLO)).rejects.toThrow('aborted')
    expect(gateway.outcomes[0]).toMatchObject({ wasSent: true, error: { row: { number: 32 } } })
  })
})

describe('errors of a backend', () => {
  it.each([
    ['vLLM', 400, { error: { message: 'bad top_k', type: 'BadRequestError', param: 'top_k', code: 400 } }, 'bad top_k'],
    ['SGLang', 400, { object: 'error', message: 'bad top_k', type: 'BadRequest', param: null, code: 400 }, 'bad top_k'],
    ['llama.cpp', 400, { error: { code: 400, message: 'bad grammar', type: 'invalid_request_error' } }, 'bad grammar'],
    ['Ollama', 400, { error: 'bad option' }, 'bad option'],
    ['TGI', 422, { error: 'bad parameter', error_type: 'validation' }, 'bad parameter'],
    ['FastAPI text', 422, { detail: 'bad thing' }, 'bad thing'],
    ['FastAPI list', 422, { detail: [{ msg: 'field required', loc: ['body', 'x'] }] }, 'field required'],
    ['a gateway in between', 400, { error: { message: '{"error":{"message":"bad inner","type":"x"}}' } }, 'bad inner'],
  ])('E6 the shape of %s becomes one envelope', async (_, status, body, message) => {
    const { gateway, backend } = await gatewayTo(json(status, body))
    const chat = await gateway.post(CHAT, HELLO)
    expect(chat.status).toBe(400)
    expect(JSON.parse(chat.text)).toMatchObject({ error: { message, type: 'invalid_request_error', code: null } })
    const messages = await gateway.post(MESSAGES, HELLO)
    expect(JSON.parse(messages.text)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error', message } })
    expect(backend.received).toHaveLength(2)
  })

  it.each([401, 403])('E7 a backend that refuses our credential with %d is 502 and final', async (status) => {
    const { gateway } = await gatewayTo(json(status, { error: { message: 'Invalid key sk-secret' } }))
    const answer = await gateway.post(CHAT, HELLO)
    expect(answer).toMatchObject({ status: 502, headers: { 'x-should-retry': 'false' } })
    expect(answer.text).not.toContain('secret')
    expect(error(answer.text)).toMatchObject({ code: 'upstream_auth' })
  })

  it('E8 a model without endpoints is 503 with a short Retry-After, and the next endpoint serves at once', async () => {
    const backend = await startBackend(json(200, OK))
    const gateway = await new Harness().start()
    gateway.put(modelRecord())
    const answer = await gateway.post(CHAT, HELLO)
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '2' } })
    expect(error(answer.text)).toMatchObject({ code: 'no_backend', message: 'No backend available for model llama' })
    gateway.serve([backend.address])
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 200 })
  })

  it('E8 a closed port is 503 too, and a new endpoint in its place serves at once', async () => {
    const address = await deadAddress()
    const gateway = await new Harness().start()
    gateway.serve([address])
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 503 })
    expect(gateway.upstream.unhealthy()).toEqual({ 'uid-1/b0': { up: 0, total: 1 } })
    const backend = await startBackend(json(200, OK))
    gateway.serve([backend.address])
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 200 })
    expect(gateway.upstream.unhealthy()).toEqual({})
  })

  it('E9 a silent backend is 504 after firstByteSeconds, in both dialects, streamed or not', async () => {
    const { gateway, backend } = await gatewayTo(() => undefined, {
      model: { timeouts: { firstByteSeconds: 8, idleSeconds: 600, totalSeconds: 600 } },
    })
    const startedMs = performance.now()
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 504 })
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(8 * 5 - 5)
    const streamed = await gateway.post(MESSAGES, HELLO_STREAM)
    expect(streamed.status).toBe(504)
    expect(JSON.parse(streamed.text)).toMatchObject({ error: { type: 'timeout_error', message: 'Backend timed out' } })
    await backend.aborted
  })

  it('E10 a backend that limits us is 503 or 529, never 429, and its Retry-After passes up to 60 s', async () => {
    const { gateway } = await gatewayTo(json(429, { error: 'slow down' }, { 'retry-after': '3600' }))
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 503, headers: { 'retry-after': '60' } })
    expect(await gateway.post(MESSAGES, HELLO)).toMatchObject({ status: 529 })
  })

  it('an ingress page never reaches a client', async () => {
    const page = '<html><body>nginx/1.2 10.0.0.7:8000</body></html>'
    for (const status of [200, 302, 404, 500]) {
      const { gateway } = await gatewayTo((response) => response.writeHead(status, { 'content-type': 'text/html' }).end(page))
      for (const body of [HELLO, HELLO_STREAM]) {
        const answer = await gateway.post(CHAT, body)
        expect(answer).toMatchObject({ status: 502, headers: { 'content-type': 'application/json' } })
        expect(answer.text).not.toContain('nginx')
      }
    }
  })

  it.each([
    ['500 in plain text', 500, 502, 'Backend error: Internal Server Error'],
    ['404 in plain text, of a server that lacks the route', 404, 400, 'The backend answered 404: Internal Server Error'],
  ])('the words of a %s reach the client', async (_, status, answered, message) => {
    const { gateway } = await gatewayTo((response) =>
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end('Internal Server Error\n'),
    )
    const { status: seen, text } = await gateway.post(CHAT, HELLO)
    expect([seen, JSON.parse(text).error.message]).toEqual([answered, message])
  })

  it.each([301, 302, 303, 307, 308])('a redirect (%i) is a failure of the server, and the gateway does not follow it', async (status) => {
    const elsewhere = await startBackend(json(200, OK))
    const { gateway } = await gatewayTo(json(status, {}, { location: `http://${elsewhere.address}/v1/chat/completions` }))
    for (const body of [HELLO, HELLO_STREAM]) {
      const answer = await gateway.post(CHAT, body)
      expect(answer.status).toBe(502)
      expect(answer.headers).not.toHaveProperty('location')
      expect(answer.text).not.toContain(elsewhere.address)
    }
    expect(elsewhere.received).toEqual([])
  })

  it.each(['not json', '[1]', ''])('a 200 whose body is %j is 502', async (text) => {
    const { gateway } = await gatewayTo(json(200, text))
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 502 })
  })

  it('a 200 that means an error is an error', async () => {
    const { gateway } = await gatewayTo(json(200, { error: { message: 'no such option', code: 400 } }))
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 400, text: expect.stringContaining('no such option') })
  })
})

describe('another backend', () => {
  it.each([429, 502, 503, 504])('is asked once after %d, and the client sees one answer', async (status) => {
    const bad = await startBackend(json(status, { error: 'busy' }))
    const good = await startBackend(json(200, OK))
    const gateway = await new Harness().start()
    gateway.serve([bad.address, good.address])
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 200 })
    expect([bad.received.length, good.received.length]).toEqual([1, 1])
    expect(gateway.exchanges[0]?.backend).toBe('b1')
  })

  it('is asked if the port of the first is closed, and if the first resets before its headers', async () => {
    const reset = await startBackend((response) => response.socket?.resetAndDestroy())
    const good = await startBackend(json(200, OK))
    const gateway = await new Harness().start()
    gateway.serve([await deadAddress(), good.address])
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 200 })
    gateway.serve([reset.address, good.address], { uid: 'uid-2', createdMs: 0 })
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 200 })
    expect(reset.received).toHaveLength(1)
  })

  it('is asked only once: a third is left alone', async () => {
    const backends = await Promise.all([503, 503, 200].map((status) => startBackend(json(status, OK))))
    const gateway = await new Harness().start()
    gateway.serve(backends.map(({ address }) => address))
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 503 })
    expect(backends.map(({ received }) => received.length)).toEqual([1, 1, 0])
  })

  it('of one backend is another endpoint', async () => {
    const bad = await startBackend(json(503, {}))
    const good = await startBackend(json(200, OK))
    const gateway = await new Harness().start()
    gateway.put(modelRecord({ backends: [backendRecord({ endpoints: [bad.address, good.address] })] }))
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 200 })
  })

  it('of a Messages request may need a translation', async () => {
    const bad = await startBackend(json(503, {}))
    const translate = await startBackend(json(200, { choices: [{ message: { content: 'hi' }, finish_reason: 'stop' }] }))
    const gateway = await new Harness().start()
    const backends = [
      backendRecord({ name: 'n', endpoints: [bad.address] }),
      backendRecord({ name: 't', endpoints: [translate.address], routes: ['chat/completions'] }),
    ]
    gateway.put(modelRecord({ backends }))
    expect(await gateway.post(MESSAGES, HELLO)).toMatchObject({ status: 200 })
    expect(translate.received.map(({ path }) => path)).toEqual([CHAT])
  })

  it('a backend whose credential is not mounted is skipped and reported', async () => {
    const { gateway, backend } = await gatewayTo(json(200, OK), { backend: { credentialSum: SUM, formerCredentialSum: null } })
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 503 })
    expect(gateway.upstream.unhealthy()).toEqual({ 'uid-1/b0': { up: 0, total: 1 } })
    expect(backend.received).toHaveLength(0)
  })
})

describe('a client that leaves', () => {
  it.each([HELLO, HELLO_STREAM])('S7 #36008 before the answer takes its upstream request with it', async (body) => {
    const { gateway, backend } = await gatewayTo(() => undefined)
    const socket = rawRequest(gateway, body)
    await until(() => backend.received.length === 1)
    socket.destroy()
    await backend.aborted
    await until(() => gateway.outcomes.length === 1)
    const usage = { inputTokens: Math.ceil(JSON.stringify(body).length / 4), cachedInputTokens: 0, outputTokens: 1, isEstimated: true }
    expect(gateway.outcomes[0]).toEqual({ usage, wasSent: false, error: undefined })
    expect(gateway.upstream.unhealthy()).toEqual({})
  })

  it('S7 in the middle of a stream ends the upstream request, and no other backend is asked', async () => {
    const backend = await startBackend((response) => sse(response).write(chunk('a')))
    const other = await startBackend((response) => sse(response).end(chunk('b', 'stop') + DONE))
    const gateway = await new Harness().start()
    gateway.serve([backend.address, other.address])
    const answer = await gateway.open(CHAT, HELLO_STREAM)
    await new Promise((resolve) => answer.once('data', resolve))
    answer.destroy()
    await backend.aborted
    await until(() => gateway.outcomes.length === 1)
    expect(gateway.outcomes[0]).toMatchObject({ usage: { outputTokens: 1, isEstimated: true }, wasSent: true, error: undefined })
    expect(other.received).toHaveLength(0)
  })
})

function rawRequest(gateway: Harness, body: object): ReturnType<typeof connect> {
  const text = JSON.stringify(body)
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: ${text.length}\r\n\r\n${text}`)
  return socket
}

describe('a shutdown', () => {
  it('W10 after its deadline, a request whose body is still on its way reaches no server and gets 503, as a request to a gateway that is not ready', async () => {
    const { gateway, backend } = await gatewayTo(json(200, OK))
    const request = httpRequest({ port: gateway.port, host: '127.0.0.1', path: CHAT, method: 'POST' })
    const body = JSON.stringify(HELLO)
    request.write(body.slice(0, 9))
    await until(() => gateway.exchanges.length === 1)
    const drained = gateway.drain(0)
    await until(() => gateway.exchanges[0]?.isInterrupted === true)
    request.end(body.slice(9))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    expect([response.statusCode, error(await text(response)).message]).toEqual([503, expect.stringContaining('shutting down')])
    expect(backend.received).toEqual([])
    await drained
  })
})
