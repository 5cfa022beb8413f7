import { createServer, type Server } from 'node:http'
import express from 'express'
import { afterEach, expect, test } from 'vitest'
import { listening } from '../../test/support/listening.ts'
import { createMetrics } from '../metrics.ts'
import { createHealthApp, healthRoutes } from './health.ts'

const follower = { position: undefined, unreadForMs: 0, unreadableRecords: 0, loadedFrom: 'None' } as const
const ledger = {
  stats: { waited: 0, subjects: 0, local: 0, calls: 0, ends: { answered: 0, refused: 0, failed: 0 } },
  breaker: 'closed',
} as const
let server: Server

async function start(isReady: () => boolean): Promise<(path: string) => Promise<{ status: number; text: string; type: string | null }>> {
  server = createServer(
    createHealthApp({
      isReady,
      metrics: createMetrics({ requestsInFlight: () => 0, keys: { size: 0 }, models: { entries: () => [] }, follower, ledger }),
    }),
  )
  const port = await listening(server)
  return async (path) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    return { status: response.status, text: await response.text(), type: response.headers.get('content-type') }
  }
}

afterEach(() => void server.close())

test('a process that is not ready is still alive', async () => {
  let ready = false
  const get = await start(() => ready)
  expect(await get('/healthz')).toMatchObject({ status: 200, text: 'ok\n' })
  expect((await get('/readyz')).status).toBe(503)
  ready = true
  expect((await get('/readyz')).status).toBe(200)
})

test('metrics are in the Prometheus text format', async () => {
  const get = await start(() => true)
  const { status, text, type } = await get('/metrics')
  expect([status, type]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  expect(text).toContain('# TYPE headgate_requests_total counter')
  expect(text).toContain('process_cpu_seconds_total')
})

test('metrics that cannot be rendered are an error in plain text, on the API port as well', async () => {
  const metrics = { contentType: 'text/plain', render: () => Promise.reject(new Error('a bug')) }
  server = createServer(express().use(healthRoutes({ isReady: () => true, metrics })))
  const answer = await fetch(`http://127.0.0.1:${await listening(server)}/metrics`)
  expect([answer.status, await answer.text()]).toEqual([500, 'internal error\n'])
})
