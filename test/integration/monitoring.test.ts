/** Alerts and dashboard, compared with the metrics that the programs export after calls, refusals, failures and a revocation. */
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { createPaymentsMetrics } from '../../dashboard/payments/metrics.ts'
import { ask } from '../support/ask.ts'
import { DashboardWorld } from '../support/dashboard-world.ts'
import { openLab } from '../support/lab.ts'
import { alerts, metricRows, panelQueries } from '../support/monitoring.ts'
import { readPromQL } from '../support/promql.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'

const lab = openLab()
let stack: Stack
/** The metrics of all programs together: types by name, and labels by the name of a series. */
const types = new Map<string, string>()
const series = new Map<string, Set<string>>()
const samples: string[] = []

/** Series of events that no test causes. test/contract/metrics-page.test.ts compares their labels with the registry. */
const RARE = new Set(['headgate_operator_start_blocked', 'headgate_operator_unreadable_entries'])

function read(text: string): void {
  for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) types.set(name, type)
  for (const [line, metric = '', labels = ''] of text.matchAll(/^([a-z_0-9]+)(?:\{(.*)\})? .*$/gm)) {
    samples.push(line)
    const known = series.get(metric) ?? new Set()
    for (const [, label = ''] of labels.matchAll(/([a-z_]+)="/g)) known.add(label)
    series.set(metric, known)
  }
}

async function call(credential: string, model: string): Promise<number> {
  return (await ask(lab, stack.gateway.url, { credential, model })).status
}

beforeAll(async () => {
  stack = await lab.stack()
  await stack.serveModel('llama')
  const limited = await stack.issueKey('limited', { limits: { requestsPerMinute: 2 } })
  await waitFor('a call to be admitted', async () => (await call(limited, 'llama')) === 200)
  await waitFor('a call to be refused', async () => (await call(limited, 'llama')) === 429)
  await stack.exposeService('nobody', 9, { addresses: [stack.site.ip] })
  const backends = [{ name: 'main', service: { name: 'nobody', port: 9 } }]
  await stack.apply('ServedModel', 'broken', { backends })
  const other = await stack.issueKey('other')
  await waitFor('a call to fail', async () => (await call(other, 'broken')) >= 500)
  await stack.setState('other', 'Revoked')
  await stack.untilCondition('ApiKey', 'other', 'Ready', { status: 'False' })
  await waitFor(
    'the revocation to be measured',
    async () => ((await stack.operator.metric('headgate_operator_revocation_seconds_count')) ?? 0) > 0,
  )
  for (const program of [stack.operator, stack.gateway]) read(await program.metrics())
  await using people = await DashboardWorld.open({ folder: join(lab.folder, 'monitoring') })
  await people.person('maya@fernwood.example')
  read(await people.dashboard.metrics.registry.metrics())
  const payments = createPaymentsMetrics()
  payments.event('refund.created', 'credits')
  read(await payments.registry.metrics())
})

const queries = [
  ...alerts().map(({ alert, expr }) => ({ where: alert, expr })),
  ...panelQueries().map(({ title, expr }) => ({ where: `panel ${title}`, expr })),
]

it.each(queries)('$where uses metrics and labels that the programs export', ({ expr }) => {
  for (const { metric, matchers } of readPromQL(expr).selectors) {
    expect(types.get(metric) ?? types.get(metric.replace(/_(bucket|sum|count)$/, '')), metric).toBeDefined()
    if (RARE.has(metric)) continue
    const labels = series.get(metric)
    expect(labels, `${metric} has a sample`).toBeDefined()
    for (const { label } of matchers.filter(({ label: one }) => one !== 'namespace')) expect([...(labels ?? [])], metric).toContain(label)
  }
})

it('labels and types equal those of docs/metrics.md', () => {
  for (const { name, type, labels } of metricRows()) {
    const seen = series.get(type === 'histogram' ? `${name}_count` : name)
    if (types.has(name)) expect(types.get(name), name).toBe(type)
    if (seen !== undefined && seen.size > 0) expect([...seen].toSorted(), name).toEqual(labels.toSorted())
  }
  const headgate = metricRows().filter(({ of }) => of !== 'process')
  expect(headgate.filter(({ name }) => !types.has(name)).map(({ name }) => name)).toEqual([])
})

it.each([
  ['headgate_requests_total', 'status', '5xx'],
  ['headgate_requests_total', 'status', '2xx'],
  ['headgate_limit_decisions_total', 'outcome', 'held'],
  ['headgate_limit_store_breaker', 'state', 'open'],
  ['headgate_table_source', 'source', 'Keyring'],
  ['leader_election_master_status', 'name', 'headgate-operator'],
  ['controller_runtime_reconcile_errors_total', 'controller', 'ApiKey'],
  ['controller_runtime_reconcile_panics_total', 'controller', 'ServedModel'],
  ['workqueue_depth', 'name', 'headgate-operator'],
])('%s has series with %s="%s", as alerts and dashboard expect', (metric, label, value) => {
  expect(samples.filter((line) => line.startsWith(`${metric}{`) && line.includes(`${label}="${value}"`))).not.toEqual([])
})
