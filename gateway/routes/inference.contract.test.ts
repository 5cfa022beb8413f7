import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { modelRecord, startFront, type FrontGateway } from '../../test/support/front-gateway.ts'
import { LedgerWorld } from '../../test/support/ledger-world.ts'
import { openRaw, readAnswer } from '../../test/support/raw-http.ts'
import { GatewayError } from '../errors.ts'
import { CallLimits } from '../limits/call-limits.ts'
import { systemClock } from '#platform/clock.ts'

const MIB = 2 ** 20
const ROUTES = ['/v1/chat/completions', '/v1/messages'] as const
const ASK = { model: 'llama', messages: [{ role: 'user', content: 'hi' }] }
let front: FrontGateway

beforeEach(async () => {
  const embedder = modelRecord('embedder')
  const hidden = modelRecord('hidden', { namespace: 'elsewhere', allowedNamespaces: ['elsewhere'] })
  const models = [
    modelRecord('llama', { aliases: ['claude-x'] }),
    modelRecord('strict', { refusedFields: ['Logit_Bias', 'user'] }),
    hidden,
    { ...embedder, backends: embedder.backends.map((backend) => ({ ...backend, routes: ['embeddings'] })) },
  ]
  front = await startFront({ models, maxBodyBytes: MIB })
})
afterEach(() => front.stop())

interface Sent {
  readonly path?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

async function send({ path = ROUTES[0], body = ASK, headers = {} }: Sent) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(front.base + path, { method: 'POST', headers, body: text })
  const json = (await response.json()) as {
    error: { message: string; type: string; code: unknown; param: unknown; metadata: { resetsAt: string } }
  }
  return { status: response.status, headers: response.headers, error: json.error, json }
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

describe('credentials', () => {
  const cases: readonly [string, () => Record<string, string>, string][] = [
    ['none', () => ({}), 'no API key was sent'],
    ['two spaces', () => ({ authorization: `Bearer  ${front.issue()}` }), 'malformed API key'],
    ['an unknown key', () => bearer(`sk-${'x'.repeat(40)}`), 'unknown API key'],
    ['a suspended key', () => bearer(front.issue({ state: 'Suspended' })), 'API key suspended'],
    ['a revoked key', () => bearer(front.issue({ state: 'Revoked' })), 'API key revoked'],
    ['an expired key', () => bearer(front.issue({ expiresMs: 1 })), 'API key expired'],
  ]
  test.each(cases)('E1 %s answers 401 with the label first, in both dialects', async (_, headers, message) => {
    for (const path of ROUTES) {
      const answer = await send({ path, headers: headers() })
      expect(answer.status).toBe(401)
      expect(answer.error.message).toMatch(new RegExp(`^Authentication Error: ${message}`))
      expect(answer.headers.get('x-should-retry')).toBe('false')
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
      if (path === '/v1/messages') expect(answer.json).toMatchObject({ type: 'error', request_id: answer.headers.get('request-id') })
      else expect(answer.error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_api_key', param: null })
    }
    expect(front.jobs).toEqual([])
  })

  test('E16 with the alias off x-api-key is not a credential', async () => {
    await front.stop()
    front = await startFront({ apiKeyHeader: false })
    const { status, error } = await send({ headers: { 'x-api-key': front.issue() } })
    expect([status, error.message.startsWith('Authentication Error: no API key was sent')]).toEqual([401, true])
  })
})

describe('scope', () => {
  test('E2 outside the scope a served and an invented model get the same answer but for the name', async () => {
    const headers = bearer(front.issue({ models: [['other']] }))
    for (const path of ROUTES) {
      const [served, invented] = await Promise.all(['llama', 'nope!'].map((model) => send({ path, headers, body: { ...ASK, model } })))
      expect(served?.status).toBe(403)
      expect(served?.error.message).toBe('key not allowed to access model llama; GET /v1/models lists the models that this key may call')
      const body = (answer: typeof served): string =>
        JSON.stringify(answer?.json)
          .replace(/llama|nope!/, '')
          .replace(/req_[0-9a-f-]+/, '')
      expect(body(invented)).toBe(body(served))
      const named = (answer: typeof served) => [...(answer?.headers.keys() ?? [])]
      expect(named(invented)).toEqual(named(served))
    }
  })

  test('E3 an allowed name without a model answers 404, the same for one that is hidden from the namespace', async () => {
    const headers = bearer(front.issue())
    const [absent, hidden] = await Promise.all(['absent', 'hidden'].map((model) => send({ headers, body: { ...ASK, model } })))
    expect([absent?.status, absent?.error]).toEqual([
      404,
      {
        message: 'model not found: absent; GET /v1/models lists the models that this key may call',
        type: 'invalid_request_error',
        param: 'model',
        code: 'model_not_found',
      },
    ])
    expect(JSON.stringify(hidden?.json).replace('hidden', 'absent')).toBe(JSON.stringify(absent?.json))
  })

  test('a scope entry admits a model by its served name or any alias of it', async () => {
    for (const models of [[['llama']], [['claude-x']], [['claude-*']]]) {
      const headers = bearer(front.issue({ models }))
      for (const model of ['llama', 'claude-x']) expect((await send({ headers, body: { ...ASK, model } })).status).toBe(200)
    }
    expect(front.jobs.map(({ askedName, model }) => [askedName, model.record.servedName])).toContainEqual(['claude-x', 'llama'])
  })

  test('E15 neither query nor headers name the model, and of two model keys the authorised one is the parsed one', async () => {
    const headers = { ...bearer(front.issue({ models: [['other']] })), 'x-model': 'other' }
    const doubled = '{"model":"other","model":"llama","messages":[{}]}'
    const escaped = '{"mod\\u0065l":"llama","messages":[{}]}'
    for (const body of [ASK, doubled, escaped]) expect((await send({ path: `${ROUTES[0]}?model=other`, headers, body })).status).toBe(403)
    for (const key of ['Model', 'MODEL', '\u017Ftream', 'Max_Tokens', 'N']) {
      const { status, error } = await send({ headers: bearer(front.issue()), body: { ...ASK, [key]: 'llama' } })
      expect([status, error.param]).toEqual([400, key])
    }
    expect(front.jobs).toEqual([])
  })

  test('a field that the author of the model lists is refused in any spelling, with null too, and by no other model', async () => {
    const headers = bearer(front.issue())
    for (const field of ['logit_bias', 'LOGIT_BIAS', 'u\u017Fer', 'user']) {
      for (const value of [1, null]) {
        const body = { ...ASK, model: 'strict', [field]: value }
        const { status, error } = await send({ headers, body })
        expect([status, error.param], field).toEqual([400, field])
        expect(front.finished.at(-1)).toMatchObject({ model: 'strict', modelNamespace: 'shop' })
        expect((await send({ headers, body: { ...body, model: 'llama' } })).status).toBe(200)
      }
    }
    expect((await send({ headers, body: { ...ASK, model: 'strict', users: 1 } })).status).toBe(200)
    const large = { ...ASK, model: 'strict', messages: [{ role: 'user', content: 'x'.repeat(300_000) }], user: 'eve' }
    expect((await send({ headers, body: large })).status).toBe(400)
  })

  test('row 14: a route that no backend of the model serves is refused permanently', async () => {
    const headers = bearer(front.issue())
    for (const path of ROUTES) {
      const refused = await send({ path, headers, body: { ...ASK, model: 'embedder' } })
      expect([refused.status, refused.error.message]).toEqual([
        400,
        expect.stringMatching(/^model embedder does not serve this route; no backend of it serves \/v1\/.*platform team/),
      ])
      expect(refused.headers.get('x-should-retry')).toBe('false')
    }
  })
})

describe('bodies', () => {
  const deep = `{"model":"llama","messages":[{"content":${'['.repeat(5000)}${']'.repeat(5000)}}]}`
  test.each([
    ['', 'Invalid JSON in request body: the body is empty', null],
    ['{"model":', 'Invalid JSON in request body: not valid JSON at line 1, column 10: the text ends too early', null],
    ['\uFEFF{}', 'Invalid JSON in request body: it begins with a byte order mark', null],
    ['[]', 'Invalid JSON in request body: not an object', null],
    ['null', 'Invalid JSON in request body: not an object', null],
    ['{}', 'Invalid request: model is required', 'model'],
    ['{"model":7,"messages":[{}]}', 'Invalid request: model must be a non-empty string', 'model'],
    ['{"model":"llama"}', 'Invalid request: messages is required', 'messages'],
    ['{"model":"llama","messages":[]}', 'Invalid request: messages must be a non-empty array', 'messages'],
    ['{"model":"llama","messages":"hi"}', 'Invalid request: messages must be a non-empty array', 'messages'],
    ['{"model":"llama","messages":["hi"]}', 'Invalid request: messages must hold objects', 'messages'],
    ['{"model":"llama","messages":[{}],"stream":"yes"}', 'Invalid request: stream must be true or false', 'stream'],
    ['{"model":"llama","messages":[{}],"max_tokens":"9"}', 'Invalid request: max_tokens must be an integer', 'max_tokens'],
    ['{"model\\u0000":"dear","model":"llama","messages":[{}]}', 'Invalid request: model has a NUL character in its name', 'model'],
    [
      `{"model":"llama","messages":[${'{},'.repeat(150_000)}{}]}`,
      'Invalid JSON in request body: too many objects, arrays and fields',
      null,
    ],
    [deep, 'Invalid request: messages is nested deeper than 200 levels', 'messages'],
  ])('E4 a body that is wrong answers 400 and no backend is called: %.40s', async (body, message, param) => {
    for (const path of ROUTES) {
      const { status, headers, error } = await send({ path, headers: bearer(front.issue()), body })
      expect([status, headers.get('x-should-retry')]).toEqual([400, 'false'])
      expect(error.message.startsWith(message)).toBe(true)
      if (path === ROUTES[0]) expect(error.param).toBe(param)
    }
    expect(front.jobs).toEqual([])
  })

  test('compressed and multipart bodies answer 415 and say what to send', async () => {
    const key = front.issue()
    const gzip = await send({ headers: { ...bearer(key), 'content-encoding': 'gzip' } })
    expect([gzip.status, gzip.error.message]).toEqual([415, 'Unsupported Content-Encoding: send the body uncompressed'])
    const form = await send({ headers: { ...bearer(key), 'content-type': 'multipart/form-data; boundary=x' } })
    expect([form.status, form.error.message]).toEqual([415, 'Unsupported Content-Type: send the body as application/json'])
    expect((await send({ headers: { ...bearer(key), 'content-encoding': 'identity', 'content-type': 'text/plain' } })).status).toBe(200)
  })

  test('a call that has come through three gateways is refused: their backends are each other', async () => {
    for (const [hops, status] of [
      ['2', 200],
      ['3', 508],
      ['99', 508],
    ] as const) {
      const answer = await send({ headers: { ...bearer(front.issue()), 'x-headgate-hops': hops } })
      expect([hops, answer.status]).toEqual([hops, status])
    }
  })

  test('the backend gets the bytes as sent, whatever their layout', async () => {
    const body = `{ "messages" : [ {"role":"user","content":"Grüße 🚦"} ],\n "model":"llama", "stream": true, "seed": 1e2 }`
    await send({ headers: bearer(front.issue()), body })
    expect(front.jobs[0]?.body?.bytes.toString()).toBe(body)
    expect(front.jobs[0]?.stream).toBe(true)
  })

  test('a large body, which a worker reads, is served or refused as a small one', async () => {
    const pad = `"pad":"${'ü'.repeat(MIB / 4)}"`
    const [good, doubled] = [`{"model":"llama","messages":[{}],${pad}}`, `{"model":"llama","messages":[{}],${pad},"model":"other"}`]
    for (const path of ROUTES) {
      expect((await send({ path, headers: bearer(front.issue()), body: good })).status).toBe(200)
      expect((await send({ path, headers: bearer(front.issue({ models: [['llama']] })), body: doubled })).status).toBe(403)
      const refused = await send({ path, headers: bearer(front.issue()), body: `{"model":"llama","messages":[],${pad}}` })
      expect([refused.status, refused.error.message]).toEqual([400, 'Invalid request: messages must be a non-empty array'])
    }
    expect(front.jobs.map(({ body }) => body?.bytes.toString() === good)).toEqual([true, true])
  })
})

interface BadRequest {
  path: string
  body: unknown
  headers: Record<string, string>
}

describe('order', () => {
  const big = 'x'.repeat(MIB + 1)
  // each entry has one mistake, in order from the first that answers to the last
  const mistakes: readonly [name: string, status: number, change: (sent: BadRequest) => void][] = [
    ['path', 404, (sent) => (sent.path = '/v1/nothing')],
    ['credential', 401, (sent) => (sent.headers['authorization'] = 'Bearer sk-nonsense')],
    ['declared size', 413, (sent) => (sent.body = big)],
    ['encoding', 415, (sent) => (sent.headers['content-encoding'] = 'gzip')],
    ['JSON', 400, (sent) => (sent.body = sent.body === big ? big : '{"model')],
    ['shape', 400, (sent) => (sent.body = typeof sent.body === 'string' ? sent.body : { ...(sent.body as object), messages: [] })],
    ['scope', 403, (sent) => (sent.body = typeof sent.body === 'string' ? sent.body : { ...(sent.body as object), model: 'other' })],
  ]
  const pairs = mistakes.flatMap((first, i) => mistakes.slice(i + 1).map((second) => [first[0], second[0], first, second] as const))

  test.each(pairs)('E13 of %s and %s the first answers', async (_, __, first, second) => {
    const sent: BadRequest = { path: ROUTES[0], body: ASK, headers: bearer(front.issue({ models: [['llama']] })) }
    first[2](sent)
    second[2](sent)
    expect((await send(sent)).status).toBe(first[1])
    expect(front.jobs).toEqual([])
  })

  test('E13 scope answers before existence, existence before route', async () => {
    const scoped = bearer(front.issue({ models: [['llama', 'absent']] }))
    expect((await send({ path: '/v1/messages', headers: scoped, body: { ...ASK, model: 'embedder' } })).status).toBe(403)
    expect((await send({ path: '/v1/messages', headers: scoped, body: { ...ASK, model: 'absent' } })).error.message).toMatch(
      /^model not found: absent; /,
    )
  })
})

describe('backends', () => {
  test('a failure before the first byte is answered in the dialect of the route, with a name the log can use', async () => {
    await front.stop()
    front = await startFront({ forward: () => Promise.reject(new GatewayError('backendOverloaded', {}, { retryAfterMs: 7_000 })) })
    const headers = bearer(front.issue())
    const [chat, native] = [await send({ headers }), await send({ path: '/v1/messages', headers })]
    expect([chat.status, chat.headers.get('retry-after'), chat.error.code]).toEqual([503, '7', 'server_is_overloaded'])
    expect([native.status, native.error.type]).toEqual([529, 'overloaded_error'])
    expect(front.finished[0]).toMatchObject({ model: 'llama', route: '/v1/chat/completions', error: { row: { number: 27 } } })
  })
})

describe('limits', () => {
  const limited = async (): Promise<void> => {
    await front.stop()
    const limits = new CallLimits({
      ledger: new LedgerWorld().process(),
      clock: systemClock,
      tokenHold: 'Declared',
    })
    front = await startFront({ models: [modelRecord('llama')], app: { limits } })
  }

  test('L9 the request after the last one is refused with the same headers that the others carry, in both dialects', async () => {
    await limited()
    const headers = bearer(front.issue({ limits: { requestsPerMinute: 2 } }))
    await send({ headers })
    const last = await send({ path: '/v1/messages', headers })
    const [chat, native] = [await send({ headers }), await send({ path: '/v1/messages', headers })]
    expect(front.jobs.map(({ answerHeaders }) => answerHeaders?.slice(0, 4))).toEqual([
      ['x-ratelimit-limit-requests', '2', 'x-ratelimit-remaining-requests', '1'],
      ['anthropic-ratelimit-requests-limit', '2', 'anthropic-ratelimit-requests-remaining', '0'],
    ])
    expect(last.status).toBe(200)
    expect([chat.status, chat.error.code, chat.headers.get('x-ratelimit-remaining-requests')]).toEqual([429, 'rate_limit_exceeded', '0'])
    expect([native.status, native.error.type, native.headers.get('anthropic-ratelimit-requests-remaining')]).toEqual([
      429,
      'rate_limit_error',
      '0',
    ])
    expect(Number(chat.headers.get('retry-after-ms'))).toBeGreaterThan(50_000)
  })

  test('the client of a key that was refused 20 times within 10 s gets its refusal before it has sent its body', async () => {
    await limited()
    const headers = bearer(front.issue({ limits: { requestsPerMinute: 1 } }))
    await send({ headers })
    for (let i = 0; i < 19; i += 1) expect((await send({ headers })).status).toBe(429)
    expect((await send({ headers, body: '{' })).status, 'bodies are still read').toBe(400)
    const last = await send({ headers })
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\nContent-Length: 1000\r\n\r\n`
    const socket = openRaw(front.port, head)
    const unread = await readAnswer(socket)
    socket.destroy()
    expect([unread.status, unread.headers['x-ratelimit-remaining-requests']]).toEqual([429, '0'])
    const error = JSON.parse(unread.body).error
    const { metadata, ...others } = last.error
    expect(error).toMatchObject({ ...others, message: expect.stringMatching(/^Rate limit reached: req/) })
    expect(error.metadata).toEqual({ ...metadata, resetsAt: expect.any(String) })
    expect(
      Math.abs(Date.parse(error.metadata.resetsAt) - Date.parse(metadata.resetsAt)),
      'both ends are rounded to a second',
    ).toBeLessThanOrEqual(1_000)
    expect(Number(unread.headers['retry-after-ms'])).toBeGreaterThan(50_000)
    const other = bearer(front.issue({ limits: { requestsPerMinute: 1 } }))
    expect((await send({ headers: other })).status, 'another key is none of its business').toBe(200)
  })

  test('L8 a request outside the scope of its key consumes nothing', async () => {
    await limited()
    const headers = bearer(front.issue({ models: [['llama']], limits: { requestsPerMinute: 1 } }))
    expect((await send({ headers, body: { ...ASK, model: 'other' } })).status).toBe(403)
    expect((await send({ headers })).status).toBe(200)
  })

  test('a call of a key without limits is not metered and asks no ledger', async () => {
    await limited()
    await send({ headers: bearer(front.issue()) })
    expect(front.jobs[0]).toMatchObject({ isMetered: false })
    expect(front.jobs[0]?.answerHeaders).toBeUndefined()
  })
})
