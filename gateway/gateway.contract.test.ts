import { createServer, type Server, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MemoryProjection } from '../standalone/memory-projection.ts'
import { listening } from '../test/support/listening.ts'
import { backendRecord, issuedKey, modelText, recordText, writer } from '../test/support/records.ts'
import { runningGateway } from '../test/support/running-gateway.ts'
import { sharedBodyReader } from '../test/support/shared-body-reader.ts'
import { eventually } from '../test/support/wait-for.ts'
import type { Gateway } from './gateway.ts'
import { LeaseLedger } from './limits/lease-ledger.ts'
import { MemoryLedgerStore } from './limits/memory-ledger.ts'
import { systemClock } from '#platform/clock.ts'

const CHUNK = 'data: {"id":"1","object":"chat.completion.chunk","model":"llama","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
const { credential, record } = issuedKey('a')

let store: MemoryProjection
let gateway: Gateway
let url: string
let stop: () => Promise<void>
let backend: Server
let backendPort: number
let streams: ServerResponse[]

const bodyReader = {
  ...sharedBodyReader,
  stop: () => {
    stops += 1
    return Promise.resolve()
  },
}
let stops: number

beforeEach(async () => {
  streams = []
  stops = 0
  backend = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(CHUNK)
    streams.push(response)
  })
  backendPort = await listening(backend)
  store = new MemoryProjection()
  const ledger = new LeaseLedger({ store: new MemoryLedgerStore(() => Date.now()), clock: systemClock, process: 'p', live: () => 1 })
  ;({ gateway, url, stop } = await runningGateway(store, { ledger, bodyReader }))
})
afterEach(async () => {
  await stop()
  backend.close()
  backend.closeAllConnections()
})

/** Starts the gateway with a data set that is there already: the gateway searches for a later one twice a second. */
async function started(): Promise<void> {
  await build()
  await gateway.start()
  await eventually(() => expect(gateway.health.isReady()).toBe(true))
}

async function build(): Promise<void> {
  const model = modelText('llama', { backends: [backendRecord({ endpoints: [`127.0.0.1:${backendPort}`] })] })
  await store.rebuild(writer(), 'e1', 1, [
    { kind: 'key', op: 'put', id: 'a', text: recordText(record) },
    { kind: 'model', op: 'put', id: 'llama', text: model },
  ])
}

function ask(content = 'hi', key: string = credential): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'llama', stream: true, messages: [{ role: 'user', content }] }),
  })
}

describe('a gateway', () => {
  test('answers 503 until it has its table, and never 401 for a key that it may not know yet', async () => {
    await gateway.start()
    expect(gateway.health.isReady()).toBe(false)
    expect((await ask()).status).toBe(503)
    await build()
    await eventually(() => expect(gateway.health.isReady()).toBe(true))
    const answer = await ask()
    expect(answer.status).toBe(200)
    streams.forEach((stream) => stream.end())
    await answer.text()
  })

  test('ends a running stream within a second or two when its key is suspended', async () => {
    await started()
    const running = await ask()
    await store.write(writer(), 'e1', [{ kind: 'key', op: 'put', id: 'a', text: recordText({ ...record, state: 'Suspended' }) }])
    expect(await running.text()).toMatch(/"content":"a"[^]*Authentication Error: API key suspended/)
    expect((await ask()).status).toBe(401)
  })

  test('that leaves serves on while calls still come: its endpoint is not forgotten yet', async () => {
    await started()
    let leftMs: number | undefined
    const left = gateway.leave(1_000, 60_000).then((ms) => (leftMs = ms))
    expect(gateway.health.isReady()).toBe(false)
    const began = performance.now()
    let [longestMs, calledMs] = [0, began]
    const isLeft = (): boolean => leftMs !== undefined && longestMs < 800 // after a second without a call, the wait may end
    while (performance.now() - began < 1_500) {
      const served = await ask()
      streams.pop()?.end('data: [DONE]\n\n')
      await served.text()
      const nowMs = performance.now()
      ;[longestMs, calledMs] = [Math.max(longestMs, nowMs - calledMs), nowMs]
      expect([served.status, isLeft()]).toEqual([200, false])
    }
    await left
  })

  test('that leaves serves the next call on a connection whose stream outlasts the time for its endpoint', async () => {
    await started()
    const running = await ask()
    let leftMs: number | undefined
    const left = gateway.leave(50, 60_000).then((ms) => (leftMs = ms))
    await sleep(200)
    expect(leftMs, 'a call still runs').toBeUndefined()
    streams.pop()?.end('data: [DONE]\n\n')
    await running.text()
    const next = await ask()
    streams.pop()?.end('data: [DONE]\n\n')
    expect([next.status, next.headers.get('connection')]).toEqual([200, 'close'])
    await next.text()
    await left
  })

  test('that leaves is not held by requests without a key', async () => {
    await started()
    let leftMs: number | undefined
    const left = gateway.leave(300, 60_000).then((ms) => (leftMs = ms))
    while (leftMs === undefined) await (await fetch(`${url}/nothing`)).text()
    expect(leftMs, 'of a minute that calls may take').toBeGreaterThan(0)
    await left
  })

  test('counts the calls of keys with limits by decision, without naming a key', async () => {
    await started()
    const limited = issuedKey('b', { limits: { requestsPerMinute: 1 } })
    await store.write(writer(), 'e1', [{ kind: 'key', op: 'put', id: 'b', text: recordText(limited.record) }])
    await eventually(() => expect(gateway.keys.size).toBe(2))
    const first = await ask('hi', limited.credential)
    expect([first.status, (await ask('hi', limited.credential)).status]).toEqual([200, 429])
    streams.forEach((stream) => stream.end())
    await first.text()
    const metrics = await gateway.health.metrics.render()
    expect(metrics).toMatch(/^headgate_limit_decisions_total\{outcome="held",limit=""\} 1$/m)
    expect(metrics).toMatch(/^headgate_limit_decisions_total\{outcome="refused",limit="requests"\} 1$/m)
    expect(metrics).toMatch(/^headgate_limit_store_breaker\{state="closed"\} 1$/m)
    expect(metrics).toMatch(/^headgate_limit_subjects 1$/m)
  })

  test('reads large bodies in a worker, which ends with the gateway', async () => {
    await started()
    const answer = await ask('x'.repeat(500_000))
    expect(answer.status).toBe(200)
    streams.forEach((stream) => stream.end())
    await answer.text()
    await gateway.stop()
    expect(stops).toBe(1)
  })
})
