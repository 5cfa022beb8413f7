/**
 * The health of each endpoint as this process has seen it. It is passive: requests report their results, and healthy endpoints get no
 * probes. An ejected endpoint is skipped while there is another, and readmitted after one TCP connect, which a timer makes and no
 * request waits for (decision 19). Ejection never makes a model unavailable: if no other endpoint is left, `dispatch.ts` uses ejected
 * ones too.
 */
import { connect, type LookupFunction, type TcpNetConnectOpts } from 'node:net'
import { NO_SLOT } from '#platform/intrusive-set.ts'
import type { Ticker, Ticked } from './ticker.ts'

/** Failures in a row that eject. A backend that answers 500 to one odd request stays. */
const FAILURES_TO_EJECT = 5
/** Longest ejection, seconds. The first lasts 1 s, each further one twice as long. */
const MAX_EJECTION_SECONDS = 30

/** One endpoint of one backend, with counters of this process. */
export class EndpointHealth {
  /** For example `http://10.1.2.3:8000`. */
  readonly origin: string
  readonly namespace: string
  /** Name of its connection pool. Built once, because each request looks up its pool. */
  readonly poolKey: string
  /** Address for the probe. */
  readonly host: string
  readonly port: number
  /** Running requests. The least loaded endpoint is picked. */
  inFlight = 0
  isUp = true
  failures = 0
  /** Number of ejections since the last success. Each doubles the next ejection. */
  ejections = 0
  /** Tick from which a probe may readmit the endpoint. */
  probeAt = 0
  isProbing = false
  /** Whether the endpoint no longer belongs to the model, so that probes end. */
  isRetired = false

  constructor(origin: string, namespace: string) {
    const { hostname, port, protocol } = new URL(origin)
    this.origin = origin
    this.namespace = namespace
    this.poolKey = `${namespace} ${origin}`
    this.host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
    this.port = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)
  }
}

/** Tries one TCP connect. @returns whether it succeeded */
type Probe = (endpoint: Pick<EndpointHealth, 'host' | 'port' | 'namespace'>) => Promise<boolean>

export class BackendHealth implements Ticked {
  slot = NO_SLOT
  readonly #ticker: Ticker
  readonly #probe: Probe
  readonly #ejected = new Set<EndpointHealth>()

  constructor(ticker: Ticker, probe: Probe) {
    this.#ticker = ticker
    this.#probe = probe
  }

  /** Reports a failed connection. It ejects at once, because no request can succeed there. */
  connectFailed(endpoint: EndpointHealth): void {
    endpoint.failures++
    this.#eject(endpoint)
  }

  /** Reports a 5xx, a reset, a time-out or an unreadable answer. */
  failed(endpoint: EndpointHealth): void {
    endpoint.failures++
    if (endpoint.failures >= FAILURES_TO_EJECT) this.#eject(endpoint)
  }

  /** Reports any other answer, a 400 included. It readmits the endpoint: an answer proves more than a probe. */
  succeeded(endpoint: EndpointHealth): void {
    endpoint.failures = 0
    endpoint.ejections = 0
    if (!endpoint.isUp) this.#readmit(endpoint)
  }

  onTick(now: number): void {
    for (const endpoint of this.#ejected) {
      if (endpoint.isRetired) this.#ejected.delete(endpoint)
      else if (!endpoint.isProbing && now >= endpoint.probeAt) void this.#tryAgain(endpoint)
    }
    if (this.#ejected.size === 0) this.#ticker.delete(this)
  }

  #eject(endpoint: EndpointHealth): void {
    if (!endpoint.isUp || endpoint.isRetired) return
    endpoint.isUp = false
    this.#backOff(endpoint)
    this.#ejected.add(endpoint)
    this.#ticker.add(this)
  }

  #backOff(endpoint: EndpointHealth): void {
    endpoint.ejections++
    endpoint.probeAt = this.#ticker.now + Math.min(MAX_EJECTION_SECONDS, 2 ** (endpoint.ejections - 1))
  }

  #readmit(endpoint: EndpointHealth): void {
    endpoint.isUp = true
    this.#ejected.delete(endpoint)
  }

  async #tryAgain(endpoint: EndpointHealth): Promise<void> {
    endpoint.isProbing = true
    const isOpen = await this.#probe(endpoint)
    endpoint.isProbing = false
    if (endpoint.isUp) return // a request has already readmitted it
    if (!isOpen) return this.#backOff(endpoint)
    endpoint.failures = FAILURES_TO_EJECT - 1 // an open port proves little: one more failure ejects the endpoint again, for longer
    this.#readmit(endpoint)
  }
}

/**
 * Makes the Probe.
 * @param lookup guarded like the look-up of a request, because a probe must not reach an address that a request may not
 */
export function tcpProbe(lookup: (namespace: string) => LookupFunction, timeoutMs: number): Probe {
  return async ({ host, port, namespace }) =>
    (await connectionError({ host, port, lookup: lookup(namespace), timeout: timeoutMs })) === undefined
}

/** Opens a TCP connection and closes it at once, without sending anything. @returns why it could not be opened; 'timeout' after `timeout` ms */
export function connectionError(options: TcpNetConnectOpts): Promise<NodeJS.ErrnoException | 'timeout' | undefined> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException | 'timeout' | undefined>()
  const socket = connect(options)
  socket.unref()
  socket.once('connect', () => resolve(undefined))
  socket.once('timeout', () => resolve('timeout'))
  socket.once('error', resolve)
  return promise.finally(() => socket.destroy())
}
