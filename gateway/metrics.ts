/** Prometheus metrics of a gateway process. Series are bounded: no label holds what a client sent, none a key. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { GatewayError } from './errors.ts'
import type { Exchange } from './http/exchange.ts'

/** Seconds; a model's answer may take minutes. */
const DURATION_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** Node samples the event loop at this interval, ms; its default of 10 costs 2.5 ms of CPU a second. */
const LOOP_PRECISION_MS = 20

/** What the gateway counts. Made once per process by `createMetrics`. */
export interface GatewayMetrics {
  /** One more request is in flight. */
  started(): void
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

/** Makes a registry of its own and the metrics in it; nothing global is touched. */
export function createMetrics(): GatewayMetrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS })
  const requests = new Counter({
    name: 'headgate_requests_total',
    help: 'Requests by route, served model name, status class and backend',
    labelNames: ['route', 'model', 'status', 'backend'] as const,
    registers,
  })
  const duration = new Histogram({
    name: 'headgate_request_duration_seconds',
    help: 'From the headers of a request to the last byte of its answer',
    labelNames: ['route', 'model'] as const,
    buckets: DURATION_BUCKETS,
    registers,
  })
  const errors = new Counter({
    name: 'headgate_errors_total',
    help: 'Refusals and failures by row of the error catalogue',
    labelNames: ['row', 'error'] as const,
    registers,
  })
  let inFlight = 0 // handed over at a scrape: changing a gauge twice per request would cost 0.3 µs
  void new Gauge({
    name: 'headgate_requests_in_flight',
    help: 'Requests not yet over',
    registers,
    collect() {
      this.set(inFlight)
    },
  })
  const revision = new Gauge({ name: 'headgate_projection_revision', help: 'Newest revision applied by this process', registers })
  const refused = ({ row }: GatewayError): void => errors.inc({ row: row.number, error: row.id })
  return {
    started: () => void (inFlight += 1),
    finished: ({ route, model = '', backend = '', response, error, startedMs }) => {
      inFlight -= 1
      requests.inc({ route, model, status: statusClass(response.headersSent ? response.statusCode : 0), backend })
      duration.observe({ route, model }, (performance.now() - startedMs) / 1000)
      if (error) refused(error)
    },
    refused,
    setRevision: (value) => revision.set(value),
    contentType: registry.contentType,
    render: () => registry.metrics(),
    registry,
  }
}

/** `2xx` and so on; `none` when the client left before the answer. */
function statusClass(status: number): string {
  return status === 0 ? 'none' : `${Math.floor(status / 100)}xx`
}
