import { describe, expect, test } from 'vitest'
import { API_KINDS } from '#api/kinds.ts'
import { ERROR_ROWS } from '../../gateway/errors.ts'
import { ORPHAN_QUEUE } from '../../operator/kinds/apikey/orphans.ts'
import { codeSpans } from '../support/markdown-page.ts'
import { alerts, METRICS_PAGE, metricRows, metricsPage, type MetricRow, panelQueries } from '../support/monitoring.ts'
import { type Matcher, type Query, readPromQL, type Selector } from '../support/promql.ts'

/** Labels that Prometheus adds to every sample of a pod. */
const OF_TARGET = ['namespace', 'pod']
/** Suffixes of the series of a histogram. */
const HISTOGRAM_PARTS = /_(bucket|sum|count)$/

const rows = new Map(metricRows().map((row) => [row.name, row]))
const page = metricsPage()
const rules = alerts()
const queries = [
  ...rules.map(({ alert, expr }) => ({ where: alert, expr })),
  ...panelQueries().map(({ title, expr }) => ({ where: `panel ${title}`, expr })),
]

function rowOf(metric: string): MetricRow | undefined {
  const whole = rows.get(metric)
  if (whole !== undefined) return whole.type === 'histogram' ? undefined : whole // a histogram has no series of its own name
  const histogram = rows.get(metric.replace(HISTOGRAM_PARTS, ''))
  return histogram?.type === 'histogram' ? histogram : undefined
}

/** Values of a label where the page does not list them. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  error: ERROR_ROWS.map(({ id }) => id),
  name: ['headgate-operator'],
}

function unknownValues(row: MetricRow, { label, operator, value }: Matcher): string[] {
  if (OF_TARGET.includes(label) || value === '') return []
  const known = VALUES[label] ?? codeSpans(row.meaning)
  return (operator.includes('~') ? value.split('|') : [value]).filter((one) => !known.includes(one))
}

function strangersOf({ metric, matchers }: Selector): string[] {
  const row = rowOf(metric)
  if (row === undefined) return [metric]
  const labels = [...row.labels, ...OF_TARGET]
  return matchers.flatMap((matcher) => {
    if (!labels.includes(matcher.label)) return [`${metric}{${matcher.label}}`]
    return unknownValues(row, matcher).map((value) => `${metric}{${matcher.label}="${value}"}`)
  })
}

function strangers({ selectors, grouping }: Query): string[] {
  const labels = selectors.flatMap(({ metric }) => [...(rowOf(metric)?.labels ?? []), ...(metric.endsWith('_bucket') ? ['le'] : [])])
  const unknown = grouping.filter((label) => ![...labels, ...OF_TARGET].includes(label))
  return [...selectors.flatMap(strangersOf), ...unknown.map((label) => `by (${label})`)]
}

describe.each(queries)('$where', ({ expr }) => {
  const query = readPromQL(expr)

  test('is PromQL, and asks for metrics, labels and values that exist', () => {
    expect(query.selectors.length).toBeGreaterThan(0)
    expect(strangers(query)).toEqual([])
  })

  test('reads one namespace, and so leaves out another installation in the cluster', () => {
    for (const { metric, matchers } of query.selectors) {
      expect(matchers, metric).toContainEqual({
        label: 'namespace',
        operator: '=',
        value: expect.stringMatching(/^(headgate|\$namespace)$/),
      })
    }
  })
})

test('a metric, a label or a value that does not exist is found', () => {
  const wrong = 'sum by (modle) (rate(headgate_request_total{status="5xx"}[5m])) / headgate_limit_store_breaker{state="opne",pood="a"}'
  const expected = [
    'headgate_request_total',
    'headgate_limit_store_breaker{state="opne"}',
    'headgate_limit_store_breaker{pood}',
    'by (modle)',
  ]
  expect(strangers(readPromQL(wrong)).toSorted()).toEqual(expected.toSorted())
  expect(() => readPromQL('sum(rate(headgate_keys[5m])')).toThrow(SyntaxError)
  expect(() => readPromQL('headgate_keys > 1) or vector(0)')).toThrow(SyntaxError)
})

describe.each(rules)('the alert $alert', ({ alert, expr, labels, annotations }) => {
  test('has a summary, a description, a severity, and a section of the page that says what to do', () => {
    expect(annotations).toEqual({
      summary: expect.stringMatching(/^.{10,}\.$/),
      description: expect.stringMatching(/^.{20,}\.$/),
      runbook: `${METRICS_PAGE}#${alert.toLowerCase()}`,
    })
    const section = page.split(`\n### ${alert}\n`)[1]?.split('\n#')[0]?.trim() ?? ''
    expect(section).toMatch(new RegExp(`^${labels['severity'] === 'critical' ? 'Critical' : 'Warning'}\\. .{40,}`))
    expect(labels).toEqual({ severity: expect.stringMatching(/^(critical|warning)$/) })
  })

  test('names in its texts only labels that its result has', () => {
    const named = Object.values(annotations).flatMap((text) => [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label))
    expect(readPromQL(expr).grouping).toEqual(expect.arrayContaining(named))
  })
})

test('an alert about reconciles covers every kind, and the queue of orphans', () => {
  const all = [...API_KINDS.map(({ resource }) => resource.kind), ORPHAN_QUEUE].toSorted()
  const named = rules.flatMap(({ expr }) =>
    readPromQL(expr).selectors.flatMap(({ matchers }) => matchers.filter(({ label }) => label === 'controller')),
  )
  expect(named.map(({ value }) => value.split('|').toSorted())).toEqual([all, all])
})

test('every section of the page about an alert belongs to an alert, in the order of the rule file', () => {
  const sections = [...page.matchAll(/^### (\w+)$/gm)].map(([, name]) => name)
  expect(sections).toEqual(rules.map(({ alert }) => alert))
})

test('legends of the dashboard name only labels that the query keeps', () => {
  for (const { title, expr, legend } of panelQueries()) {
    const named = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label)
    expect(readPromQL(expr).grouping, title).toEqual(expect.arrayContaining(named))
  }
})
