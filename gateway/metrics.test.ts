import { register } from 'prom-client'
import { expect, test } from 'vitest'
import { unsentExchange } from '../test/support/unsent-exchange.ts'
import { sharedError } from './errors.ts'
import { createMetrics } from './metrics.ts'

const follower = { position: { epoch: 'e', revision: 42 }, unreadForMs: 0, unreadableRecords: 0, loadedFrom: 'Redis' } as const
const ledger = {
  stats: { waited: 0, subjects: 0, local: 0, calls: 0, ends: { answered: 0, refused: 0, failed: 0 } },
  breaker: 'closed',
} as const
const metricsOf = () => createMetrics({ requestsInFlight: () => 3, keys: { size: 0 }, follower, ledger })

test('a finished request is counted by route, served model, status class and backend', async () => {
  const metrics = metricsOf()
  const call = unsentExchange()
  Object.assign(call, { route: '/v1/messages', model: 'llama', backend: 'one', askedModel: 'whatever a client sends' })
  call.response.writeHead(200)
  metrics.finished(call)
  const text = await metrics.render()
  expect(text).toContain('headgate_requests_total{route="/v1/messages",model="llama",status="2xx",backend="one"} 1')
  expect(text).toContain('headgate_request_duration_seconds_count{route="/v1/messages",model="llama"} 1')
  expect(text).toContain('headgate_requests_in_flight 3')
  expect(text).not.toContain('whatever a client sends')
})

test('the histogram of durations is cumulative, with sum and count, and labels are escaped', async () => {
  const metrics = metricsOf()
  for (const seconds of [0.005, 0.2, 1_000]) {
    const call = unsentExchange()
    Object.assign(call, { route: '/v1/messages', model: 'a"b', startedMs: performance.now() - seconds * 1_000 })
    metrics.finished(call)
  }
  const text = await metrics.render()
  const series = (name: string): string | undefined =>
    text.split('\n').find((line) => line.startsWith(`headgate_request_duration_seconds_${name}`))
  const labels = String.raw`route="/v1/messages",model="a\"b"`
  expect(text).toContain('# TYPE headgate_request_duration_seconds histogram')
  const buckets = { 0.01: 1, 0.1: 1, 0.25: 2, 300: 2, '+Inf': 3 }
  for (const [bound, count] of Object.entries(buckets)) expect(text).toContain(`_bucket{le="${bound}",${labels}} ${count}\n`)
  expect(series('count')).toBe(`headgate_request_duration_seconds_count{${labels}} 3`)
  expect(Number(series('sum')?.split(' ').at(-1))).toBeCloseTo(1_000.2, 0)
  expect(text).toContain(String.raw`headgate_requests_total{route="/v1/messages",model="a\"b",status="none",backend=""} 3`)
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
