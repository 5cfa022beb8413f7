/** docs/openapi.yaml describes every request that the gateway takes and every answer to one, whatever a client sends. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bodySchema, check, undescribed } from '../test/support/described-api.ts'
import { type FrontGateway, startFront } from '../test/support/front-gateway.ts'
import { budget } from '../test/support/ledger-world.ts'
import { systemClock } from '#platform/clock.ts'
import type { CallRoute } from '#contract/values/call-routes.ts'
import { DIALECTS } from './dialects/dialects.ts'
import { COSTS, DISTURBING, MODEL_CHOOSING, requestFields } from './dialects/request-shape.ts'
import { GatewayError, type RowID } from './errors.ts'
import { FreeCalls } from './limits/free-calls.ts'

const BODIES_PER_PATH = Number(process.env.OPENAPI_BODIES ?? 300)
const MESSAGES = { messages: [{ role: 'user', content: 'hi' }] }
/** A good body of each route. */
const GOOD: Readonly<Record<CallRoute, Readonly<Record<string, unknown>>>> = {
  'chat/completions': MESSAGES,
  completions: { prompt: 'hi' },
  responses: { input: 'hi' },
  embeddings: { input: 'hi' },
  rerank: { query: 'hi', documents: ['a'] },
  'audio/transcriptions': { file: {} },
  'audio/speech': { input: 'hi' },
  messages: MESSAGES,
  'messages/count_tokens': MESSAGES,
}
const ALL = [...DIALECTS.values()]

const PROMPT_FIELDS = Object.values(GOOD).flatMap((body) => Object.keys(body))
const FIELDS = ['model', ...COSTS, ...PROMPT_FIELDS, 'texts', 'background', 'stream_format', 'temperature', 'stream_options']
const VALUES = [null, true, false, 0, 1, 2, -1, 1.5, '', 'llama', 'theirs', 'audio', '7', [], {}, [{}], ['a'], [1], [null], [[]]]
const field = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...FIELDS) },
  { weight: 1, arbitrary: fc.constantFrom('a\0b', ...MODEL_CHOOSING, ...DISTURBING) },
)
const change = fc.dictionary(field, fc.constantFrom<unknown>(...VALUES), { maxKeys: 3, noNullPrototype: true })
const left = fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constantFrom(...FIELDS) })

/** A good body of a route with some other fields, and perhaps without one. */
function bodies(route: CallRoute): fc.Arbitrary<Record<string, unknown>> {
  return fc.tuple(change, left).map(([changed, without]) => {
    const body = { model: 'llama', ...GOOD[route], ...changed }
    return Object.fromEntries(Object.entries(body).filter(([name]) => name !== without))
  })
}

describe.each(ALL.filter(({ isForm }) => !isForm))('$path', (dialect) => {
  test('takes exactly the bodies that its schema accepts', () => {
    const schema = bodySchema(dialect.path)
    let taken = 0
    fc.assert(
      fc.property(bodies(dialect.route), (body) => {
        const refusal = requestFields(body, dialect)
        const isTaken = !(refusal instanceof GatewayError)
        taken += Number(isTaken)
        expect([isTaken, refusal]).toEqual([check.accepts(schema, body), refusal])
      }),
      { numRuns: 2_000 },
    )
    expect(taken).toBeGreaterThan(200)
    expect(taken).toBeLessThan(1_800)
  })
})

describe('an answer', () => {
  /** What the place of the backends answers to the next call. */
  let failure: RowID | undefined
  let front: FrontGateway
  let credentials: readonly (string | undefined)[]
  /** Of a key with one request a minute. */
  let single: string

  beforeAll(async () => {
    front = await startFront({
      app: { freeCalls: new FreeCalls(1_000_000, systemClock) },
      forward: async ({ exchange, count }) => {
        if (failure !== undefined && count === undefined)
          // the gateway's own count of tokens never fails
          return { usage: undefined, wasSent: false, error: new GatewayError(failure) }
        const { response } = exchange
        response.writeHead(200, exchange.ownHeaders().concat('content-type', 'application/json')).end('{}')
        return { usage: undefined, wasSent: true, error: undefined }
      },
    })
    const limited = front.issue({ limits: { requestsPerMinute: 50, tokensPerMinute: 900 } })
    const priced = front.issue({ budgets: [budget()] })
    single = front.issue({ limits: { requestsPerMinute: 1 } })
    credentials = [front.issue(), front.issue(), front.issue({ models: [['llama', 'theirs']] }), limited, priced, 'sk-other', undefined]
  })
  afterAll(() => front.stop())

  const FAILURES = [
    ...(['noBackend', 'backendOverloaded', 'backendAuth', 'backendRejected', 'contextOverflow', 'backendTooLarge'] as const),
    ...(['backendModelNotFound', 'backendError', 'backendTimeout', 'notReady'] as const),
  ]
  const TYPES = ['application/json', 'application/json', 'text/plain', 'multipart/mixed; boundary=x'] as const
  const NOT_JSON = ['', '{', '[]', 'null', '"model"', '{"model":}', '{"model":"llama"', '\uFEFF{}'] as const

  const paths = ALL.flatMap((dialect) => [dialect.path, ...(dialect.otherPaths ?? [])].map((path) => ({ path, dialect })))

  test.each(paths)('to POST $path is one that the document describes', async ({ path, dialect }) => {
    const json = bodies(dialect.route).map((body) => JSON.stringify(body))
    const text = dialect.isForm ? json : fc.oneof({ weight: 12, arbitrary: json }, { weight: 1, arbitrary: fc.constantFrom(...NOT_JSON) })
    const call = fc.record({
      text,
      at: fc.nat({ max: 6 }),
      type: fc.constantFrom(...TYPES),
      failure: fc.option(fc.constantFrom(...FAILURES), { freq: 2, nil: undefined }),
    })
    const one = async ({ text: sent, at, type, failure: next }: typeof call extends fc.Arbitrary<infer T> ? T : never): Promise<void> => {
      failure = next
      const status = await described(path, {
        credential: credentials[at],
        type,
        body: dialect.isForm ? formOf(JSON.parse(sent) as object) : sent,
      })
      expect(status).not.toBe(500)
    }
    await fc.assert(fc.asyncProperty(call, one), { numRuns: BODIES_PER_PATH })
  })

  const CHAT = '/v1/chat/completions'
  const HELLO = { model: 'llama', ...MESSAGES }
  const THEIRS = { model: 'theirs', ...MESSAGES }

  const WITH = { at: 0, body: HELLO as object | string, failure: undefined as RowID | undefined, type: 'application/json' }

  test.each<Partial<typeof WITH> & { readonly status: number }>([
    { status: 200 },
    { status: 400, body: '{' },
    { status: 401, at: 5 },
    { status: 401, at: 6 },
    { status: 402, at: 4 },
    { status: 403, at: 2, body: { ...HELLO, model: 'audio' } },
    { status: 404, at: 2, body: THEIRS },
    { status: 413, failure: 'backendTooLarge' },
    { status: 415, type: 'multipart/mixed; boundary=x' },
    { status: 502, failure: 'backendError' },
    { status: 503, failure: 'backendOverloaded' },
    { status: 504, failure: 'backendTimeout' },
  ])('of status $status is one that the document describes', async ({ status, ...change }) => {
    const { at, body, type, failure: next } = { ...WITH, ...change }
    failure = next
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    expect(await described(CHAT, { credential: credentials[at], type, body: text })).toBe(status)
  })

  test('to a key without requests left, and of a busy server in the format of Anthropic, is one that the document describes', async () => {
    const call = { type: 'application/json', body: JSON.stringify({ ...HELLO, max_tokens: 5 }) }
    failure = undefined
    expect([await described(CHAT, { credential: single, ...call }), await described(CHAT, { credential: single, ...call })]).toEqual([
      200, 429,
    ])
    failure = 'backendOverloaded'
    expect(await described('/v1/messages', { credential: credentials[0], ...call })).toBe(529)
  })

  interface Sent {
    readonly credential: string | undefined
    readonly type: string
    readonly body: FormData | string
  }

  /** Sends a call whose answer the document must describe. @returns its status */
  async function described(path: string, { credential, type, body }: Sent): Promise<number> {
    const headers: Record<string, string> = credential === undefined ? {} : { authorization: `Bearer ${credential}` }
    if (typeof body === 'string') headers['content-type'] = type
    const response = await fetch(front.base + path, { method: 'POST', headers, body })
    expect(await undescribed(response, 'POST', path)).toBeUndefined()
    return response.status
  }

  function formOf(fields: object): FormData {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) {
      form.append(name, name === 'file' && typeof value === 'object' ? new File(['RIFF'], 'a.wav') : String(value))
    }
    return form
  }
})
