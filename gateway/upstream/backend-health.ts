/**
 * What this process has seen of each endpoint. Passive: requests report how they fared; nothing is sent to a healthy endpoint. An ejected
 * one is skipped while there is another, and comes back after one TCP connect, which a timer makes and no request waits for.
 * Ejection never makes a model unavailable: with nothing else left, `pick-backend.ts` uses ejected endpoints too.
 */
import { NO_SLOT } from '../process/intrusive-set.ts'
import type { Ticker, Ticked } from './ticker.ts'

/** So many failures in a row eject; a backend that answers 500 to one odd request stays. */
const FAILURES_TO_EJECT = 5
/** Longest ejection, seconds; the first lasts 1 s, each further one twice as long. */
const MAX_EJECTION_SECONDS = 30

/** One endpoint of one backend. Counters of this process alone. */
export class EndpointHealth {
  /** Where the probe connects. */
  readonly host: string
  readonly port: number
  /** Of the model. */
  readonly namespace: string
  /** Requests on their way now; the least loaded endpoint is picked. */
  inFlight = 0
  isUp = true
  /** Failures since the last success. */
  failures = 0
  /** Ejections since the last success; each doubles the next one. */
  ejections = 0
  /** Tick from which a probe may readmit it. */
  probeAt = 0
  isProbing = false
  /** The endpoint has left the model: no more probes. */
  isRetired = false

  constructor(host: string, port: number, namespace: string) {
    this.host = host
    this.port = port
    this.namespace = namespace
  }
}

/** Tries one TCP connect. @returns whether it came about */
export type Probe = (endpoint: Pick<EndpointHealth, 'host' | 'port' | 'namespace'>) => Promise<boolean>

/** Keeps the ejected endpoints and readmits them. */
export class BackendHealth implements Ticked {
  slot = NO_SLOT
  readonly #ticker: Ticker
  readonly #probe: Probe
  readonly #ejected = new Set<EndpointHealth>()

  constructor(ticker: Ticker, probe: Probe) {
    this.#ticker = ticker
    this.#probe = probe
  }

  /** No connection came about: out at once, since no request can succeed there. */
  connectFailed(endpoint: EndpointHealth): void {
    endpoint.failures++
    this.#eject(endpoint)
  }

  /** A 5xx, a reset, a time-out or an unreadable answer. */
  failed(endpoint: EndpointHealth): void {
    endpoint.failures++
    if (endpoint.failures >= FAILURES_TO_EJECT) this.#eject(endpoint)
  }

  /** Any answer that is not a failure, a 400 included. Readmits: a real answer proves more than a probe. */
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
    if (endpoint.isUp) return // a request was faster
    if (!isOpen) return this.#backOff(endpoint)
    endpoint.failures = FAILURES_TO_EJECT - 1 // a port that accepts proves little: one more failure ejects again, for longer
    this.#readmit(endpoint)
  }
}
