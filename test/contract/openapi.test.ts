/** docs/openapi.yaml is a sound OpenAPI document of exactly the routes, the errors and the own answers of the gateway. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ERROR_ROWS, errorMessage, GatewayError } from '../../gateway/errors.ts'
import { errorBody } from '../../gateway/dialects/dialect.ts'
import { formatOfPath } from '../../gateway/http/exchange.ts'
import { CallLimits } from '../../gateway/limits/call-limits.ts'
import { ROUTES } from '../../gateway/routes/route-table.ts'
import { answerOf, bodySchema, check, type DescribedOperation, described, operationOf, undescribed } from '../support/described-api.ts'
import { type FrontGateway, modelRecord, startFront } from '../support/front-gateway.ts'
import { budget, LedgerWorld } from '../support/ledger-world.ts'

const served = ROUTES.flatMap(({ methods, paths }) => paths.flatMap((path) => methods.split(', ').map((method) => ({ method, path }))))
const operations = Object.entries(described.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
)

describe('the document', () => {
  test('lists exactly the routes of the gateway', () => {
    const name = ({ method, path }: { method: string; path: string }): string => `${method} ${path}`
    expect(operations.map(name).toSorted()).toEqual(served.map(name).toSorted())
  })

  test('is OpenAPI 3.1: each reference leads to a part, and each part that OpenAPI requires is there', () => {
    expect(described.openapi).toMatch(/^3\.1\.\d$/)
    expect(described.info).toMatchObject({ title: expect.stringMatching(/./), version: expect.stringMatching(/^\d+\.\d+\.\d+/) })
    for (const reference of references(described)) expect(check.resolve(reference), reference).toBeDefined()
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length)
    for (const { path, operation } of operations) {
      const named = (operation.parameters ?? []).map((parameter) => [parameter.in, parameter.required, `{${parameter.name}}`])
      expect(named, path).toEqual([...path.matchAll(/\{\w+\}/g)].map(([place]) => ['path', true, place]))
      for (const status of Object.keys(operation.responses)) {
        expect(status).toMatch(/^[2-5]\d\d$/)
        expect(answerOf(operation, Number(status))?.description, `${path} ${status}`).toMatch(/./)
      }
    }
  })

  test('asks for a key by either header on every route but the one that needs none', () => {
    const schemes = described.components['securitySchemes']
    expect(schemes).toEqual({
      bearer: { type: 'http', scheme: 'bearer' },
      apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
    })
    expect(described.security).toEqual([{ bearer: [] }, { apiKey: [] }])
    const open = operations.filter(({ operation }) => operation.security !== undefined)
    expect(open.map(({ path, operation }) => [path, operation.security])).toEqual([
      ['/', []],
      ['/', []],
    ])
  })

  test('requires something of the body of every call', () => {
    const paths = operations.filter(({ method }) => method === 'POST').map(({ path }) => path)
    for (const path of paths) expect(check.accepts(bodySchema(path), {}), path).toBe(false)
  })
})

describe('errors', () => {
  /** Of other paths and methods, or a frame after a 200. */
  const UNDESCRIBED = new Set(['unknownPath', 'wrongMethod', 'streamBroken'])
  const names = ({ path, operation }: { path: string; operation: DescribedOperation }): string[] =>
    Object.keys(operation.responses).flatMap((status) =>
      status === '200' ? [] : (answerOf(operation, Number(status))?.description.split('\n') ?? []).map((line) => `${path} ${line}`),
    )

  test('each error of the catalogue is described under its status where a call can get it, with a body that fits', () => {
    const calls = operations.filter(({ method }) => method === 'POST')
    for (const row of ERROR_ROWS.filter(({ id }) => !UNDESCRIBED.has(id))) {
      const having = calls.filter((call) => names(call).some((line) => line.includes(` ${row.id}: ${row.when}`)))
      expect(having.length, row.id).toBeGreaterThan(0)
      for (const { path, operation } of having) {
        const format = formatOfPath(path)
        const schema = answerOf(operation, row.status[format])?.content?.['application/json']?.schema ?? { const: 'no such answer' }
        const body = errorBody(format, new GatewayError(row.id, { field: 'x' }), 'req_1')
        expect([row.id, path, check.accepts(schema, JSON.parse(body))]).toEqual([row.id, path, true])
        expect(body).toContain(JSON.stringify(errorMessage(row, { field: 'x' }, format)).slice(1, -1))
      }
    }
  })

  test('a call that costs nothing has no error of budgets', () => {
    expect(answerOf(operationOf('POST', '/v1/messages/count_tokens'), 402)).toBeUndefined()
    expect(answerOf(operationOf('POST', '/v1/messages'), 402)).toBeDefined()
  })
})

describe('answers of a gateway', () => {
  let front: FrontGateway
  let world: LedgerWorld
  let whole: string

  beforeAll(async () => {
    world = new LedgerWorld()
    const ledger = world.process()
    const limits = new CallLimits({ ledger, clock: world.clock, tokenHold: 'Declared' })
    const models = [modelRecord('llama', { contextTokens: 8_192, aliases: ['small'], pricing: FREE }), modelRecord('coder')]
    front = await startFront({ models, app: { limits, ledger } })
    whole = limitedKey('whole', 10, 1_000_000)
  })
  afterAll(() => front.stop())

  const FREE = { inputPerMillion: 0, outputPerMillion: 0, cachedInputPerMillion: 0 }
  /** Issues a key with limits of each kind. */
  function limitedKey(uid: string, requestsPerMinute: number, tokens: number): string {
    const budgets = [budget(), budget({ name: 'tokens', unit: 'Tokens', amount: tokens, window: 'Lifetime' })]
    world.memory.seed(uid, 'seed')
    const limits = { requestsPerMinute, tokensPerMinute: 10_000, maxConcurrentRequests: 2 }
    return front.issue({ uid, limits, budgets, expiresMs: Date.UTC(2027, 0, 1) })
  }

  const LOOKUPS = served.filter(({ method }) => method !== 'POST')

  test.each(LOOKUPS)('to $method $path are described, with a key and without one', async ({ method, path }) => {
    const ids = path.includes('{id}') ? ['llama', 'small', 'coder', 'gone', 'a%2Fb', '%'] : ['']
    const answered = new Set<number>()
    const credentials = [whole, front.issue({ models: [['llama', 'gone']] }), front.issue({ budgets: [budget()] }), 'sk-other', undefined]
    for (const id of ids) {
      for (const credential of credentials) {
        const headers: Record<string, string> = credential === undefined ? {} : { 'x-api-key': credential }
        const response = await fetch(front.base + path.replace('{id}', id), { method, headers })
        answered.add(response.status)
        expect(await undescribed(response, method, path), `${credential?.slice(0, 6)} ${id}`).toBeUndefined()
      }
    }
    const unseeded = path === '/v1/key' ? [503] : []
    const expected = path === '/' ? [200] : [200, 401, ...(path.includes('{id}') ? [403, 404] : []), ...unseeded]
    expect([...answered].toSorted((a, b) => a - b)).toEqual(expected)
  })

  const CAPS = ['7', '-7', '9'.repeat(15), `-${'9'.repeat(15)}`, '9'.repeat(16), '1.5', 'x']
  const NAMES = [
    'a.b[]',
    'A-1_',
    'a b',
    'ü',
    'a\0b',
    'a'.repeat(128),
    'a'.repeat(129),
    'models',
    'priority',
    'models[]',
    'model.x',
    'stream[0]',
    'mood[]',
  ]
  const FIELDS = [...CAPS.map((cap) => ['max_tokens', cap] as const), ...NAMES.map((name) => [name, 'x'] as const)]
  test.each(FIELDS)('to a form with the field %j of %s are those that its schema foretells', async (name, value) => {
    const path = '/v1/audio/transcriptions'
    const form = new FormData()
    form.append('model', 'llama')
    form.append(name, value)
    form.append('file', new File(['RIFF'], 'a.wav'))
    const { status } = await fetch(front.base + path, { method: 'POST', headers: { 'x-api-key': front.issue() }, body: form })
    const parsed = name === 'max_tokens' ? Number(value) : value
    const isAccepted = check.accepts(bodySchema(path), { model: 'llama', [name]: parsed, file: 'RIFF' })
    expect(status).toBe(isAccepted ? 200 : 400)
  })

  test.each([
    ['timestamp_granularities[]', 200],
    ['temperature', 400],
    ['max_tokens', 400],
    ['file', 400],
  ])('to a form in which %s stands twice are those that its schema foretells', async (name, expected) => {
    const path = '/v1/audio/transcriptions'
    const form = new FormData()
    for (const [field, value] of Object.entries({ model: 'llama', file: 'RIFF' })) form.append(field, value)
    for (const value of name === 'file' ? ['RIFF'] : ['1', '2']) form.append(name, value)
    const { status } = await fetch(front.base + path, { method: 'POST', headers: { 'x-api-key': front.issue() }, body: form })
    const isAccepted = check.accepts(bodySchema(path), { model: 'llama', file: 'RIFF', [name]: ['1', '2'] })
    expect([status, isAccepted]).toEqual([expected, expected === 200])
  })

  test('of a reranker to texts may be a list, as TEI answers', () => {
    const schemaOf = (path: string) => answerOf(operationOf('POST', path), 200)?.content?.['application/json']?.schema ?? {}
    expect(['/v1/rerank', '/v1/embeddings'].map((path) => check.accepts(schemaOf(path), [{ index: 0, score: 1 }]))).toEqual([true, false])
  })

  test.each(['/v1/chat/completions', '/v1/messages'])(
    'to a call of %s that a limit refuses are described, with the limit',
    async (path) => {
      const body = JSON.stringify({ model: 'llama', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] })
      const ask = (key: string) => fetch(front.base + path, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body })
      const [slow, poor] = [limitedKey(`slow ${path}`, 1, 1_000_000), limitedKey(`poor ${path}`, 10, 1)]
      const answers = [await ask(slow), await ask(slow), await ask(poor)]
      expect(answers.map(({ status }) => status)).toEqual([200, 429, 402])
      for (const answer of answers) {
        const { error } = (await answer.clone().json()) as { error?: { metadata?: unknown } }
        expect(error?.metadata === undefined).toBe(answer.status === 200)
        expect(await undescribed(answer, 'POST', path)).toBeUndefined()
      }
    },
  )
})

/** Every `$ref` below a value. */
function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, part]) => (name === '$ref' ? [String(part)] : references(part)))
}
