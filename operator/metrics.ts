import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { ReflectorMetrics, ReflectorProbe } from '#kube/reflector.ts'
import type { ApiKey } from '#api/apikey.ts'
import { findCondition } from '#api/condition-list.ts'
import type { Informer } from '#kube/port.ts'
import type { ControllerMetrics, ControllerProbe } from './loop/controller.ts'
import type { LedgerMetrics, OperatorMetrics } from './operator-deps.ts'

const RECONCILE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const QUEUE_BUCKETS = [0.0001, 0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300]
/** Promised: p99 below 0.3 s, at most 1 s; the bound of the wait is 30 s. */
const REVOCATION_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60]
const COMMIT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** All metrics of one operator process. The registry is not global, so each test has its own. */
export type MetricsRegistry = ReturnType<typeof createMetricsRegistry>

/**
 * Makes the metrics: those of controller-runtime and client-go under their usual names, so that stock dashboards work, and Headgate's as
 * `headgate_operator_*`. No label ever holds the name of a key.
 */
export function createMetricsRegistry() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return {
    registry,
    /** For `Transport`. */
    onAnswer: restMetrics(registry),
    /** For `InformerFactory`. */
    reflectors: reflectorMetrics(registry),
    /** For the `Controller`. */
    controller: controllerMetrics(registry),
    /** Registers the metric of leadership. @param leading called at each scrape */
    leader: leaderMetrics(registry),
    /** For the `BudgetLedger`. */
    ledger: ledgerMetrics(registry),
    ...ownMetrics(registry),
  }
}

/** The part that `createOperator` reports to. @param keys counted by state at each scrape */
export function operatorMetricsOf(metrics: MetricsRegistry, keys: Informer<ApiKey>): OperatorMetrics {
  metrics.apiKeys(keys)
  return {
    committed: (shard, bytes, seconds) => {
      metrics.keyringBytes.set({ shard: String(shard) }, bytes)
      metrics.keyringCommitSeconds.observe(seconds)
    },
    revoked: (seconds) => metrics.revocationSeconds.observe(seconds),
    polled: ({ revision, watermark, waiting }) => {
      metrics.projectionRevision.set(revision)
      metrics.projectionWatermark.set(watermark)
      metrics.statusPending.set(waiting)
    },
    unreadableEntries: (set, count) => metrics.unreadableEntries.set({ set }, count),
    orphaned: (count) => metrics.orphans.inc(count),
    startBlocked: (reason) => {
      metrics.startBlocked.reset()
      if (reason !== undefined) metrics.startBlocked.set({ reason }, 1)
    },
    eventDropped: () => metrics.eventsDropped.inc(),
    installationForeign: (isForeign) => metrics.installationForeign.set(isForeign ? 1 : 0),
    ledger: metrics.ledger,
    controller: metrics.controller,
  }
}

function ownMetrics(registry: Registry) {
  const at = { registers: [registry] }
  const gauge = (name: string, help: string): Gauge => new Gauge({ name: `headgate_operator_${name}`, help, ...at })
  const counter = (name: string, help: string): Counter => new Counter({ name: `headgate_operator_${name}`, help, ...at })
  const labelled = <L extends string>(name: string, help: string, label: L): Gauge<L> =>
    new Gauge({ name: `headgate_operator_${name}`, help, labelNames: [label], ...at })
  return {
    projectionRevision: gauge('projection_revision', 'Revision of the last change written to the projection.'),
    projectionWatermark: gauge(
      'projection_watermark',
      'Highest revision that every serving gateway pod has acknowledged, pods without a heartbeat included.',
    ),
    /** Observe seconds. */
    revocationSeconds: new Histogram({
      name: 'headgate_operator_revocation_seconds',
      help: 'From the write of a revocation to its last acknowledgement.',
      buckets: REVOCATION_BUCKETS,
      ...at,
    }),
    /** Counts the keys of a cache by state. */
    apiKeys: (keys: Informer<ApiKey>) =>
      pulled(registry, { name: 'headgate_operator_apikeys', help: 'ApiKeys by state.', label: 'state', read: () => countByState(keys) }),
    statusPending: gauge('status_pending', 'ApiKeys whose status waits for acknowledgements.'),
    /** Set per shard. */
    keyringBytes: labelled('keyring_bytes', 'Size of each keyring Secret.', 'shard'),
    /** Observe seconds. */
    keyringCommitSeconds: new Histogram({
      name: 'headgate_operator_keyring_commit_seconds',
      help: 'Time of one write of a keyring Secret.',
      buckets: COMMIT_BUCKETS,
      ...at,
    }),
    /** Set per set of entries. */
    unreadableEntries: labelled('unreadable_entries', 'Durable entries that this version cannot read and leaves alone.', 'set'),
    orphans: counter('orphans_total', 'Keys revoked because their ApiKey does not exist.'),
    /** 1 for the one reason. */
    startBlocked: labelled('start_blocked', '1 while this process leads and cannot start, by reason.', 'reason'),
    eventsDropped: counter('events_dropped_total', 'Events not written because too many waited.'),
    installationForeign: gauge('installation_foreign', '1 while Redis belongs to another installation.'),
  }
}

function ledgerMetrics(registry: Registry): LedgerMetrics {
  const counter = (name: string, help: string): ((count: number) => void) => {
    const made = new Counter({ name: `headgate_operator_ledger_${name}`, help, registers: [registry] })
    return (count) => made.inc(count)
  }
  return {
    read: counter('reads_total', 'Reads of the budgets of one key.'),
    restored: counter('restores_total', 'Keys of which Redis had lost spend that was restored.'),
    reaped: counter('reaped_holds_total', 'Holds of gateway processes that died, counted as spent.'),
    swept: counter('swept_keys_total', 'Redis keys dropped that belonged to no ApiKey or were damaged.'),
    checkpointAge: (seconds) =>
      void new Gauge({
        name: 'headgate_operator_spend_checkpoint_age_seconds',
        help: 'How long the oldest known spend waits to become durable.',
        registers: [registry],
        collect() {
          this.set(seconds())
        },
      }),
  }
}

function countByState(keys: Informer<ApiKey>): ReadonlyArray<readonly [string, number]> {
  const states = Map.groupBy(keys.list(), (key) => findCondition(key.status?.conditions, 'Ready')?.reason ?? 'Unknown')
  return [...states].map(([state, some]) => [state, some.length])
}

function restMetrics(registry: Registry): (method: string, code: string, host: string) => void {
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Calls to the Kubernetes API by HTTP status, method and host.',
    labelNames: ['code', 'method', 'host'],
    registers: [registry],
  })
  return (method, code, host) => requests.inc({ method, code, host })
}

function reflectorMetrics(registry: Registry): ReflectorMetrics {
  const probes = new Map<string, ReflectorProbe[]>()
  const relists = new Counter({
    name: 'headgate_operator_relists_total',
    help: 'Full lists by reason.',
    labelNames: ['resource', 'reason'],
    registers: [registry],
  })
  pulled(registry, {
    name: 'headgate_operator_informer_last_event_seconds',
    help: 'Since the last event or bookmark of a watch; the oldest of a kind.',
    label: 'resource',
    read: () => [...probes].map(([resource, each]) => [resource, Math.max(...each.map((probe) => probe.lastEventSeconds()))]),
  })
  pulled(registry, {
    name: 'headgate_operator_informer_synced',
    help: '1 when every watch of a kind has its first list.',
    label: 'resource',
    read: () => [...probes].map(([resource, each]) => [resource, each.every((probe) => probe.synced()) ? 1 : 0]),
  })
  return {
    relisted: (resource, reason) => relists.inc({ resource, reason }),
    watching: (resource, probe) => probes.set(resource, [...(probes.get(resource) ?? []), probe]),
  }
}

function leaderMetrics(registry: Registry): (name: string, leading: () => boolean) => void {
  const probes = new Map<string, () => boolean>()
  const read = (): Array<[string, number]> => [...probes].map(([name, leading]) => [name, leading() ? 1 : 0])
  pulled(registry, { name: 'leader_election_master_status', help: '1 while this process holds the Lease.', label: 'name', read })
  return (name, leading) => probes.set(name, leading)
}

/** One controller serves all kinds. Its runs are counted by kind, in the label that stock dashboards expect. */
function controllerMetrics(registry: Registry): ControllerMetrics {
  const at = { registers: [registry] }
  const labelNames = ['controller'] as const
  const total = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Reconciles by result.',
    labelNames: ['controller', 'result'],
    ...at,
  })
  const errors = new Counter({ name: 'controller_runtime_reconcile_errors_total', help: 'Reconciles that failed.', labelNames, ...at })
  const panics = new Counter({ name: 'controller_runtime_reconcile_panics_total', help: 'Reconciles that met a bug.', labelNames, ...at })
  const time = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Length of a reconcile.',
    labelNames,
    buckets: RECONCILE_BUCKETS,
    ...at,
  })
  return {
    queue: queueMetrics(registry),
    reconciled: (controller, result, seconds, panic) => {
      total.inc({ controller, result })
      time.observe({ controller }, seconds)
      errors.inc({ controller }, result === 'error' ? 1 : 0) // present from the first run, so that a rate over it means something
      panics.inc({ controller }, panic ? 1 : 0)
    },
    watching: (probe) => probeMetrics(registry, probe),
  }
}

/** Name of the one queue. */
const QUEUE = 'headgate-operator'

function probeMetrics(registry: Registry, probe: ControllerProbe): void {
  const add = (name: string, help: string, label: string, value: () => number): void =>
    pulled(registry, { name, help, label, read: () => [[QUEUE, value()]] })
  add('controller_runtime_max_concurrent_reconciles', 'Reconciles at once.', 'controller', () => probe.workers)
  add('controller_runtime_active_workers', 'Reconciles under way.', 'controller', probe.activeWorkers)
  add('workqueue_unfinished_work_seconds', 'Work so far on items that are not done.', 'name', () => probe.unfinished().totalSeconds)
  add(
    'workqueue_longest_running_processor_seconds',
    'Work so far on the item that takes longest.',
    'name',
    () => probe.unfinished().longestSeconds,
  )
}

function queueMetrics(registry: Registry): ControllerMetrics['queue'] {
  const at = { registers: [registry] }
  const name = QUEUE
  const byLevel = ['name', 'priority'] as const
  const depth = new Gauge({ name: 'workqueue_depth', help: 'Items that wait, by level.', labelNames: byLevel, ...at })
  const adds = new Counter({ name: 'workqueue_adds_total', help: 'Items added, by level.', labelNames: byLevel, ...at })
  const retries = new Counter({ name: 'workqueue_retries_total', help: 'Items added again after a failure.', labelNames: ['name'], ...at })
  const waited = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'Wait in the queue, by level.',
    labelNames: byLevel,
    buckets: QUEUE_BUCKETS,
    ...at,
  })
  const worked = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'Work on an item.',
    labelNames: ['name'],
    buckets: QUEUE_BUCKETS,
    ...at,
  })
  return {
    depth: (priority, items) => depth.set({ name, priority }, items),
    added: (priority) => adds.inc({ name, priority }),
    retried: () => retries.inc({ name }),
    waited: (priority, seconds) => waited.observe({ name, priority }, seconds),
    worked: (seconds) => worked.observe({ name }, seconds),
  }
}

/** A gauge whose value is read at each scrape. */
interface Pulled {
  readonly name: string
  readonly help: string
  readonly label: string
  /** One value per label. */
  readonly read: () => ReadonlyArray<readonly [string, number]>
}

function pulled(registry: Registry, { name, help, label, read }: Pulled): void {
  new Gauge({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      this.reset()
      for (const [value, amount] of read()) this.set({ [label]: value }, amount)
    },
  })
}
