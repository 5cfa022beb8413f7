import type { Registry } from 'prom-client'
import { describe, expect, test } from 'vitest'
import { createMetrics } from '../../gateway/metrics.ts'
import { apiKeys } from '#api/resources.ts'
import { createPaymentsMetrics } from '../../dashboard/payments/metrics.ts'
import { createDashboardMetrics } from '../../dashboard/server/metrics.ts'
import { createMetricsRegistry } from '../../operator/metrics.ts'
import { ObjectStore } from '../../standalone/object-store.ts'
import { metricRows } from '../support/monitoring.ts'
import { unsentExchange } from '../support/unsent-exchange.ts'

/** Metrics of the Node process, which all programs export. */
const OF_PROCESS = /^(process|nodejs)_/
const isLinux = process.platform === 'linux'

async function metricsOf(registry: Registry): Promise<string[]> {
  const types = await registry.getMetricsAsJSON()
  return types.map(({ name, type }) => {
    const { labelNames = [] } = registry.getSingleMetric(name) as unknown as { readonly labelNames?: readonly string[] } // not in the types
    return `${name} ${String(type)} ${labelNames.filter((label) => label !== 'le').join(',')}`
  })
}

/** The metrics of a gateway that shares limits with other gateways. Such a gateway exports every metric that a gateway can have. */
async function gatewayMetrics(): Promise<{ readonly registered: string[]; readonly text: string }> {
  const stats = { waited: 0, subjects: 0, local: 0, calls: 0, ends: { answered: 0, refused: 0, failed: 0 } }
  const metrics = createMetrics({
    requestsInFlight: () => 0,
    keys: { size: 0 },
    models: { entries: () => [] },
    follower: { position: undefined, unreadForMs: 0, unreadableRecords: 0, loadedFrom: 'Redis' },
    ledger: { stats, breaker: 'closed', livePods: 1 },
  })
  metrics.finished(unsentExchange())
  return { registered: await metricsOf(metrics.registry), text: await metrics.render() }
}

async function operatorMetrics(): Promise<string[]> {
  const metrics = createMetricsRegistry()
  const operator = metrics.operator(new ObjectStore().informer(apiKeys))
  operator.queue.watching({ slots: 1, active: 0, unfinished: () => ({ totalSeconds: 0, longestSeconds: 0 }) })
  operator.ledger.checkpointAge(() => 0)
  metrics.leader('headgate-operator', () => true)
  return metricsOf(metrics.registry)
}

async function dashboardMetrics(): Promise<string[]> {
  const metrics = createDashboardMetrics()
  const none = async (): Promise<number> => 0
  metrics.watch({
    waitingMails: none,
    oldestMailSeconds: none,
    pendingAccounts: none,
    waitingHashes: () => 0,
    ping: async () => undefined,
    isClusterAway: () => false,
  })
  return metricsOf(metrics.registry)
}

const paymentsMetrics = async (): Promise<string[]> => metricsOf(createPaymentsMetrics().registry)

const documented = (of: string): string[] =>
  metricRows()
    .filter((row) => row.of === of)
    .map(({ name, type, labels }) => `${name} ${type} ${labels.join(',')}`)
    .toSorted()

/** The histogram of durations is written by hand, outside of the registry. Its labels are read from a sample. */
function handWritten(text: string): string[] {
  const [, name = '', type = ''] = /^# TYPE (headgate_request_duration_seconds) (\w+)$/m.exec(text) ?? []
  const sample = /^headgate_request_duration_seconds_count\{(.*)\}/m.exec(text)?.[1] ?? ''
  return [`${name} ${type} ${[...sample.matchAll(/(\w+)="/g)].map(([, label]) => label).join(',')}`]
}

describe('docs/metrics.md names every metric with its type and its labels, and no other:', () => {
  test('gateway', async () => {
    const { registered, text } = await gatewayMetrics()
    const own = registered.filter((metric) => !OF_PROCESS.test(metric))
    expect([...own, ...handWritten(text)].toSorted()).toEqual(documented('gateway'))
  })

  test('operator', async () => {
    expect((await operatorMetrics()).filter((metric) => !OF_PROCESS.test(metric)).toSorted()).toEqual(documented('operator'))
  })

  test('dashboard', async () => {
    expect((await dashboardMetrics()).filter((metric) => !OF_PROCESS.test(metric)).toSorted()).toEqual(documented('dashboard'))
  })

  test('payments', async () => {
    expect((await paymentsMetrics()).filter((metric) => !OF_PROCESS.test(metric)).toSorted()).toEqual(documented('payments'))
  })

  test.skipIf(!isLinux)('process, in all programs', async () => {
    for (const metrics of [
      (await gatewayMetrics()).registered,
      await operatorMetrics(),
      await dashboardMetrics(),
      await paymentsMetrics(),
    ]) {
      expect(metrics.filter((metric) => OF_PROCESS.test(metric)).toSorted()).toEqual(documented('process'))
    }
  })

  test('every row says what the metric means', () => {
    for (const { name, meaning } of metricRows()) expect(meaning.length, name).toBeGreaterThan(10)
  })
})
