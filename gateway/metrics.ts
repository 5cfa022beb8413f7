/**
 * Prometheus metrics of a gateway process. The number of series is bounded: no label holds text from a client, none names a key or a
 * budget, and `request-stats.ts` bounds names of models. Values are counted elsewhere and read at each scrape, because a Counter costs too much per call.
 */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { GatewayError } from './errors.ts'
import type { Exchange } from './http/exchange.ts'
import type { BreakerState } from './limits/breaker.ts'
import type { LedgerStats } from './limits/lease-ledger.ts'
import type { Verdict } from './limits/ledger.ts'
import { type CountedModel, RequestStats } from './request-stats.ts'
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
  readonly models: { entries(): Iterable<CountedModel> }
  readonly follower: Pick<RevisionFollower, 'position' | 'unreadForMs' | 'unreadableRecords' | 'loadedFrom'>
  readonly ledger: LedgerFacts
}

type Series = Iterable<readonly [value: number, labels?: Readonly<Record<string, string>>]>

export type GatewayMetrics = ReturnType<typeof createMetrics>

/** Makes the metrics in a new registry, not in the global one. */
export function createMetrics(facts: GatewayFacts) {
  const registry = new Registry()
  const read = new ReadMetrics(registry)
  const stats = new RequestStats(() => facts.models.entries())
  const decisions = new Map<Verdict['outcome'], Map<string, number>>()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS })
  const requests = 'Finished requests by route, served model name, status class and backend'
  read.counter('headgate_requests_total', requests, ['route', 'model_namespace', 'model', 'status', 'backend'], () => stats.requests())
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
    render: async (): Promise<string> => {
      stats.dropUnknown()
      return `${await registry.metrics()}\n${stats.durations()}`
    },
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
