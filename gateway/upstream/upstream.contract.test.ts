import { createServer } from 'node:https'
import type { LookupFunction } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { TEST_CA, TEST_SERVER_CERT, TEST_SERVER_KEY } from '../../test/support/tls-fixture.ts'
import {
  CHAT,
  HELLO,
  Harness,
  backendRecord,
  json,
  listenInTest,
  modelRecord,
  startBackend,
  until,
} from '../../test/support/upstream-harness.ts'
import { Ticker } from './ticker.ts'
import { EndpointHealth } from './backend-health.ts'
import { connectorWithin, UpstreamPools } from './upstream-pools.ts'

const OK = { choices: [] }
const noNames: LookupFunction = (_name, _options, done) => done(new Error('no names here'), [])

describe('an https backend', () => {
  async function startTls(): Promise<string> {
    const server = createServer({ cert: TEST_SERVER_CERT, key: TEST_SERVER_KEY }, (request, response) => {
      request.resume()
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(OK))
    })
    return `https://localhost:${await listenInTest(server)}`
  }

  it('with a private CA is served when that CA is given', async () => {
    const gateway = await new Harness({ extraCa: TEST_CA }).start()
    gateway.put(modelRecord({ backends: [backendRecord({ url: await startTls() })] }))
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 200, text: JSON.stringify(OK) })
  })

  it('with a certificate of an unknown CA gets no request', async () => {
    const gateway = await new Harness().start()
    gateway.put(modelRecord({ backends: [backendRecord({ url: await startTls() })] }))
    expect(await gateway.post(CHAT, HELLO)).toMatchObject({ status: 503 })
    expect(String(gateway.refusals[0]?.cause)).toContain('certificate')
  })
})

describe('a failing endpoint', () => {
  it('is ejected after five errors in a row, reported to the operator, and readmitted after a TCP connect', async () => {
    let isBroken = true
    const bad = await startBackend((response, received) => json(isBroken ? 500 : 200, OK)(response, received))
    const good = await startBackend(json(200, OK))
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }) // no probe before the test says so, however slow the machine
    onTestFinished(() => void vi.useRealTimers())
    const gateway = await new Harness({ tickMs: 1_000 }).start()
    gateway.put(modelRecord({ backends: [backendRecord({ endpoints: [bad.address, good.address] })] }))
    for (let i = 0; i < 5; i++) expect((await gateway.post(CHAT, HELLO)).status).toBe(500 + 2)
    expect(gateway.upstream.unhealthy()).toEqual({ 'uid-1/main': { up: 1, total: 2 } })
    expect((await gateway.post(CHAT, HELLO)).status).toBe(200)
    expect(good.received).toHaveLength(1)
    isBroken = false
    vi.advanceTimersByTime(2_000)
    await until(() => Object.keys(gateway.upstream.unhealthy()).length === 0)
    expect((await gateway.post(CHAT, HELLO)).status).toBe(200)
    expect(bad.received).toHaveLength(6)
  })
})

describe('connection pools', () => {
  it('are closed after five minutes without requests', async () => {
    const ticker = new Ticker(1_000_000)
    const pools = new UpstreamPools(ticker, { lookup: () => noNames, extraCa: undefined, connectTimeoutMs: 100 })
    const first = pools.of(new EndpointHealth('http://10.0.0.1:80', 'shop'))
    expect(pools.of(new EndpointHealth('http://10.0.0.1:80', 'shop'))).toBe(first)
    expect(pools.of(new EndpointHealth('http://10.0.0.1:80', 'other'))).not.toBe(first)
    for (let i = 0; i < 300; i++) ticker.tick()
    expect(ticker.size).toBe(0)
    expect(first.closed).toBe(true)
    expect(pools.of(new EndpointHealth('http://10.0.0.1:80', 'shop'))).not.toBe(first)
    await pools.close()
  })

  it('a connection fails if it is not open within its time, including the look-up of the name', async () => {
    const silent = (): void => undefined
    const connect = connectorWithin(20, { lookup: silent })
    const error = await new Promise<Error | null>((resolve) =>
      connect({ hostname: 'silent.example', protocol: 'http:', port: '80' }, (...[failure]) => resolve(failure)),
    )
    expect(error).toMatchObject({ code: 'UND_ERR_CONNECT_TIMEOUT', message: 'no connection within 20 ms' })
  })

  it('a connection that opens while the process stands still for longer than its time is used', async () => {
    const port = await listenInTest(createServer())
    const connect = connectorWithin(200, {})
    await setImmediate() // timers are the next phase of the event loop
    const connected = new Promise<Error | null>((resolve) =>
      connect({ hostname: '127.0.0.1', protocol: 'http:', port: String(port) }, (failure, socket) => {
        socket?.destroy()
        resolve(failure)
      }),
    )
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250)
    expect(await connected).toBeNull()
  })
})
