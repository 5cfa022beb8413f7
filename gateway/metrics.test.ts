import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { register } from 'prom-client'
import { expect, test } from 'vitest'
import { sharedError } from './errors.ts'
import { Exchange } from './http/exchange.ts'
import { createMetrics } from './metrics.ts'

function exchange(): Exchange {
  const request = new IncomingMessage(new Socket())
  return new Exchange(request, new ServerResponse(request), 'openai')
}

test('a finished request is counted by route, served model, status class and backend', async () => {
  const metrics = createMetrics()
  const call = exchange()
  Object.assign(call, { route: '/v1/messages', model: 'llama', backend: 'one', askedModel: 'whatever a client sends' })
  call.response.writeHead(200)
  metrics.started()
  metrics.finished(call)
  const text = await metrics.render()
  expect(text).toContain('headgate_requests_total{route="/v1/messages",model="llama",status="2xx",backend="one"} 1')
  expect(text).toContain('headgate_request_duration_seconds_count{route="/v1/messages",model="llama"} 1')
  expect(text).toContain('headgate_requests_in_flight 0')
  expect(text).not.toContain('whatever a client sends')
})

test('refusals are counted by row, also those of bytes that never became a request', async () => {
  const metrics = createMetrics()
  const refused = exchange()
  refused.error = sharedError('unknownKey')
  metrics.finished(refused)
  metrics.refused(sharedError('malformedRequest'))
  const text = await metrics.render()
  expect(text).toContain('headgate_errors_total{row="3",error="unknownKey"} 1')
  expect(text).toContain('headgate_errors_total{row="37",error="malformedRequest"} 1')
})

test('the applied revision of the projection is shown', async () => {
  const metrics = createMetrics()
  metrics.setRevision(42)
  expect(await metrics.render()).toContain('headgate_projection_revision 42')
})

test('two processes in one do not share a registry, and the global one stays empty', async () => {
  createMetrics()
  createMetrics()
  expect(register.getMetricsAsArray()).toEqual([])
})
