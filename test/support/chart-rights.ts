/** The operator's ServiceAccount and rights as the chart renders them, so that tests run with exactly what an installation grants. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { TestObject } from './kube-admin.ts'

/** Held equal to the chart by test/integration/chart.test.ts. */
const RENDERED = join(import.meta.dirname, '../golden/chart/default.yaml')
const KINDS = new Set(['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'])
/** Namespace of the golden render. */
const RENDERED_FOR = 'headgate'

/** @param namespace of the operator; cluster-wide names are made of it too, so that several installations do not meet */
export function chartRights(namespace: string): TestObject[] {
  const rendered = readFileSync(RENDERED, 'utf8').replaceAll(`headgate-operator-${RENDERED_FOR}`, `headgate-operator-${namespace}`)
  return parseAllDocuments(rendered)
    .map((document) => document.toJS() as TestObject | null) // YAML of our own chart
    .filter((object): object is TestObject => object !== null && KINDS.has(object.kind))
    .map(
      (object) =>
        JSON.parse(JSON.stringify(object).replaceAll(`"namespace":"${RENDERED_FOR}"`, `"namespace":"${namespace}"`)) as TestObject,
    )
}
