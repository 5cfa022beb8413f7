/** Prometheus metrics of a gateway process. The number of series is bounded: no label holds text from a client, and none holds a key. */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { GatewayError } from './errors.ts'
import type { Exchange } from './http/exchange.ts'
import { RequestStats } from './request-stats.ts'

/** Interval at which Node samples the event loop, ms. Node's default of 10 ms costs 2.5 ms of CPU per second. */
const LOOP_PRECISION_MS = 20

/** The metrics that the gateway updates. `createMetrics` makes them once per process. */
export interface GatewayMetrics {
  /** Counts a finished request, its duration, and its row of the error catalogue if it has one. */
  finished(exchange: Exchange): void
  /** Counts a refusal by Node's HTTP parser, which never became a request. */
  refused(error: GatewayError): void
  /** Sets the newest revision of the projection that this process has applied. */
  setRevision(revision: number): void
  readonly contentType: string
  /** Renders all metrics in the text format of Prometheus. */
  render(): Promise<string>
  /** Registry for parts that add their own metrics. */
  readonly registry: Registry
}

/** Makes the metrics in a new registry, not in the global one. @param requestsInFlight read at each scrape */
export function createMetrics(requestsInFlight: () => number): GatewayMetrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS })
  const stats = new RequestStats()
  void new Counter({
    name: 'headgate_requests_total',
    help: 'Finished requests by route, served model name, status class and backend',
    labelNames: ['route', 'model', 'status', 'backend'] as const,
    registers,
    collect() {
      this.reset()
      for (const { labels, value } of stats.requests()) this.inc(labels, value)
    },
  })
  const errors = new Counter({
    name: 'headgate_errors_total',
    help: 'Refused and failed requests by row of the error catalogue in docs/contract.md',
    labelNames: ['row', 'error'] as const,
    registers,
  })
  void new Gauge({
    name: 'headgate_requests_in_flight',
    help: 'Requests whose answers are not complete',
    registers,
    collect() {
      this.set(requestsInFlight())
    },
  })
  const revision = new Gauge({
    name: 'headgate_projection_revision',
    help: 'Newest revision of the projection that this process has applied',
    registers,
  })
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
