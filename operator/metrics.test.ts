import { expect, test } from 'vitest'
import { heldKey, issued } from '../test/support/observed-key.ts'
import { describe } from './apikey/describe.ts'
import { createOperatorMetrics } from './metrics.ts'

test('every metric that dashboards and alerts rely on is there under its name, and pulled ones show the state at the scrape', async () => {
  const metrics = createOperatorMetrics()
  const controller = metrics.controllers('ApiKey')
  let active = 0
  controller.watching({ workers: 512, activeWorkers: () => active, unfinished: () => ({ totalSeconds: 7, longestSeconds: 4 }) })
  controller.reconciled('success', 0.02, false)
  controller.reconciled('error', 0.02, true)
  controller.queue.added()
  controller.queue.depth(3)
  controller.queue.retried()
  controller.queue.waited(0.1)
  controller.queue.worked(0.2)
  metrics.leader('headgate-operator', () => true)
  metrics.reflectors.relisted('apikeys.headgate.dev', 'Expired')
  metrics.reflectors.watching('apikeys.headgate.dev', { lastEventSeconds: () => 12, synced: () => true })
  metrics.reflectors.watching('apikeys.headgate.dev', { lastEventSeconds: () => 90, synced: () => false })
  metrics.onAnswer('GET', '200', '10.0.0.1:443')
  const bot = heldKey()
  metrics.apiKeys({
    synced: Promise.resolve(),
    get: () => undefined,
    list: () => [bot, { ...bot, status: describe(issued()) }],
    subscribe: () => undefined,
  })
  metrics.keyringBytes.set({ shard: '0' }, 1000)
  active = 9
  const text = await metrics.registry.metrics()
  for (const line of [
    'controller_runtime_reconcile_total{controller="ApiKey",result="success"} 1',
    'controller_runtime_reconcile_errors_total{controller="ApiKey"} 1',
    'controller_runtime_reconcile_panics_total{controller="ApiKey"} 1',
    'controller_runtime_reconcile_time_seconds_count{controller="ApiKey"} 2',
    'controller_runtime_max_concurrent_reconciles{controller="ApiKey"} 512',
    'controller_runtime_active_workers{controller="ApiKey"} 9',
    'workqueue_depth{name="ApiKey"} 3',
    'workqueue_adds_total{name="ApiKey"} 1',
    'workqueue_retries_total{name="ApiKey"} 1',
    'workqueue_queue_duration_seconds_count{name="ApiKey"} 1',
    'workqueue_work_duration_seconds_count{name="ApiKey"} 1',
    'workqueue_unfinished_work_seconds{name="ApiKey"} 7',
    'workqueue_longest_running_processor_seconds{name="ApiKey"} 4',
    'leader_election_master_status{name="headgate-operator"} 1',
    'rest_client_requests_total{method="GET",code="200",host="10.0.0.1:443"} 1',
    'headgate_operator_informer_last_event_seconds{resource="apikeys.headgate.dev"} 90',
    'headgate_operator_informer_synced{resource="apikeys.headgate.dev"} 0',
    'headgate_operator_relists_total{resource="apikeys.headgate.dev",reason="Expired"} 1',
    'headgate_operator_apikeys{state="Unknown"} 1',
    'headgate_operator_apikeys{state="Ready"} 1',
    'headgate_operator_keyring_bytes{shard="0"} 1000',
    'headgate_operator_projection_revision 0',
    'headgate_operator_projection_watermark 0',
    'headgate_operator_revocation_seconds_count 0',
    'headgate_operator_status_pending 0',
    'headgate_operator_keyring_commit_seconds_count 0',
    'headgate_operator_sweep_refused_total 0',
  ]) {
    expect(text).toContain(line)
  }
})

test('two operators in one process do not share figures', () => {
  expect(() => [createOperatorMetrics(), createOperatorMetrics()]).not.toThrow()
})
