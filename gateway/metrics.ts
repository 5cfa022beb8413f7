/**
 * Prometheus metrics of a gateway process. The number of series is bounded: no label holds text from a client, and none names a key or a
 * budget. Values are counted elsewhere and read at each scrape, because a Counter costs too much per call.
 */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { GatewayError } from './errors.ts'
import type { Exchange } from './http/exchange.ts'
import type { BreakerState } from './limits/breaker.ts'
import type { LedgerStats } from './limits/lease-ledger.ts'
import type { Verdict } from './limits/ledger.ts'
import type { RevisionFollower } from './projection/revision-follower.ts'

/** Interval at which Node samples the event loop, ms. Node's default of 10 ms costs 2.5 ms of CPU per second. */
const LOOP_PRECISION_MS = 20
const SOURCES = ['Redis', 'Keyring', 'None'] as const
const BREAKER_STATES: readonly BreakerState[] = ['closed', 'suspect', 'open']

/** The last two exist only for a ledger that shares a store with others. */
export interface LedgerFacts {
  readonly stats: LedgerStats
  readonly breaker: BreakerState
  readonly livePods?: number
  readonly isEvicting?: boolean
}

interface GatewayFacts {
  readonly requestsInFlight: () => number
  readonly keys: { readonly size: number }
  readonly follower: Pick<RevisionFollower, 'position' | 'unreadForMs' | 'unreadableRecords' | 'loadedFrom'>
  readonly ledger: LedgerFacts
}

type Series = Iterable<readonly [value: number, labels?: Readonly<Record<string, string>>]>

export type GatewayMetrics = ReturnType<typeof createMetrics>

/** Makes the metrics in a new registry, not in the global one. */
export function createMetrics(facts: GatewayFacts) {
  const registry = new Registry()
  const read = new ReadMetrics(registry)
  const stats = new RequestStats()
  const decisions = new Map<Verdict['outcome'], Map<string, number>>()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS })
  const requests = 'Finished requests by route, served model name, status class and backend'
  read.counter('headgate_requests_total', requests, ['route', 'model', 'status', 'backend'], () => stats.requests())
  const errors = new Counter({
    name: 'headgate_errors_total',
    help: 'Refused and failed requests by row of the error catalogue in docs/contract.md',
    labelNames: ['row', 'error'] as const,
    registers: [registry],
  })
  read.gauge('headgate_requests_in_flight', 'Requests whose answers are not complete', facts.requestsInFlight)
  const decided = 'Decisions on calls of keys with limits, by outcome (held, refused, unavailable) and by the limit or the reason'
  read.counter('headgate_limit_decisions_total', decided, ['outcome', 'limit'], () =>
    [...decisions].flatMap(([outcome, limits]) => [...limits].map(([limit, count]) => [count, { outcome, limit }] as const)),
  )
  readTables(read, facts)
  readLedger(read, facts.ledger)
  const refused = ({ row }: GatewayError): void => errors.inc({ row: row.number, error: row.id })
  return {
    /** Counts a finished request, its duration, and its row of the error catalogue if it has one. */
    finished: (exchange: Exchange): void => {
      stats.finished(exchange)
      if (exchange.error) refused(exchange.error)
    },
    refused,
    decided: (verdict: Verdict): void => {
      const { outcome } = verdict
      const limit = outcome === 'refused' ? verdict.limit : outcome === 'unavailable' ? verdict.reason : ''
      let limits = decisions.get(outcome)
      if (limits === undefined) decisions.set(outcome, (limits = new Map()))
      limits.set(limit, (limits.get(limit) ?? 0) + 1)
    },
    contentType: registry.contentType,
    render: async (): Promise<string> => `${await registry.metrics()}\n${stats.durations()}`,
    registry,
  }
}

function readTables(read: ReadMetrics, { keys, follower }: GatewayFacts): void {
  const revision = 'Newest revision of the projection that this process has applied'
  const unread = 'Seconds since the tables were last known to be up to date with the projection'
  const unreadable = 'Records whose newest text this process cannot read, since another version wrote it or it is damaged'
  const isSource = (source: string): number => (source === follower.loadedFrom ? 1 : 0)
  read.gauge('headgate_keys', 'Keys in the table of this process', () => keys.size)
  read.gauge('headgate_projection_revision', revision, () => follower.position?.revision ?? 0)
  read.gauge('headgate_projection_unread_seconds', unread, () => follower.unreadForMs / 1_000)
  read.gauge('headgate_unreadable_records', unreadable, () => follower.unreadableRecords)
  read.gauges('headgate_table_source', '1 for where the tables were loaded from', ['source'], () =>
    SOURCES.map((source) => [isSource(source), { source }]),
  )
}

function readLedger(read: ReadMetrics, ledger: LedgerFacts): void {
  const breaker = '1 for the state of the circuit breaker of the store; no request waits for the store unless it is closed'
  const calls = 'Calls of the store by how they ended: answered, refused by an error reply, failed without an answer'
  const pods = 'Gateway processes that share the limits, as far as this one knows'
  const evicts = '1 while the policy of Redis allows eviction when memory is full: limits and keys may be lost'
  read.counter('headgate_limit_waits_total', 'Decisions that had to wait for the store', [], () => [[ledger.stats.waited]])
  read.gauge('headgate_limit_subjects', 'Keys with limits that this process holds books of', () => ledger.stats.subjects)
  read.gauges('headgate_limit_store_breaker', breaker, ['state'], () =>
    BREAKER_STATES.map((state) => [state === ledger.breaker ? 1 : 0, { state }]),
  )
  if (ledger.livePods === undefined) return
  read.counter('headgate_limit_store_calls_total', calls, ['outcome'], () =>
    Object.entries(ledger.stats.ends).map(([outcome, count]) => [count, { outcome }]),
  )
  read.gauge('headgate_limit_live_pods', pods, () => ledger.livePods ?? 1)
  read.gauge('headgate_redis_evicts', evicts, () => (ledger.isEvicting ? 1 : 0))
}

class ReadMetrics {
  readonly #registers: Registry[]

  constructor(registry: Registry) {
    this.#registers = [registry]
  }

  gauge(name: string, help: string, read: () => number): void {
    this.gauges(name, help, [], () => [[read()]])
  }

  gauges(name: string, help: string, labelNames: string[], read: () => Series): void {
    const collect = function (this: Gauge): void {
      for (const [value, labels = {}] of read()) this.set(labels, value)
    }
    new Gauge({ name, help, labelNames, registers: this.#registers, collect })
  }

  counter(name: string, help: string, labelNames: string[], read: () => Series): void {
    const collect = function (this: Counter): void {
      this.reset()
      for (const [value, labels = {}] of read()) this.inc(labels, value)
    }
    new Counter({ name, help, labelNames, registers: this.#registers, collect })
  }
}

/** Upper bounds of the histogram, seconds. An answer of a model may take minutes. */
const BOUNDS: readonly number[] = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** Status classes by first digit. `none`: the client left before the answer. `broken`: an answer that began well broke off. */
const STATUS_CLASSES: readonly string[] = ['none', '1xx', '2xx', '3xx', '4xx', '5xx', 'broken']
const BROKEN = STATUS_CLASSES.indexOf('broken')

const DURATION = 'headgate_request_duration_seconds'

class Tally {
  readonly counts = new Map<string, Float64Array>()
  /** Requests per bound: each counts at the first bound that is not below its duration. The last entry counts those above all bounds. */
  readonly buckets = new Float64Array(BOUNDS.length + 1)
  seconds = 0
}

/** All series of one process. Their number is bounded, because no label holds text from a client. */
class RequestStats {
  readonly #tallies = new Map<string, Map<string, Tally>>()

  finished(exchange: Exchange): void {
    const { route, model = '', backend = '', response, startedMs } = exchange
    const tally = this.#tally(route, model)
    const seconds = (performance.now() - startedMs) / 1000
    tally.seconds += seconds
    increment(tally.buckets, bucketOf(seconds))
    let counts = tally.counts.get(backend)
    if (counts === undefined) tally.counts.set(backend, (counts = new Float64Array(STATUS_CLASSES.length)))
    const status = response.headersSent ? Math.floor(response.statusCode / 100) : 0
    increment(counts, exchange.isBroken ? BROKEN : status)
  }

  *requests(): Iterable<[value: number, labels: Record<'route' | 'model' | 'status' | 'backend', string>]> {
    for (const { route, model, tally } of this.#each()) {
      const byBackend = [...tally.counts].flatMap(([backend, counts]) =>
        STATUS_CLASSES.map((status, at) => [backend, status, counts[at]] as const),
      )
      for (const [backend, status, value] of byBackend) if (value) yield [value, { route, model, status, backend }]
    }
  }

  durations(): string {
    const lines = [`# HELP ${DURATION} From the headers of a request to the last byte of its answer`, `# TYPE ${DURATION} histogram`]
    for (const { route, model, tally } of this.#each()) {
      const labels = `route="${route}",model="${escaped(model)}"`
      let sum = 0
      for (const [index, count] of tally.buckets.entries()) {
        sum += count
        lines.push(`${DURATION}_bucket{le="${BOUNDS[index] ?? '+Inf'}",${labels}} ${sum}`)
      }
      lines.push(`${DURATION}_sum{${labels}} ${tally.seconds}`, `${DURATION}_count{${labels}} ${sum}`)
    }
    return `${lines.join('\n')}\n`
  }

  #tally(route: string, model: string): Tally {
    let models = this.#tallies.get(route)
    if (models === undefined) this.#tallies.set(route, (models = new Map()))
    let tally = models.get(model)
    if (tally === undefined) models.set(model, (tally = new Tally()))
    return tally
  }

  *#each(): Iterable<{ route: string; model: string; tally: Tally }> {
    for (const [route, models] of this.#tallies) for (const [model, tally] of models) yield { route, model, tally }
  }
}

function increment(counts: Float64Array, index: number): void {
  counts[index] = (counts[index] ?? 0) + 1
}

function bucketOf(seconds: number): number {
  const index = BOUNDS.findIndex((bound) => seconds <= bound)
  return index < 0 ? BOUNDS.length : index
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
