import { expect, test } from 'vitest'
import { heldKey, issued } from '../test/support/observed-key.ts'
import { statusOf } from './kinds/apikey/status.ts'
import { ObjectStore } from '../standalone/object-store.ts'
import { apiKeys } from '#api/resources.ts'
import { createMetricsRegistry } from './metrics.ts'

test('every metric that dashboards and alerts rely on is there under its name, and pulled ones show the state at the scrape', async () => {
  const metrics = createMetricsRegistry()
  const bot = heldKey()
  const operator = metrics.operator({
    synced: Promise.resolve(),
    isSynced: () => true,
    get: () => undefined,
    list: () => [bot, { ...bot, status: statusOf(issued()) }],
    subscribe: () => undefined,
    addIndex: () => undefined,
    byIndex: () => [],
  })
  const { queue } = operator
  let active = 0
  queue.watching({
    slots: 32,
    get active() {
      return active
    },
    unfinished: () => ({ totalSeconds: 7, longestSeconds: 4 }),
  })
  queue.reconciled('ApiKey', 'success', 0.02, false)
  queue.reconciled('ApiKey', 'error', 0.02, true)
  queue.added('urgent')
  queue.depth('create', 3)
  queue.retried()
  queue.waited('urgent', 0.1)
  queue.worked(0.2)
  operator.polled({ revision: 9, watermark: 7, waiting: 2 })
  operator.committed(0, 1000, 0.02)
  operator.revoked(0.05)
  operator.unreadableEntries('keyring', 4)
  operator.orphaned(11)
  operator.unwatchedKeys(new Map([['shop', 12]]))
  operator.startBlocked('KeyringUnreadable')
  operator.eventDropped()
  operator.installationForeign(true)
  operator.ledger.read(500)
  operator.ledger.restored(2)
  operator.ledger.reaped(3)
  operator.ledger.swept(5)
  operator.ledger.checkpointAge(() => 4.5)
  metrics.leader('headgate-operator', () => true)
  metrics.reflectors.relisted('apikeys.headgate.dev', 'Expired')
  metrics.reflectors.watching('apikeys.headgate.dev', { lastEventSeconds: () => 12, synced: () => true })
  metrics.reflectors.watching('apikeys.headgate.dev', { lastEventSeconds: () => 90, synced: () => false })
  metrics.onAnswer('GET', '200', '10.0.0.1:443')
  active = 9
  const text = await metrics.registry.metrics()
  for (const line of [
    'controller_runtime_reconcile_total{controller="ApiKey",result="success"} 1',
    'controller_runtime_reconcile_errors_total{controller="ApiKey"} 1',
    'controller_runtime_reconcile_panics_total{controller="ApiKey"} 1',
    'controller_runtime_reconcile_time_seconds_count{controller="ApiKey"} 2',
    'controller_runtime_max_concurrent_reconciles{controller="headgate-operator"} 32',
    'controller_runtime_active_workers{controller="headgate-operator"} 9',
    'workqueue_depth{name="headgate-operator",priority="create"} 3',
    'workqueue_adds_total{name="headgate-operator",priority="urgent"} 1',
    'workqueue_retries_total{name="headgate-operator"} 1',
    'workqueue_queue_duration_seconds_count{name="headgate-operator",priority="urgent"} 1',
    'workqueue_work_duration_seconds_count{name="headgate-operator"} 1',
    'workqueue_unfinished_work_seconds{name="headgate-operator"} 7',
    'workqueue_longest_running_processor_seconds{name="headgate-operator"} 4',
    'leader_election_master_status{name="headgate-operator"} 1',
    'rest_client_requests_total{method="GET",code="200",host="10.0.0.1:443"} 1',
    'headgate_operator_informer_last_event_seconds{resource="apikeys.headgate.dev"} 90',
    'headgate_operator_informer_synced{resource="apikeys.headgate.dev"} 0',
    'headgate_operator_relists_total{resource="apikeys.headgate.dev",reason="Expired"} 1',
    'headgate_operator_apikeys{state="Unknown"} 1',
    'headgate_operator_apikeys{state="Ready"} 1',
    'headgate_operator_keyring_bytes{shard="0"} 1000',
    'headgate_operator_projection_revision 9',
    'headgate_operator_projection_watermark 7',
    'headgate_operator_revocation_seconds_count 1',
    'headgate_operator_status_pending 2',
    'headgate_operator_keyring_commit_seconds_count 1',
    'headgate_operator_unreadable_entries{set="keyring"} 4',
    'headgate_operator_orphans_total 11',
    'headgate_operator_unwatched_keys{namespace="shop"} 12',
    'headgate_operator_start_blocked{reason="KeyringUnreadable"} 1',
    'headgate_operator_events_dropped_total 1',
    'headgate_operator_installation_foreign 1',
    'headgate_operator_ledger_reads_total 500',
    'headgate_operator_ledger_restores_total 2',
    'headgate_operator_ledger_reaped_holds_total 3',
    'headgate_operator_ledger_swept_keys_total 5',
    'headgate_operator_spend_checkpoint_age_seconds 4.5',
  ]) {
    expect(text).toContain(line)
  }
})

test('what kept a leader from starting is no longer shown when it has started', async () => {
  const metrics = createMetricsRegistry()
  const operator = metrics.operator(new ObjectStore().informer(apiKeys))
  operator.startBlocked('KeyringUnreadable')
  operator.startBlocked(undefined)
  expect(await metrics.registry.metrics()).not.toContain('KeyringUnreadable')
})
