/**
 * The operator's ServiceAccount and rights, and the policy that puts the finalizer on, as the chart renders them for the newest Kubernetes:
 * tests run with exactly what an installation grants.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { TestObject } from './kube-admin.ts'

/** Held equal to the chart by test/integration/chart.test.ts. */
const RENDERED = join(import.meta.dirname, '../golden/chart/newest.yaml')
const RIGHTS: readonly string[] = ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']
const POLICY: readonly string[] = ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding']
/** Namespace of the golden render. */
const RENDERED_FOR = 'headgate'

/** @param namespace of the operator; cluster-wide names are made of it too, so that several installations do not meet */
export function chartRights(namespace: string): TestObject[] {
  return rendered(namespace, RIGHTS)
}

/** For all namespaces of the cluster: only for one that no other stack uses. @param namespace of the operator */
export function finalizerPolicy(namespace: string): TestObject[] {
  return rendered(namespace, POLICY)
}

function rendered(namespace: string, kinds: readonly string[]): TestObject[] {
  const text = readFileSync(RENDERED, 'utf8').replaceAll(`headgate-operator-${RENDERED_FOR}`, `headgate-operator-${namespace}`)
  return parseAllDocuments(text)
    .map((document) => document.toJS() as TestObject | null) // YAML of our own chart
    .filter((object): object is TestObject => object !== null && kinds.includes(object.kind))
    .map(
      (object) =>
        JSON.parse(JSON.stringify(object).replaceAll(`"namespace":"${RENDERED_FOR}"`, `"namespace":"${namespace}"`)) as TestObject,
    )
}
