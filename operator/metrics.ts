import { Counter, Gauge, Histogram, type LabelValues, Registry, collectDefaultMetrics } from 'prom-client'
import type { ReflectorMetrics, ReflectorProbe } from '#kube/reflector.ts'
import type { ApiKey } from '#api/apikey.ts'
import { findCondition } from '#api/condition-list.ts'
import type { Informer } from '#kube/port.ts'
import type { Level } from './loop/level.ts'
import type { Outcome, WorkQueue } from './loop/work-queue.ts'
import { NAMED_PODS } from './projection/programmed.ts'

const RECONCILE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const QUEUE_BUCKETS = [0.0001, 0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300]
/** Promised: p99 below 0.3 s, at most 1 s; the bound of the wait is 30 s. */
const REVOCATION_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60]
const COMMIT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** All metrics of one operator process. The registry is not global, so each test has its own. */
export type MetricsRegistry = ReturnType<typeof createMetricsRegistry>
/** Metrics of the operator's work; absent in standalone. */
export type OperatorMetrics = ReturnType<MetricsRegistry['operator']>

/**
 * Makes the metrics: those of controller-runtime and client-go under their usual names, so that stock dashboards work, and Headgate's as
 * `headgate_operator_*`. No label ever holds the name of a key.
 */
export function createMetricsRegistry() {
  const meter = new Meter()
  collectDefaultMetrics({ register: meter.registry })
  const requests = meter.counter(
    'rest_client_requests_total',
    'Calls to the Kubernetes API by HTTP status, method and host.',
    'code',
    'method',
    'host',
  )
  return {
    registry: meter.registry,
    /** For `Transport`. */
    onAnswer: (method: string, code: string, host: string) => requests.inc({ method, code, host }),
    /** For `InformerFactory`. */
    reflectors: reflectorMetrics(meter),
    /** Registers the metric of leadership. @param leading called at each scrape */
    leader: (name: string, leading: () => boolean) =>
      meter.pulled('leader_election_master_status', '1 while this process holds the Lease.', () => [[{ name }, leading() ? 1 : 0]], 'name'),
    /** For `Operator`. @param keys counted by state at each scrape */
    operator: operatorMetrics(meter),
  }
}

type Reading<Label extends string> = () => ReadonlyArray<readonly [LabelValues<Label>, number]>

class Meter {
  readonly registry = new Registry()

  counter<Label extends string = never>(name: string, help: string, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.registry] })
  }

  gauge<Label extends string = never>(name: string, help: string, ...labelNames: Label[]): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this.registry] })
  }

  /** Observe seconds. */
  histogram<Label extends string = never>(name: string, help: string, buckets: number[], ...labelNames: Label[]): Histogram<Label> {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.registry] })
  }

  /** A gauge whose values, one per combination of labels, are read at each scrape. */
  pulled<Label extends string = never>(name: string, help: string, read: Reading<Label>, ...labelNames: Label[]): void {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        this.reset()
        for (const [labels, amount] of read()) this.set(labels, amount)
      },
    })
  }
}

function operatorMetrics(meter: Meter) {
  const own = <L extends string = never>(name: string, help: string, ...labels: L[]): Gauge<L> =>
    meter.gauge(`headgate_operator_${name}`, help, ...labels)
  const counted = (name: string, help: string): ((count?: number) => void) => {
    const counter = meter.counter(`headgate_operator_${name}`, help)
    return (count = 1) => counter.inc(count)
  }
  const projectionRevision = own('projection_revision', 'Revision of the last change written to the projection.')
  const projectionWatermark = own(
    'projection_watermark',
    'Highest revision that every serving gateway pod has acknowledged, pods without a heartbeat included.',
  )
  const revocationSeconds = meter.histogram(
    'headgate_operator_revocation_seconds',
    'From the write of a revocation to its last acknowledgement.',
    REVOCATION_BUCKETS,
  )
  const statusPending = own('status_pending', 'ApiKeys whose status waits for acknowledgements.')
  const keyringBytes = own('keyring_bytes', 'Size of each keyring Secret.', 'shard')
  const commitSeconds = meter.histogram(
    'headgate_operator_keyring_commit_seconds',
    'Time of one write of a keyring Secret.',
    COMMIT_BUCKETS,
  )
  const unreadableEntries = own('unreadable_entries', 'Durable entries that this version cannot read and leaves alone.', 'set')
  const startBlocked = own('start_blocked', '1 while this process leads and cannot start, by reason.', 'reason')
  const foreign = own('installation_foreign', '1 while Redis belongs to another installation.')
  const metrics = {
    committed: (shard: number, bytes: number, seconds: number) => {
      keyringBytes.set({ shard: String(shard) }, bytes)
      commitSeconds.observe(seconds)
    },
    /** @param seconds from the write of a revocation to its last acknowledgement, on the monotonic clock */
    revoked: (seconds: number) => revocationSeconds.observe(seconds),
    polled: ({ revision, watermark, waiting }: { readonly revision: number; readonly watermark: number; readonly waiting: number }) => {
      projectionRevision.set(revision)
      projectionWatermark.set(watermark)
      statusPending.set(waiting)
    },
    lagging: laggingMetric(meter),
    /** Entries that this version cannot read. @param set keyring, models, upstream, spend */
    unreadableEntries: (set: string, count: number) => unreadableEntries.set({ set }, count),
    unwatchedKeys: unwatchedMetric(meter),
    orphaned: counted('orphans_total', 'Keys revoked because their ApiKey does not exist.'),
    /** Why a leader cannot start; undefined if it can. */
    startBlocked: (reason: string | undefined) => {
      startBlocked.reset()
      if (reason !== undefined) startBlocked.set({ reason }, 1)
    },
    eventDropped: counted('events_dropped_total', 'Events not written because too many waited.'),
    installationForeign: (isForeign: boolean) => foreign.set(isForeign ? 1 : 0),
    balanceCrossed: balanceMetric(meter),
    ledger: ledgerMetrics(meter, counted),
    queue: queueMetrics(meter),
  }
  return (keys: Informer<ApiKey>) => {
    meter.pulled('headgate_operator_apikeys', 'ApiKeys by state.', () => countByState(keys), 'state')
    return metrics
  }
}

/** @returns a setter of the pods that hold up keys */
function laggingMetric(meter: Meter): (pods: readonly string[]) => void {
  const help = 'Gateway pods that have not acknowledged a change for 5 s, and hold up the status of keys.'
  const gauge = meter.gauge('headgate_operator_lagging_pods', help, 'gateway')
  return (pods) => {
    gauge.reset()
    for (const gateway of pods.slice(0, NAMED_PODS)) gauge.set({ gateway }, 1)
  }
}

/** @returns a function that sets the number of keys of each namespace */
function unwatchedMetric(meter: Meter): (counts: ReadonlyMap<string, number>) => void {
  const help = 'Keys of namespaces that are no longer watched. They continue to work.'
  const keys = meter.gauge('headgate_operator_unwatched_keys', help, 'namespace')
  return (counts) => {
    keys.reset()
    for (const [namespace, count] of counts) keys.set({ namespace }, count)
  }
}

/** @returns counts a crossing. It takes the reason of the Event, and no label names an account */
function balanceMetric(meter: Meter): (crossing: string) => void {
  const help = 'Balances of prepaid accounts that became low, were used up, or were restored.'
  const crossings = meter.counter('headgate_operator_balance_crossings_total', help, 'crossing')
  for (const crossing of ['BalanceLow', 'BalanceExhausted', 'BalanceRestored']) crossings.inc({ crossing }, 0)
  return (crossing) => crossings.inc({ crossing })
}

function ledgerMetrics(meter: Meter, counted: (name: string, help: string) => (count: number) => void) {
  return {
    read: counted('ledger_reads_total', 'Reads of the budgets of one key.'),
    restored: counted('ledger_restores_total', 'Keys of which Redis had lost spend that was restored.'),
    reaped: counted('ledger_reaped_holds_total', 'Holds of gateway processes that died, counted as spent.'),
    swept: counted('ledger_swept_keys_total', 'Redis keys dropped that belonged to no ApiKey or were damaged.'),
    /** @param seconds called at each scrape: the time for which the oldest known spend has waited to become durable */
    checkpointAge: (seconds: () => number) =>
      meter.pulled('headgate_operator_spend_checkpoint_age_seconds', 'How long the oldest known spend waits to become durable.', () => [
        [{}, seconds()],
      ]),
  }
}

function countByState(keys: Informer<ApiKey>): ReturnType<Reading<'state'>> {
  const states = Map.groupBy(keys.list(), (key) => findCondition(key.status?.conditions, 'Ready')?.reason ?? 'Unknown')
  return [...states].map(([state, some]) => [{ state }, some.length])
}

function reflectorMetrics(meter: Meter): ReflectorMetrics {
  const probes = new Map<string, ReflectorProbe[]>()
  const each = (read: (some: readonly ReflectorProbe[]) => number): Reading<'resource'> => {
    return () => [...probes].map(([resource, some]) => [{ resource }, read(some)])
  }
  const relists = meter.counter('headgate_operator_relists_total', 'Full lists by reason.', 'resource', 'reason')
  meter.pulled(
    'headgate_operator_informer_last_event_seconds',
    'Since the last event or bookmark of a watch; the oldest of a kind.',
    each((some) => Math.max(...some.map((probe) => probe.lastEventSeconds()))),
    'resource',
  )
  meter.pulled(
    'headgate_operator_informer_synced',
    '1 when every watch of a kind has its first list.',
    each((some) => (some.every((probe) => probe.synced()) ? 1 : 0)),
    'resource',
  )
  return {
    relisted: (resource, reason) => relists.inc({ resource, reason }),
    watching: (resource, probe) => probes.set(resource, [...(probes.get(resource) ?? []), probe]),
  }
}

/** One queue serves all kinds. Its runs are counted by kind, in the label that stock dashboards expect. */
function queueMetrics(meter: Meter) {
  const name = 'headgate-operator'
  const depth = meter.gauge('workqueue_depth', 'Items that wait, by level.', 'name', 'priority')
  const adds = meter.counter('workqueue_adds_total', 'Items added, by level.', 'name', 'priority')
  const retries = meter.counter('workqueue_retries_total', 'Items added again after a failure.', 'name')
  const waited = meter.histogram('workqueue_queue_duration_seconds', 'Wait in the queue, by level.', QUEUE_BUCKETS, 'name', 'priority')
  const worked = meter.histogram('workqueue_work_duration_seconds', 'Work on an item.', QUEUE_BUCKETS, 'name')
  return {
    depth: (priority: Level, items: number) => depth.set({ name, priority }, items),
    added: (priority: Level) => adds.inc({ name, priority }),
    retried: () => retries.inc({ name }),
    /** @param seconds from being added to being taken */
    waited: (priority: Level, seconds: number) => waited.observe({ name, priority }, seconds),
    /** @param seconds from being taken to being done */
    worked: (seconds: number) => worked.observe({ name }, seconds),
    reconciled: reconcileMetrics(meter),
    /** Called once; the queue is read at each scrape. */
    watching: (queue: Pick<WorkQueue, 'slots' | 'active' | 'unfinished'>) => {
      const pulled = (metric: string, help: string, label: string, value: () => number): void =>
        meter.pulled(metric, help, () => [[{ [label]: name }, value()]], label)
      const longest = 'workqueue_longest_running_processor_seconds'
      pulled('controller_runtime_max_concurrent_reconciles', 'Reconciles at once.', 'controller', () => queue.slots)
      pulled('controller_runtime_active_workers', 'Reconciles under way.', 'controller', () => queue.active)
      pulled('workqueue_unfinished_work_seconds', 'Work so far on items that are not done.', 'name', () => queue.unfinished().totalSeconds)
      pulled(longest, 'Work so far on the item that takes longest.', 'name', () => queue.unfinished().longestSeconds)
    },
  }
}

/** `panic`: the error of the run is a programmer's mistake. */
function reconcileMetrics(meter: Meter) {
  const total = meter.counter('controller_runtime_reconcile_total', 'Reconciles by result.', 'controller', 'result')
  const errors = meter.counter('controller_runtime_reconcile_errors_total', 'Reconciles that failed.', 'controller')
  const panics = meter.counter('controller_runtime_reconcile_panics_total', 'Reconciles that met a bug.', 'controller')
  const time = meter.histogram('controller_runtime_reconcile_time_seconds', 'Length of a reconcile.', RECONCILE_BUCKETS, 'controller')
  return (controller: string, result: Outcome, seconds: number, panic: boolean) => {
    total.inc({ controller, result })
    time.observe({ controller }, seconds)
    errors.inc({ controller }, result === 'error' ? 1 : 0) // present from the first run, so that a rate over it means something
    panics.inc({ controller }, panic ? 1 : 0)
  }
}
