import { register } from 'prom-client'
import { beforeEach, describe, expect, test } from 'vitest'
import { unsentExchange } from '../test/support/unsent-exchange.ts'
import { sharedError } from './errors.ts'
import { createMetrics } from './metrics.ts'

const follower = { position: { epoch: 'e', revision: 42 }, unreadForMs: 0, unreadableRecords: 0, loadedFrom: 'Redis' } as const
const ledger = {
  stats: { waited: 0, subjects: 0, local: 0, calls: 0, ends: { answered: 0, refused: 0, failed: 0 } },
  breaker: 'closed',
} as const
const modelOf = (servedName: string, namespace = 'shop', backends = ['one']) => ({
  record: { namespace, servedName },
  backends: backends.map((name) => ({ name })),
})
/** The models that there are. */
let models: ReturnType<typeof modelOf>[]
const metricsOf = () => createMetrics({ requestsInFlight: () => 3, keys: { size: 0 }, models: { entries: () => models }, follower, ledger })
beforeEach(() => (models = ['llama', 'a"b'].map((name) => modelOf(name))))

/** Counts a call with the answer 200. */
function call(metrics: ReturnType<typeof metricsOf>, model: string, { namespace = 'shop', backend = 'one' } = {}): void {
  const exchange = unsentExchange()
  Object.assign(exchange, { route: '/v1/messages', model, modelNamespace: namespace, backend })
  exchange.response.writeHead(200)
  metrics.finished(exchange)
}

/** Values of a label of the counter of requests. */
async function labelsOf(metrics: ReturnType<typeof metricsOf>, label: string): Promise<string[]> {
  const lines = (await metrics.render()).split('\n').filter((line) => line.startsWith('headgate_requests_total{'))
  return lines.map((line) => new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1] ?? '')
}

test('a finished request is counted by route, served model, status class and backend', async () => {
  const metrics = metricsOf()
  const call = unsentExchange()
  Object.assign(call, {
    route: '/v1/messages',
    model: 'llama',
    modelNamespace: 'shop',
    backend: 'one',
    askedModel: 'whatever a client sends',
  })
  call.response.writeHead(200)
  metrics.finished(call)
  const text = await metrics.render()
  expect(text).toContain('headgate_requests_total{route="/v1/messages",model_namespace="shop",model="llama",status="2xx",backend="one"} 1')
  expect(text).toContain('headgate_request_duration_seconds_count{route="/v1/messages",model_namespace="shop",model="llama"} 1')
  expect(text).toContain('headgate_requests_in_flight 3')
  expect(text).not.toContain('whatever a client sends')
})

test('the histogram of durations is cumulative, with sum and count, and labels are escaped', async () => {
  const metrics = metricsOf()
  for (const seconds of [0.005, 0.2, 1_000]) {
    const call = unsentExchange()
    Object.assign(call, { route: '/v1/messages', model: 'a"b', modelNamespace: 'shop', startedMs: performance.now() - seconds * 1_000 })
    metrics.finished(call)
  }
  const text = await metrics.render()
  const series = (name: string): string | undefined =>
    text.split('\n').find((line) => line.startsWith(`headgate_request_duration_seconds_${name}`))
  const labels = String.raw`route="/v1/messages",model_namespace="shop",model="a\"b"`
  expect(text).toContain('# TYPE headgate_request_duration_seconds histogram')
  const buckets = { 0.01: 1, 0.1: 1, 0.25: 2, 300: 2, '+Inf': 3 }
  for (const [bound, count] of Object.entries(buckets)) expect(text).toContain(`_bucket{le="${bound}",${labels}} ${count}\n`)
  expect(series('count')).toBe(`headgate_request_duration_seconds_count{${labels}} 3`)
  expect(Number(series('sum')?.split(' ').at(-1))).toBeCloseTo(1_000.2, 0)
  expect(text).toContain(
    String.raw`headgate_requests_total{route="/v1/messages",model_namespace="shop",model="a\"b",status="none",backend=""} 3`,
  )
})

test('refusals are counted by row, also those of bytes that never became a request', async () => {
  const metrics = metricsOf()
  const refused = unsentExchange()
  refused.error = sharedError('unknownKey')
  metrics.finished(refused)
  metrics.refused(sharedError('malformedRequest'))
  const text = await metrics.render()
  expect(text).toContain('headgate_errors_total{row="3",error="unknownKey"} 1')
  expect(text).toContain('headgate_errors_total{row="37",error="malformedRequest"} 1')
})

test('the applied revision of the projection is shown', async () => {
  expect(await metricsOf().render()).toContain('headgate_projection_revision 42')
})

test('two processes in one do not share a registry, and the global one stays empty', async () => {
  metricsOf()
  metricsOf()
  expect(register.getMetricsAsArray()).toEqual([])
})

describe('an author of ServedModels who renames them again and again', () => {
  test('leaves no series behind: a name has series only while a model has it', async () => {
    const metrics = metricsOf()
    const sizes: number[] = []
    for (let round = 0; round < 8; round++) {
      models = Array.from({ length: 40 }, (_, number) => modelOf(`name-${round}-${number}`))
      for (const { record } of models) call(metrics, record.servedName)
      sizes.push((await metrics.render()).split('\n').length)
    }
    expect(new Set(sizes).size).toBe(1)
    models = []
    expect((await metrics.render()).split('\n').filter((line) => line.includes('shop'))).toEqual([])
  })

  test('has at most 200 names between two scrapes and for many models, and the rest counts as "other"', async () => {
    const metrics = metricsOf()
    models = Array.from({ length: 300 }, (_, number) => modelOf(`name-${number}`))
    for (const { record } of models) call(metrics, record.servedName)
    call(metrics, 'llama', { namespace: 'other-tenant' })
    models.push(modelOf('llama', 'other-tenant'))
    const names = await labelsOf(metrics, 'model')
    expect([names.length, names.at(-2), names.at(-1)]).toEqual([202, 'other', 'llama'])
    expect(await metrics.render()).toContain('model="other",status="2xx",backend="one"} 100')
  })

  test('does not fill the process where nobody scrapes', async () => {
    const metrics = metricsOf()
    for (let number = 0; number < 1_000; number++) {
      models = [modelOf(`name-${number}`)]
      call(metrics, `name-${number}`)
    }
    models = Array.from({ length: 1_000 }, (_, number) => modelOf(`name-${number}`))
    expect((await labelsOf(metrics, 'model')).length).toBeLessThanOrEqual(201)
  })

  test('has series of the backends that the model has now, and of no more than a few dozen', async () => {
    const metrics = metricsOf()
    const backends = Array.from({ length: 100 }, (_, number) => `backend-${number}`)
    models = [modelOf('llama', 'shop', backends)]
    for (const backend of backends) call(metrics, 'llama', { backend })
    expect((await labelsOf(metrics, 'backend')).length).toBeLessThanOrEqual(34)
    models = [modelOf('llama', 'shop', ['backend-3'])]
    expect(await labelsOf(metrics, 'backend')).toEqual(['backend-3', 'other'])
  })
})

test('models with one name in two namespaces have series of their own', async () => {
  const metrics = metricsOf()
  models.push(modelOf('llama', 'team-b'))
  for (const namespace of ['shop', 'team-b']) call(metrics, 'llama', { namespace })
  expect(await labelsOf(metrics, 'model_namespace')).toEqual(['shop', 'team-b'])
})
