/** Metrics of limits. No label names a key, a budget or a model. */
import { Counter, Gauge, type Registry } from 'prom-client'
import type { BreakerState } from './breaker.ts'
import type { LedgerStats } from './lease-ledger.ts'
import type { Verdict } from './ledger.ts'
import type { StoreCalls } from './observed-store.ts'

/** Facts that a ledger reports. The last three exist only for a ledger that shares a store with others. */
export interface LedgerFacts {
  readonly stats: LedgerStats
  readonly breaker: BreakerState
  readonly storeCalls?: StoreCalls
  readonly livePods?: number
  readonly isEvicting?: boolean
}

const STATES: readonly BreakerState[] = ['closed', 'suspect', 'open']

/** Decisions on calls of keys with limits, counted here and copied at each rendering of the registry: a Counter costs too much per call. */
export class LimitDecisions {
  /** Counts by outcome, then by the limit or the reason. */
  readonly #counts = new Map<Verdict['outcome'], Map<string, number>>()

  constructor(registry: Registry) {
    const counts = this.#counts
    new Counter({
      name: 'headgate_limit_decisions_total',
      help: 'Decisions on calls of keys with limits, by outcome (held, refused, unavailable) and by the limit or the reason',
      labelNames: ['outcome', 'limit'] as const,
      registers: [registry],
      collect() {
        this.reset()
        for (const [outcome, limits] of counts) for (const [limit, count] of limits) this.inc({ outcome, limit }, count)
      },
    })
  }

  count(verdict: Verdict): void {
    const { outcome } = verdict
    const limit = outcome === 'refused' ? verdict.limit : outcome === 'unavailable' ? verdict.reason : ''
    let limits = this.#counts.get(outcome)
    if (limits === undefined) this.#counts.set(outcome, (limits = new Map()))
    limits.set(limit, (limits.get(limit) ?? 0) + 1)
  }
}

/** Adds the facts of a ledger to a registry, which reads them at each scrape. */
export function registerLedgerMetrics(registry: Registry, ledger: LedgerFacts): void {
  const registers = [registry]
  new Counter({
    name: 'headgate_limit_waits_total',
    help: 'Decisions that had to wait for the store',
    registers,
    collect() {
      this.reset()
      this.inc(ledger.stats.waited)
    },
  })
  new Gauge({
    name: 'headgate_limit_subjects',
    help: 'Keys with limits that this process holds books of',
    registers,
    collect() {
      this.set(ledger.stats.subjects)
    },
  })
  new Gauge({
    name: 'headgate_limit_store_breaker',
    help: '1 for the state of the circuit breaker of the store; no request waits for the store unless it is closed',
    labelNames: ['state'] as const,
    registers,
    collect() {
      for (const state of STATES) this.set({ state }, ledger.breaker === state ? 1 : 0)
    },
  })
  if (ledger.storeCalls) registerStoreMetrics(registers, ledger)
}

function registerStoreMetrics(registers: Registry[], ledger: LedgerFacts): void {
  new Counter({
    name: 'headgate_limit_store_calls_total',
    help: 'Calls of the store by how they ended: answered, refused by an error reply, failed without an answer',
    labelNames: ['outcome'] as const,
    registers,
    collect() {
      this.reset()
      for (const [outcome, calls] of Object.entries(ledger.storeCalls ?? {})) this.inc({ outcome }, calls)
    },
  })
  new Gauge({
    name: 'headgate_limit_live_pods',
    help: 'Gateway processes that share the limits, as far as this one knows',
    registers,
    collect() {
      this.set(ledger.livePods ?? 1)
    },
  })
  new Gauge({
    name: 'headgate_redis_evicts',
    help: '1 while the policy of Redis allows eviction when memory is full: limits and keys may be lost',
    registers,
    collect() {
      this.set(ledger.isEvicting ? 1 : 0)
    },
  })
}
