import { once } from 'node:events'
import { ErrorSender } from './http/send-error.ts'
import { afterEach, describe, expect, test } from 'vitest'
import { ActiveExchanges } from './http/active-exchanges.ts'
import { BodyBudget } from './http/body-budget.ts'
import { LoadGuard } from './http/load-guard.ts'
import { modelRecord, startFront, type FrontGateway, type FrontOptions } from '../test/support/front-gateway.ts'
import { openRaw, readAnswer } from '../test/support/raw-http.ts'
import type { ForwardJob, Outcome } from './upstream/forward-job.ts'

let front: FrontGateway

async function start(options: FrontOptions = {}): Promise<void> {
  front = await startFront(options)
}

afterEach(() => front.stop())

async function call(path: string, init: RequestInit = {}): Promise<{ status: number; headers: Headers; text: string }> {
  const response = await fetch(front.base + path, init)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

function post(key: string, body: unknown): RequestInit {
  return { method: 'POST', headers: { authorization: `Bearer ${key}` }, body: JSON.stringify(body) }
}

const ASK = { model: 'llama', messages: [{ role: 'user', content: 'hi' }] }

/** A chat completion request as HTTP/1.1 bytes. */
function asked(key: string): string {
  const text = JSON.stringify(ASK)
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${text.length}\r\n\r\n${text}`
}

/** A backend that answers when the test releases it. */
function heldBackend() {
  const { promise, resolve: release } = Promise.withResolvers<void>()
  let closed = 0
  const forward = async ({ exchange: { response } }: ForwardJob): Promise<Outcome> => {
    response.on('close', () => (closed += 1))
    await promise
    response.end('{}')
    return { usage: undefined, wasSent: true, error: undefined }
  }
  return { forward, release, closed: () => closed }
}

describe('a request that Express cannot read', () => {
  test.each([
    ['GET http://[x/ HTTP/1.1\r\nhost: x', 'its target is neither a path nor a URL'],
    ['GET http://[::1 HTTP/1.1\r\nhost: x', 'its target is neither a path nor a URL'],
    ['GET http:// HTTP/1.1\r\nhost: x', 'its target is neither a path nor a URL'],
    ['OPTIONS * HTTP/1.1\r\nhost: x', 'its target is neither a path nor a URL'],
    ['OPTIONS * HTTP/1.0\r\nx: without a host', 'its target is neither a path nor a URL'],
    ['GET /v1/models HTTP/1.1\r\nx: without a host', 'HTTP/1.1 requires one Host header'],
  ])('%j is answered with JSON and the reason', async (head, reason) => {
    await start()
    const answer = await readAnswer(openRaw(front.port, `${head}\r\n\r\n`))
    expect([answer.status, answer.headers['content-type']]).toEqual([400, 'application/json'])
    expect(JSON.parse(answer.body).error.message).toBe(`Malformed HTTP request: ${reason}`)
    expect(answer.headers['x-request-id']).toMatch(/^req_/)
  })

  test('a target in absolute form, and HTTP/1.0 without Host, are readable', async () => {
    await start()
    for (const head of ['GET http://any.where/ HTTP/1.1\r\nhost: x', 'GET / HTTP/1.0\r\nconnection: close'])
      expect((await readAnswer(openRaw(front.port, `${head}\r\n\r\n`))).status).toBe(200)
  })
})

describe('paths and methods', () => {
  test.each(['/v1/chat/completions', '/v1/messages', '/v1/v1/messages', '/v1/messages?beta=true'])(
    'a call of %s reaches a backend',
    async (path) => {
      await start()
      const answer = await call(path, post(front.issue(), ASK))
      expect([answer.status, answer.text]).toEqual([200, '{"model":"llama"}'])
      expect(front.jobs[0]?.dialect.path).toBe(path.includes('chat') ? '/v1/chat/completions' : '/v1/messages')
    },
  )

  test.each(['/nothing', '/v1/chat/completions/', '/v1/Chat/completions', '/v1/models/', '/v1/moderations', '/V1/models', '/favicon.ico'])(
    'E17 %s is unknown and answered as OpenAI clients read it',
    async (path) => {
      await start()
      const { status, headers, text } = await call(path)
      expect(status).toBe(404)
      expect(headers.get('content-type')).toBe('application/json')
      expect(headers.get('x-should-retry')).toBe('false')
      expect(JSON.parse(text)).toEqual({
        error: { message: expect.stringMatching(/^Invalid URL/), type: 'invalid_request_error', param: null, code: null },
      })
    },
  )

  test.each(['/v1/messages/batches', '/v1/messages/', '/v1/v1/nothing'])(
    'E17 %s is unknown and answered as Anthropic clients read it',
    async (path) => {
      await start()
      const { status, headers, text } = await call(path, { method: 'POST' })
      expect(status).toBe(404)
      expect(JSON.parse(text)).toEqual({
        type: 'error',
        error: { type: 'not_found_error', message: expect.stringMatching(/^Invalid URL/) },
        request_id: headers.get('request-id'),
      })
    },
  )

  test.each(['GET', 'HEAD'])('%s / answers 200 and says in one line that this is a gateway, without a version', async (method) => {
    await start()
    const { status, headers, text } = await call('/', { method })
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(text).toMatch(method === 'HEAD' ? /^$/ : /^[^\n\d]*\/v1\/models[^\n\d]*\n$/)
    for (const name of ['server', 'x-powered-by', 'etag']) expect(headers.has(name)).toBe(false)
  })
})

describe('every answer', () => {
  test.each([
    ['/', {}],
    ['/nothing', {}],
    ['/v1/models', {}],
    ['/v1/messages', { method: 'POST' }],
    ['/v1/messages', { method: 'GET' }],
  ])('E11 names its request twice, the same way (%s)', async (path, init) => {
    await start()
    const { headers, text } = await call(path, { ...init, headers: { 'x-request-id': 'mine' } })
    const id = headers.get('x-request-id')
    expect(id).toMatch(/^req_[0-9a-f-]{36}$/)
    expect(headers.get('request-id')).toBe(id)
    if (path === '/v1/messages') expect(JSON.parse(text)).toMatchObject({ request_id: id })
  })
})

describe('trouble of ours', () => {
  test('a gateway that is starting or shutting down answers 503 and closes the connection, never 401', async () => {
    await start({ app: { isServing: () => false } })
    const { status, headers, text } = await call('/v1/chat/completions', { method: 'POST' })
    expect([status, headers.get('retry-after'), headers.get('retry-after-ms'), headers.get('connection')]).toEqual([
      503,
      '1',
      '1000',
      'close',
    ])
    expect(headers.has('x-should-retry')).toBe(false)
    expect(JSON.parse(text)).toMatchObject({ error: { code: 'not_ready', type: 'service_unavailable_error' } })
  })

  test('an overloaded gateway sheds with 503 on OpenAI and 529 on Anthropic routes, and counts what it took', async () => {
    const active = new ActiveExchanges()
    const load = new LoadGuard(() => active.calls, { maxCalls: 1, maxLoopDelayMs: 1000, windowMs: 60_000 })
    const { forward, release } = heldBackend()
    await start({
      app: { active, isOverloaded: () => load.isOverloaded, admitted: (exchange, owner) => active.admit(exchange, owner) },
      forward,
    })
    const first = call('/v1/chat/completions', post(front.issue(), ASK))
    await expect.poll(() => front.jobs.length).toBe(1)
    const [chat, native] = [
      await call('/v1/chat/completions', post(front.issue(), ASK)),
      await call('/v1/messages', post(front.issue(), ASK)),
    ]
    expect([chat.status, native.status, native.headers.get('retry-after')]).toEqual([503, 529, '1'])
    expect((await call('/v1/chat/completions', { method: 'POST' })).status).toBe(401) // who is unknown can neither fill it nor ask about it
    expect((await call('/')).status).toBe(200)
    release()
    expect((await first).status).toBe(200)
    await expect.poll(() => load.isOverloaded).toBe(false)
    load.stop()
  })

  test('a bug answers 500 without its cause, and keeps the cause for the log', async () => {
    const cause = new TypeError('secret inside')
    await start({ forward: () => Promise.reject(cause) })
    const { status, text } = await call('/v1/messages', post(front.issue(), ASK))
    expect(status).toBe(500)
    expect(JSON.parse(text)).toMatchObject({ error: { type: 'api_error', message: 'Internal error' } })
    expect(front.finished[0]?.error?.cause).toBe(cause)
  })

  test('a bug in an error answer cuts its connection, and the next call is answered', async () => {
    const errors = new ErrorSender()
    const send = errors.send.bind(errors)
    let isBroken = true
    errors.send = (exchange, error) => {
      if (isBroken) throw new TypeError('boom')
      send(exchange, error)
    }
    await start({ errors, forward: () => Promise.reject(new TypeError('bug')) })
    for (const path of ['/v1/messages', '/v1/messages?beta=true', '/v1/unknown']) {
      await expect(call(path, post(front.issue(), ASK)), path).rejects.toThrow()
    }
    isBroken = false
    expect((await call('/v1/messages', post(front.issue(), ASK))).status).toBe(500)
  })

  test('a bug after the first byte cuts the connection instead of pretending an end', async () => {
    await start({
      forward: async ({ exchange: { response } }) => {
        response.writeHead(200).write('half')
        throw new TypeError('boom')
      },
    })
    await expect(call('/v1/chat/completions', post(front.issue(), ASK))).rejects.toThrow()
  })
})

describe('a client that does not read', () => {
  test('is disconnected during an answer other than a model call', async () => {
    const aliases = (name: string): string[] => Array.from({ length: 16 }, (_, i) => `${name}-${'alias'.repeat(30)}-${i}`)
    const models = Array.from({ length: 300 }, (_, i) => modelRecord(`model-${i}`, { aliases: aliases(`model-${i}`) }))
    await start({ models, server: { stalledTimeoutMs: 200 } })
    const list = `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${front.issue()}\r\n\r\n`
    const socket = openRaw(front.port, list.repeat(4)).pause()
    await expect.poll(() => front.finished.length).toBe(4)
    socket.destroy()
  })
})

test('a request that follows a silent model call on its connection does not end the call', async () => {
  const { forward, release } = heldBackend()
  await start({ server: { stalledTimeoutMs: 100 }, app: { active: new ActiveExchanges() }, forward })
  const socket = openRaw(front.port, `${asked(front.issue())}GET / HTTP/1.1\r\nhost: x\r\n\r\n`)
  await expect.poll(() => front.started).toBe(2)
  await new Promise((resolve) => setTimeout(resolve, 400)) // four times the time-out
  expect(front.finished).toEqual([])
  release()
  await expect.poll(() => front.finished.length).toBe(2)
  socket.destroy()
})

describe('bodies that fill the gateway', () => {
  const upload = (key: string): Promise<{ status: number; text: string }> =>
    call('/v1/chat/completions', post(key, { ...ASK, padding: 'x'.repeat(60_000) }))

  test('of one key are refused with 429 while another key is served, and all of it is given back', async () => {
    const bodies = new BodyBudget({ process: 150_000, large: 150_000, perTenant: 200_000, perKey: 100_000 })
    const { forward, release } = heldBackend()
    await start({ app: { bodies, active: new ActiveExchanges() }, forward })
    const [greedy, modest] = [front.issue(), front.issue()]
    const first = upload(greedy)
    await expect.poll(() => front.jobs.length).toBe(1)
    const refused = await upload(greedy)
    expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([429, 'too_many_bodies'])
    const second = upload(modest)
    await expect.poll(() => front.jobs.length).toBe(2)
    expect((await upload(front.issue())).status).toBe(503) // the third does not fit into the process
    release()
    expect([(await first).status, (await second).status]).toEqual([200, 200])
    await expect.poll(() => bodies.bytes).toBe(0)
  })
})

describe('a connection with unread answers', () => {
  test('is cut off at the fifth, without a key, and the requests behind it cost nothing', async () => {
    await start()
    const socket = openRaw(front.port, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2_000))
    await once(socket.on('error', () => undefined).resume(), 'close')
    await expect.poll(() => front.finished.length).toBe(front.started)
    expect(front.started).toBeLessThanOrEqual(5)
    expect(front.requests, 'Node reads no further').toBeLessThanOrEqual(6)
    expect((await call('/')).status).toBe(200)
  })

  test('leaves nothing behind when its client goes, whether an answer had its turn or waited for one', async () => {
    const { forward, closed } = heldBackend()
    await start({ forward })
    const key = front.issue()
    const socket = openRaw(front.port, asked(key).repeat(3))
    await expect.poll(() => front.jobs.length).toBe(3)
    socket.destroy()
    await expect.poll(() => front.finished.length).toBe(3)
    expect(closed()).toBe(3) // each job learns that its client has left
  })

  test('may have four under way, and gets them in order', async () => {
    await start()
    const socket = openRaw(front.port, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(4))
    let seen = ''
    socket.on('data', (chunk: Buffer) => (seen += chunk.toString()))
    await expect.poll(() => seen.match(/HTTP\/1\.1 200/g)?.length).toBe(4)
    socket.destroy()
  })
})
