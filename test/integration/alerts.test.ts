/** The alerts under promtool, the test program of Prometheus: each alert fires in its cases, and is silent in all other cases. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { ALERT_CASES, type Situation } from '../support/alert-cases.ts'
import { alerts } from '../support/monitoring.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'

const ROOT = join(import.meta.dirname, '../..')
const RULES = join(ROOT, 'charts/headgate/monitoring/alerts.yaml')
/** chart.test.ts holds this list equal to the chart. */
const GOLDEN = join(ROOT, 'test/golden/chart/extras.yaml')
const folder = temporaryFolderOfFile()

function findPromtool(): string | undefined {
  const cached = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'headgate/promtool/promtool')
  if (existsSync(cached)) return cached
  return spawnSync('promtool', ['--version']).status === 0 ? 'promtool' : undefined
}

const promtool = findPromtool()

function run(...args: readonly string[]): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(promtool ?? '', args, { encoding: 'utf8' })
  return { status, text: stdout + stderr }
}

/** One test of promtool: after some minutes of these series, this many alerts fire. */
function test(alert: string, situation: Situation, after: number, firing: boolean): object {
  return {
    interval: '1m',
    name: `${alert} ${firing ? 'fires' : 'is silent'} on ${JSON.stringify(situation)}`,
    input_series: Object.entries(situation).map(([series, values]) => ({ series, values })),
    promql_expr_test: [
      {
        expr: `count by (alertname) (ALERTS{alertname="${alert}",alertstate="firing"})`,
        eval_time: `${after}m`,
        exp_samples: firing ? [{ labels: `{alertname="${alert}"}`, value: 1 }] : [],
      },
    ],
  }
}

beforeEach(({ skip }) => {
  skip(promtool === undefined, 'promtool is not here; test/parts/promtool.sh fetches it')
})

it('has a case for every alert', () => {
  expect(Object.keys(ALERT_CASES).toSorted()).toEqual(
    alerts()
      .map(({ alert }) => alert)
      .toSorted(),
  )
})

it('the rule file in the chart and the rendered rule file are valid for Prometheus', () => {
  const documents = parseAllDocuments(readFileSync(GOLDEN, 'utf8')).map(
    (document) => document.toJS() as { kind?: string; spec: object } | null,
  )
  const file = join(folder, 'rendered.yaml')
  writeFileSync(file, stringify(documents.find((object) => object?.kind === 'PrometheusRule')?.spec))
  for (const rules of [RULES, file]) expect(run('check', 'rules', rules)).toMatchObject({ status: 0 })
})

it.each(Object.entries(ALERT_CASES))('%s fires where it must, and is silent where it must be', (alert, { fires, silent, after = 10 }) => {
  const file = join(folder, `${alert}.yaml`)
  const tests = [...fires.map((one) => test(alert, one, after, true)), ...silent.map((one) => test(alert, one, after, false))]
  writeFileSync(file, stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }))
  expect(run('test', 'rules', file)).toMatchObject({ status: 0 })
})
