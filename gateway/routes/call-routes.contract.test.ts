/** Admission on the routes beside chat completions and messages. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { CALL_ROUTES } from '#contract/values/call-routes.ts'
import { systemClock } from '#platform/clock.ts'
import { type FrontGateway, modelRecord, startFront } from '../../test/support/front-gateway.ts'
import { DIALECTS } from '../dialects/dialects.ts'
import { GatewayError } from '../errors.ts'
import { FreeCalls } from '../limits/free-calls.ts'
import { backendFailure } from '../upstream/backend-error.ts'
import type { Outcome } from '../upstream/forward-job.ts'

/** Routes that a model also serves by the servers of others. */
const TRANSLATED: Readonly<Record<string, readonly string[]>> = {
  messages: ['chat/completions'],
  'messages/count_tokens': ['messages', 'chat/completions'],
}

let front: FrontGateway
afterEach(() => front.stop())

const SOUND = new File(['RIFF \0 a sound'], 'a.wav', { type: 'audio/wav' })
/** A good body of each route. */
const BODIES: Readonly<Record<string, object>> = {
  'chat/completions': { messages: [{ role: 'user', content: 'hi' }] },
  completions: { prompt: 'hi' },
  responses: { input: 'hi' },
  embeddings: { input: ['hi', 'there'] },
  rerank: { query: 'hi', documents: ['a', 'b'] },
  'audio/transcriptions': { file: SOUND },
  'audio/speech': { input: 'hi', voice: 'amy' },
  messages: { messages: [{ role: 'user', content: 'hi' }] },
  'messages/count_tokens': { messages: [{ role: 'user', content: 'hi' }] },
}
const DIALECT_LIST = [...DIALECTS.values()]

interface Asked {
  readonly status: number
  readonly headers: Headers
  readonly error: { readonly message: string; readonly param?: string; readonly code?: string; readonly type: string } | undefined
}

function formOf(fields: object): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined) form.append(name, value instanceof File ? value : String(value))
  return form
}

async function ask(credential: string, route: string, change: object = {}): Promise<Asked> {
  const fields = { model: 'llama', ...BODIES[route], ...change }
  const body = route === 'audio/transcriptions' ? formOf(fields) : JSON.stringify(fields)
  const headers = { authorization: `Bearer ${credential}`, ...(typeof body === 'string' && { 'content-type': 'application/json' }) }
  const response = await fetch(`${front.base}/v1/${route}`, { method: 'POST', headers, body })
  const { error } = JSON.parse((await response.text()) || '{}') as Pick<Asked, 'error'>
  return { status: response.status, headers: response.headers, error }
}

test('every route of the table has a dialect, and a body in these tests', async () => {
  front = await startFront()
  expect(DIALECT_LIST.map(({ route }) => route).toSorted()).toEqual([...CALL_ROUTES].toSorted())
  expect(Object.keys(BODIES).toSorted()).toEqual([...CALL_ROUTES].toSorted())
})

describe.each(DIALECT_LIST)('$path', ({ route, path }) => {
  test('forwards a call of a key that may use the model, and refuses any other model in the format of the route', async () => {
    front = await startFront()
    const key = front.issue({ models: [['llama']] })
    expect((await ask(key, route)).status).toBe(200)
    expect(front.jobs.map(({ dialect, askedName }) => [dialect.path, askedName])).toEqual([[path, 'llama']])
    const { status, error } = await ask(key, route, { model: 'other' })
    expect([status, error?.message]).toEqual([403, expect.stringContaining('key not allowed to access model other')])
    expect(error?.code === undefined).toBe(path.startsWith('/v1/messages'))
  })

  test('answers 400 for a model none of whose backends serves the route', async () => {
    const [backend] = modelRecord('llama').backends
    if (backend === undefined) throw new Error('the model has no backend')
    const backends = [{ ...backend, routes: CALL_ROUTES.filter((one) => one !== route && !TRANSLATED[route]?.includes(one)) }]
    front = await startFront({ models: [modelRecord('llama', { backends })] })
    const { status, error } = await ask(front.issue(), route)
    expect([status, error?.message]).toEqual([400, expect.stringContaining('model llama does not serve this route')])
    expect(front.jobs).toEqual([])
  })

  test('refuses fields that choose another model', async () => {
    front = await startFront()
    expect((await ask(front.issue(), route, { fallbacks: ['other'] })).error?.message).toContain('Invalid request: fallbacks')
  })

  test('refuses a request to change to another protocol, as a WebSocket client sends it, at once', async () => {
    front = await startFront()
    const socket = connect(front.port, '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    socket.destroy()
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 405 [^]*\r\nallow: POST\r\n/i)
  })
})

describe('a body that has no prompt is refused with the name of the field:', () => {
  test.each<[route: string, change: object, field: string]>([
    ['completions', { prompt: undefined }, 'prompt'],
    ['completions', { prompt: [] }, 'prompt'],
    ['embeddings', { input: undefined }, 'input'],
    ['embeddings', { stream: true }, 'stream'],
    ['rerank', { query: null }, 'query'],
    ['rerank', { documents: [] }, 'documents'],
    ['rerank', { stream: true }, 'stream'],
    ['responses', { input: [] }, 'input'],
    ['responses', { background: true }, 'background'],
    ['responses', { n: 2 }, 'n'],
    ['audio/transcriptions', { file: undefined }, 'file'],
    ['audio/transcriptions', { stream: 'perhaps' }, 'stream'],
    ['audio/speech', { input: '' }, 'input'],
    ['audio/speech', { stream_format: 'sse' }, 'stream_format'],
    ['messages/count_tokens', { messages: [] }, 'messages'],
    ['messages/count_tokens', { stream: true }, 'stream'],
  ])('%s %j', async (route, change, field) => {
    front = await startFront()
    const { status, error } = await ask(front.issue(), route, change)
    expect([status, error?.message]).toEqual([400, expect.stringContaining(`Invalid request: ${field}`)])
    expect(front.jobs).toEqual([])
  })
})

describe('the count of tokens', () => {
  const LIMITED = { limits: { requestsPerMinute: 1, tokensPerMinute: 1 } }

  test('counts for no limit of the key, and costs nothing', async () => {
    front = await startFront()
    const key = front.issue(LIMITED)
    for (let at = 0; at < 3; at += 1) expect((await ask(key, 'messages/count_tokens')).status).toBe(200)
    expect(front.jobs.map(({ isMetered }) => isMetered)).toEqual([false, false, false])
  })

  test('is answered by the gateway for a model whose servers do not count, with tools and system in its estimate', async () => {
    const [backend] = modelRecord('llama').backends
    const backends = backend && [{ ...backend, engine: 'VLLM', routes: ['chat/completions'] }]
    front = await startFront({ models: [modelRecord('llama', { backends: backends ?? [] })] })
    const key = front.issue(LIMITED)
    const long = 'one two three '.repeat(100)
    for (const change of [{}, { system: long }, { system: long, tools: [{ name: 'x', description: long, input_schema: {} }] }])
      expect((await ask(key, 'messages/count_tokens', change)).status).toBe(200)
    const [bare = 0, withSystem = 0, withTools = 0] = front.jobs.map(({ count }) => count?.tokens)
    expect([bare > 0, withSystem - bare > 300, withTools - withSystem > 300]).toEqual([true, true, true])
    expect(front.jobs.map(({ isMetered, translations }) => [isMetered, translations?.size])).toEqual([0, 0, 0].map(() => [false, 1]))
  })

  test('stays with a server that counts by itself', async () => {
    front = await startFront()
    await ask(front.issue(), 'messages/count_tokens')
    expect(front.jobs.map(({ count }) => count)).toEqual([undefined])
  })

  const failed = (error: GatewayError): Outcome => ({ usage: undefined, wasSent: false, error })
  const answered = (status: number, detail = 'Not Found'): GatewayError =>
    backendFailure({ status, body: { detail } }, { askedName: 'llama', upstreamModel: 'llama' }).error
  const native = modelRecord('llama', { backends: modelRecord('llama').backends.map((backend) => ({ ...backend, engine: 'VLLM' })) })

  test.each<[string, GatewayError, number | undefined]>([
    ['404', answered(404), 1],
    ['405', answered(405), 1],
    ['501', answered(501), 1],
    ['nobody is there', new GatewayError('noBackend', { model: 'llama' }), 1],
    ['a time-out, after which no tokenizer of the slow server is asked', new GatewayError('backendTimeout'), undefined],
  ])('is answered by the gateway after all if its server cannot: %s', async (_what, error, translated) => {
    front = await startFront({
      models: [native],
      forward: async ({ count, exchange }) => {
        if (count === undefined) return failed(error)
        exchange.response.writeHead(200).end('{}')
        return { usage: undefined, wasSent: true, error: undefined }
      },
    })
    expect((await ask(front.issue(), 'messages/count_tokens', { system: 'one two three '.repeat(100) })).status).toBe(200)
    const [, own] = front.jobs
    expect([front.jobs.length, own?.body, own?.translations?.size]).toEqual([2, undefined, translated])
    expect(own?.count?.tokens).toBeGreaterThan(300)
  })

  test.each<[string, GatewayError, number]>([
    ['of the request', answered(400), 400],
    ['for a model that the server does not know', answered(404, 'no such model'), 404],
    ['for its load', answered(503), 529],
  ])('keeps the refusal of its server %s', async (_what, error, status) => {
    front = await startFront({ models: [native], forward: async () => failed(error) })
    expect((await ask(front.issue(), 'messages/count_tokens')).status).toBe(status)
    expect(front.jobs).toHaveLength(1)
  })

  test('is no call of a model that the key may not use', async () => {
    front = await startFront()
    expect((await ask(front.issue({ models: [['other']] }), 'messages/count_tokens')).status).toBe(403)
  })

  test('has a small limit of its own for each key, which says when to ask again', async () => {
    front = await startFront({ app: { freeCalls: new FreeCalls(2, systemClock) } })
    const [key, other] = [front.issue(), front.issue()]
    const statuses = []
    for (let at = 0; at < 2; at += 1) statuses.push((await ask(key, 'messages/count_tokens')).status)
    const { status, headers, error } = await ask(key, 'messages/count_tokens')
    expect([...statuses, status, error?.type]).toEqual([200, 200, 429, 'rate_limit_error'])
    expect(Number(headers.get('retry-after-ms'))).toBeGreaterThan(59_000)
    expect((await ask(other, 'messages/count_tokens')).status).toBe(200)
    expect((await ask(key, 'messages')).status).toBe(200)
  })
})

describe('a form', () => {
  const send = async (credential: string, body: FormData | string, type?: string): Promise<Asked> => {
    const headers = { authorization: `Bearer ${credential}`, ...(type !== undefined && { 'content-type': type }) }
    const response = await fetch(`${front.base}/v1/audio/transcriptions`, { method: 'POST', headers, body })
    return {
      status: response.status,
      headers: response.headers,
      error: (JSON.parse((await response.text()) || '{}') as Pick<Asked, 'error'>).error,
    }
  }

  test('in which a field stands twice is refused, so that no server reads another model than the gateway', async () => {
    front = await startFront()
    const form = formOf({ model: 'llama', file: SOUND })
    form.append('model', 'other')
    expect(await send(front.issue(), form)).toMatchObject({
      status: 400,
      error: { message: expect.stringContaining('Invalid request: model appears') },
    })
  })

  test('that parsers read differently is refused with the reason', async () => {
    front = await startFront()
    const { status, error } = await send(front.issue(), 'preamble --x', 'multipart/form-data; boundary=x')
    expect([status, error?.message]).toEqual([400, 'Invalid form in request body: it does not begin with its boundary'])
  })

  test('is not taken by a route of JSON, and JSON not by a route of forms', async () => {
    front = await startFront()
    const key = front.issue()
    expect(await send(key, '{}', 'application/json')).toMatchObject({
      status: 415,
      error: { message: expect.stringContaining('multipart/form-data') },
    })
    const headers = { authorization: `Bearer ${key}` }
    const response = await fetch(`${front.base}/v1/embeddings`, { method: 'POST', headers, body: formOf({ model: 'llama' }) })
    expect(response.status).toBe(415)
  })

  test('of many megabytes is read by the worker, and keeps its bytes', async () => {
    front = await startFront()
    const sound = new File([Buffer.alloc(20 * 2 ** 20, 'sound ')], 'long.wav')
    expect((await send(front.issue(), formOf({ file: sound, model: 'llama', prompt: 'names' }))).status).toBe(200)
    const { body } = front.jobs[0] ?? {}
    expect(body?.bytes.toString('latin1', body.modelAt.start, body.modelAt.end)).toBe('llama')
    expect(body?.bytes.length).toBeGreaterThan(20 * 2 ** 20)
  })
})
