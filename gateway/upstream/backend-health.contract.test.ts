import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { deadAddress } from '../../test/support/upstream-harness.ts'
import { BackendHealth, EndpointHealth, tcpProbe } from './backend-health.ts'
import { Ticker } from './ticker.ts'
import { systemClock } from '#platform/clock.ts'
import { guardedLookup, NameLookup } from './name-lookup.ts'

interface World {
  readonly health: BackendHealth
  readonly endpoint: EndpointHealth
  readonly probes: string[]
  readonly ticker: Ticker
  isOpen: boolean
  /** Lets seconds pass. */
  readonly pass: (seconds: number) => Promise<void>
}

function world(): World {
  const ticker = new Ticker(1_000_000)
  const probes: string[] = []
  const health = new BackendHealth(ticker, ({ host, port }) => {
    probes.push(`${host}:${port}`)
    return Promise.resolve(it.isOpen)
  })
  const it: World = {
    health,
    endpoint: new EndpointHealth('http://10.0.0.1:80', 'shop'),
    probes,
    ticker,
    isOpen: false,
    async pass(seconds) {
      for (let i = 0; i < seconds; i++) {
        ticker.tick()
        await Promise.resolve()
        await Promise.resolve()
      }
    },
  }
  return it
}

describe('the health of an endpoint', () => {
  it('is lost at once when a connection fails', () => {
    const { health, endpoint } = world()
    health.connectFailed(endpoint)
    expect(endpoint.isUp).toBe(false)
  })

  it('is lost after five failures in a row, not before and not with a success in between', () => {
    const { health, endpoint } = world()
    for (let i = 0; i < 4; i++) health.failed(endpoint)
    health.succeeded(endpoint)
    for (let i = 0; i < 4; i++) health.failed(endpoint)
    expect(endpoint.isUp).toBe(true)
    health.failed(endpoint)
    expect(endpoint.isUp).toBe(false)
  })

  it('is asked for less and less often while it stays away, every 30 s at last', async () => {
    const { health, endpoint, probes, pass } = world()
    health.connectFailed(endpoint)
    const counts: number[] = []
    for (const seconds of [1, 2, 4, 8, 16, 30, 30, 30]) {
      await pass(seconds)
      counts.push(probes.length)
    }
    expect(counts).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('comes back after one TCP connect; a failure right after ejects at once and for longer, a success resets everything', async () => {
    const here = world()
    const { health, endpoint, pass } = here
    health.connectFailed(endpoint)
    here.isOpen = true
    await pass(1)
    expect(endpoint.isUp).toBe(true)
    health.failed(endpoint)
    expect(endpoint.isUp).toBe(false)
    await pass(1)
    expect(endpoint.isUp).toBe(false)
    await pass(1)
    expect(endpoint.isUp).toBe(true)
    health.succeeded(endpoint)
    expect(endpoint).toMatchObject({ failures: 0, ejections: 0 })
  })

  it('returns with a good answer, without a probe', () => {
    const { health, endpoint } = world()
    health.connectFailed(endpoint)
    health.succeeded(endpoint)
    expect(endpoint.isUp).toBe(true)
  })

  it('of an endpoint that has left the model is asked for no more', async () => {
    const { health, endpoint, probes, pass, ticker } = world()
    health.connectFailed(endpoint)
    endpoint.isRetired = true
    await pass(3)
    expect(probes).toEqual([])
    expect(ticker.size).toBe(0)
  })
})

describe('the probe', () => {
  const names = new NameLookup({ clock: systemClock, maxInFlight: 2 })
  const probeBy = (allowLoopback: boolean) => {
    const lookup = guardedLookup({ allowLoopback }, (hostname, done) => names.find(hostname, 'shop', done))
    const probe = tcpProbe(() => lookup, 1_000)
    return (host: string, port: number) => probe({ host, port, namespace: 'shop' })
  }
  const probe = probeBy(true)

  it('distinguishes an open port from a closed one', async () => {
    const server = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    expect(await probe('127.0.0.1', port)).toBe(true)
    await new Promise((resolve) => server.close(resolve))
    expect(await probe('127.0.0.1', Number((await deadAddress()).split(':')[1]))).toBe(false)
  })

  it('does not reach an address that a request may not reach', async () => {
    expect(await probeBy(false)('localhost', 1)).toBe(false)
  })
})
