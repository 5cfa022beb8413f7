/** The operator's ServiceAccount, rights and admission policy as the chart renders them: tests run with exactly what an installation grants. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { TestObject } from './kube-admin.ts'

/** test/integration/chart.test.ts holds this value equal to the chart. */
const RENDERED = join(import.meta.dirname, '../golden/chart/namespaces.yaml')
const KINDS = new Set([
  'ServiceAccount',
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
])
/** Namespaces of the golden render: the operator's, two watched ones, one formerly watched. */
const OWN = 'headgate'
const [WATCHED, ALSO_WATCHED] = ['shop', 'lab']
const FORMER = 'old'

export interface RightsScope {
  /** The operator's own namespace. Cluster-wide names contain it too, so that several installations do not collide. */
  readonly own: string
  readonly watched: readonly string[]
  readonly former?: readonly string[]
}

export function chartRights({ own, watched, former = [] }: RightsScope): TestObject[] {
  const rendered = readFileSync(RENDERED, 'utf8')
    .replaceAll(`headgate-operator-${OWN}`, `headgate-operator-${own}`)
    .replaceAll('name: headgate-accounts', `name: headgate-accounts-${own}`) // one release of a cluster has accounts, but a test may have several
    .replaceAll(`system:serviceaccount:${OWN}:`, `system:serviceaccount:${own}:`)
    .replaceAll(`namespace == '${OWN}'`, `namespace == '${own}'`)
  const places: Readonly<Record<string, readonly string[]>> = {
    [OWN]: [own],
    [WATCHED]: watched,
    [ALSO_WATCHED]: [],
    [FORMER]: former,
    default: ['default'],
  }
  return parseAllDocuments(rendered)
    .map((document) => document.toJS() as TestObject | null) // YAML of our own chart
    .filter((object): object is TestObject => object !== null && KINDS.has(object.kind))
    .flatMap((object) => {
      const { namespace } = object.metadata
      if (namespace === undefined) return [inNamespace(object, undefined, own)]
      return (places[namespace] ?? []).map((place) => inNamespace(object, place, own))
    })
}

/** A copy in another namespace. The ServiceAccount that a binding names stays in the operator's namespace. */
function inNamespace(object: TestObject, namespace: string | undefined, own: string): TestObject {
  const subjects = (object.subjects as readonly { readonly namespace: string }[] | undefined)?.map((one) => ({ ...one, namespace: own }))
  return {
    ...object,
    metadata: { ...object.metadata, ...(namespace === undefined ? {} : { namespace }) },
    ...(subjects === undefined ? {} : { subjects }),
  }
}
