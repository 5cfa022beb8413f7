/** What the chart gives to Prometheus and Grafana, and the page that explains the metrics. */
import { parse } from 'yaml'
import { read } from './documents.ts'
import { codeSpans, tables } from './markdown-page.ts'

export const METRICS_PAGE = 'docs/metrics.md'

export interface MetricRow {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
  readonly of: 'gateway' | 'operator' | 'dashboard' | 'payments' | 'process'
  readonly meaning: string
}

export interface Alert {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

export interface PanelQuery {
  readonly title: string
  readonly expr: string
  /** Labels of the query are written `{{label}}`. */
  readonly legend: string
}

export function metricsPage(): string {
  return read(METRICS_PAGE)
}

export function metricRows(): MetricRow[] {
  const found = tables(metricsPage()).filter(({ columns }) => columns[0] === 'metric')
  return (['gateway', 'operator', 'dashboard', 'payments', 'process'] as const).flatMap((of, i) =>
    (found[i]?.rows ?? []).map((row) => ({
      name: codeSpans(row['metric'] ?? '')[0] ?? '',
      type: row['type'] ?? '',
      labels: codeSpans(row['labels'] ?? ''),
      of,
      meaning: row['meaning'] ?? '',
    })),
  )
}

export function alerts(): Alert[] {
  const file = parse(read('charts/headgate/monitoring/alerts.yaml')) as { groups: ReadonlyArray<{ rules: readonly Alert[] }> } // our own file
  return file.groups.flatMap(({ rules }) => rules)
}

/** Every query of the dashboard, with the variables of Grafana filled in. */
export function panelQueries(): PanelQuery[] {
  const dashboard = JSON.parse(read('charts/headgate/monitoring/dashboard.json')) as {
    readonly panels: ReadonlyArray<{
      readonly title: string
      readonly targets?: ReadonlyArray<{ readonly expr: string; readonly legendFormat: string }>
    }>
  }
  return dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({ title, expr: expr.replaceAll('$__rate_interval', '5m'), legend: legendFormat })),
  )
}
