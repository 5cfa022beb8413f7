/** Prometheus metrics of a gateway process. Series are bounded: no label holds what a client sent, none a key. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { GatewayError } from './errors.ts'
import type { Exchange } from './http/exchange.ts'
import { RequestStats } from './request-stats.ts'

/** Node samples the event loop at this interval, ms; its default of 10 costs 2.5 ms of CPU a second. */
const LOOP_PRECISION_MS = 20

/** What the gateway counts. Made once per process by `createMetrics`. */
export interface GatewayMetrics {
  /** A request is over: counts it, its duration, and its row of the catalogue where it has one. */
  finished(exchange: Exchange): void
  /** A refusal that never became a request (the parser's). */
  refused(error: GatewayError): void
  /** Newest revision of the projection that this process has applied. */
  setRevision(revision: number): void
  readonly contentType: string
  /** The exposition text. */
  render(): Promise<string>
  /** For parts that add metrics of their own. */
  readonly registry: Registry
}

/** Makes a registry of its own and the metrics in it; nothing global is touched. @param requestsInFlight asked at each scrape */
export function createMetrics(requestsInFlight: () => number): GatewayMetrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS })
  const stats = new RequestStats()
  void new Counter({
    name: 'headgate_requests_total',
    help: 'Requests by route, served model name, status class and backend',
    labelNames: ['route', 'model', 'status', 'backend'] as const,
    registers,
    collect() {
      this.reset()
      for (const { labels, value } of stats.requests()) this.inc(labels, value)
    },
  })
  const errors = new Counter({
    name: 'headgate_errors_total',
    help: 'Refusals and failures by row of the error catalogue',
    labelNames: ['row', 'error'] as const,
    registers,
  })
  void new Gauge({
    name: 'headgate_requests_in_flight',
    help: 'Requests not yet over',
    registers,
    collect() {
      this.set(requestsInFlight())
    },
  })
  const revision = new Gauge({ name: 'headgate_projection_revision', help: 'Newest revision applied by this process', registers })
  const refused = ({ row }: GatewayError): void => errors.inc({ row: row.number, error: row.id })
  return {
    finished: (exchange) => {
      stats.finished(exchange)
      if (exchange.error) refused(exchange.error)
    },
    refused,
    setRevision: (value) => revision.set(value),
    contentType: registry.contentType,
    render: async () => `${await registry.metrics()}\n${stats.durations()}`,
    registry,
  }
}
