import { getCACertificates } from 'node:tls'
import { type LookupFunction, Socket } from 'node:net'
import { buildConnector, errors, Pool } from 'undici'
import { NO_SLOT } from '#platform/intrusive-set.ts'
import type { EndpointHealth } from './backend-health.ts'
import type { Ticker, Ticked } from './ticker.ts'

interface PoolSettings {
  /** Guarded look-up, which refuses names that resolve to refused addresses. @param namespace of the model whose backend has the name */
  readonly lookup: (namespace: string) => LookupFunction
  /** PEM of certificate authorities for https backends, besides the well-known ones. */
  readonly extraCa: string | undefined
  readonly connectTimeoutMs: number
}

/** Below the 5 s after which uvicorn, and so vLLM, closes an idle connection, so that requests do not meet a closing socket. */
const KEEP_ALIVE_MS = 4_000
/** A pool that was not used for this long is closed, because pods of model servers come and go. */
const UNUSED_TICKS = 300
/** Parts of the time to connect. A stall of this process takes one of them, however long: connections that opened meanwhile are read first. */
const CONNECT_STEPS = 4

interface Used {
  readonly pool: Pool
  lastAskedAt: number
}

/**
 * One connection pool per origin and namespace, because tenants share neither connections nor look-ups of names. HTTP/1.1, one request at a
 * time per connection, no interceptors, no redirects.
 */
export class UpstreamPools implements Ticked {
  slot = NO_SLOT
  readonly #ticker: Ticker
  readonly #settings: PoolSettings
  readonly #ca: string[] | undefined
  readonly #pools = new Map<string, Used>()

  constructor(ticker: Ticker, settings: PoolSettings) {
    this.#ticker = ticker
    this.#settings = settings
    this.#ca = settings.extraCa === undefined ? undefined : [...getCACertificates('default'), settings.extraCa]
  }

  of({ poolKey, origin, namespace }: EndpointHealth): Pool {
    let used = this.#pools.get(poolKey)
    if (used === undefined) {
      used = { pool: this.#make(origin, namespace), lastAskedAt: 0 }
      this.#pools.set(poolKey, used)
      this.#ticker.add(this)
    }
    used.lastAskedAt = this.#ticker.now
    return used.pool
  }

  onTick(now: number): void {
    for (const [key, { pool, lastAskedAt }] of this.#pools) {
      if (now - lastAskedAt < UNUSED_TICKS || pool.stats.size > 0) continue
      this.#pools.delete(key)
      void pool.close()
    }
    if (this.#pools.size === 0) this.#ticker.delete(this)
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()]
    this.#pools.clear()
    this.#ticker.delete(this)
    await Promise.all(pools.map(({ pool }) => pool.destroy()))
  }

  #make(origin: string, namespace: string): Pool {
    const { lookup, connectTimeoutMs } = this.#settings
    return new Pool(origin, {
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS, // a server's hint may shorten the time, never lengthen it
      connect: connectorWithin(connectTimeoutMs, {
        lookup: lookup(namespace),
        allowH2: false,
        ...(this.#ca === undefined ? {} : { ca: this.#ca }),
      }),
    })
  }
}

/**
 * Makes a connector. undici's timer refers to each socket by a WeakRef until its next half-second tick, and a minor garbage collection
 * treats the WeakRef as a strong reference. If a server breaks its connections, every request with all of its buffers would be promoted,
 * and a full collection would take 50 ms every two seconds. undici's timer would also fail connections that opened while this process stood still.
 * @param timeoutMs to the end of the handshake, including the look-up of the name
 */
export function connectorWithin(timeoutMs: number, options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector({ ...options, timeout: 0 })
  return (server, done) => {
    let steps = 0
    let timer: NodeJS.Timeout | undefined = undefined
    const given = (...result: Parameters<buildConnector.Callback>): void => {
      clearInterval(timer)
      done(...result)
    }
    const socket: unknown = connect(server, given) // the types omit that it returns the socket
    timer = setInterval(() => {
      steps += 1
      if (steps < CONNECT_STEPS) return
      clearInterval(timer)
      if (socket instanceof Socket) socket.destroy(new errors.ConnectTimeoutError(`no connection within ${timeoutMs} ms`))
    }, timeoutMs / CONNECT_STEPS)
  }
}
