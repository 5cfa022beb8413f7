/**
 * The roles for people and the sample policy `use`, as a user is told of them. The API server is this file's own: both are cluster-wide, and
 * no other test should meet them.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { FINALIZER } from '#api/apikey.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import { read, ROOT } from '../support/documents.ts'
import type { TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const lab = openLab()
const NAMESPACE = 'demo'
const EXAMPLES = join(ROOT, 'examples/account-rights')
/** A rendered chart, which test/integration/chart.test.ts holds equal to the chart. */
const ROLES = parseAllDocuments(read('test/golden/chart/extras.yaml'))
  .map((document) => document.toJS() as TestObject | null)
  .filter((object): object is TestObject => object?.kind === 'ClusterRole')
let plane: ControlPlane

/** Rows `| role | resources | verbs |` of docs/tenants.md. */
const ROWS = [...read('docs/tenants.md').matchAll(/^\| `([a-z-]+)`\s*\| ([a-z/, ]+?)\s*\| ([a-z, ]+?)\s*\|$/gm)]
const DOCUMENTED = [...Map.groupBy(ROWS, ([, role = '']) => role)].map(([role, rows]) => ({
  role,
  rights: Object.assign({}, ...rows.map(granted)) as Rights,
}))

type Rights = Record<string, string[]>

function granted([, , resources = '', verbs = '']: readonly string[]): Rights {
  return Object.fromEntries(resources.split(', ').map((resource) => [resource, verbs.split(', ').toSorted()]))
}

/** What `kubectl auth can-i --list` prints about kinds of ours. */
async function listed(...user: string[]): Promise<Rights> {
  const printed = await plane.kubectl(...user, '-n', NAMESPACE, 'auth', 'can-i', '--list', '--no-headers')
  const rows = printed.matchAll(/^(\w+)\.headgate\.dev(\/\w+)? +\[\] +\[([^\]]*)\] +\[([^\]]*)\]$/gm)
  return Object.fromEntries(
    [...rows].map(([, resource = '', part = '', names = '', verbs = '']) => [
      names === '' ? resource + part : `${resource}/${names}`,
      verbs.split(' ').toSorted(),
    ]),
  )
}

beforeAll(async () => {
  plane = await lab.ownControlPlane()
  await plane.namespace(NAMESPACE)
  await plane.namespace('shop')
  for (const role of ROLES) await plane.admin.apply(role)
  for (const { role } of DOCUMENTED) {
    await plane.admin.apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: `has-${role}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: `has-${role}` }],
    })
  }
})

describe('`kubectl auth can-i --list` equals the table of docs/tenants.md', () => {
  it('which lists the roles of the chart and those of Kubernetes that it extends', () => {
    const own = ['headgate-account-admin', 'headgate-account-view', 'headgate-billing', 'headgate-key-owner']
    expect(DOCUMENTED.map(({ role }) => role)).toEqual([...own, 'view', 'edit', 'admin'])
  })

  it.each(DOCUMENTED)('for someone who has $role in the whole cluster', async ({ role, rights }) => {
    await eventually(async () => expect(await listed('--as', `has-${role}`)).toEqual(rights)) // Kubernetes aggregates roles within seconds
  })
})

describe('with examples/account-rights', () => {
  const developer = ['--as', 'dora', '--as-group', 'acme-developers'] as const
  const editor = ['--as', 'has-edit'] as const
  const key = (name: string, account?: string, namespace = NAMESPACE): TestObject => ({
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'ApiKey',
    metadata: { name, namespace },
    spec: { models: ['*'], ...(account !== undefined && { accountRef: { name: account } }) },
  })
  const create = (user: readonly string[], object: TestObject): Promise<string> => {
    const file = join(lab.folder, `account-rights-${object.metadata.name}.json`) // JSON is YAML
    writeFileSync(file, JSON.stringify(object))
    return plane.kubectl(...user, 'create', '-f', file)
  }
  const refusal = (account: string, namespace = NAMESPACE): RegExp =>
    new RegExp(`you need the verb .*use.* on Account .*${account}.* in namespace .*${namespace}`)

  beforeAll(async () => {
    await plane.kubectl('apply', '-f', EXAMPLES)
    // the API server compiles a new policy within seconds
    await waitFor('the policy', () =>
      create(editor, key('probe', 'acme')).then(
        () => plane.kubectl('-n', NAMESPACE, 'delete', 'apikey', 'probe').then(() => false),
        (error: unknown) => refusal('acme').test(String(error)),
      ),
    )
  })

  it('a developer of the team creates, changes and deletes keys of its account', async () => {
    await create(developer, key('web', 'acme'))
    await plane.kubectl(...developer, '-n', NAMESPACE, 'patch', 'apikey', 'web', '--type=merge', '-p', '{"spec":{"state":"Suspended"}}')
    await plane.kubectl(...developer, '-n', NAMESPACE, 'delete', 'apikey', 'web')
  })

  it('nobody names an account without the verb: another account, an account that does not exist, or the account in another namespace', async () => {
    await expect(create(developer, key('other', 'globex'))).rejects.toThrow(refusal('globex'))
    await expect(create(editor, key('mine', 'acme'))).rejects.toThrow(refusal('acme'))
    await expect(create(editor, key('mine', 'acme', 'shop'))).rejects.toThrow(refusal('acme', 'shop'))
  })

  it('a key without an account needs no more than before', async () => {
    await create(editor, key('plain'))
  })

  it('the operator, which may not `use` any account, puts its finalizer on a key of one', async () => {
    await create(developer, key('claimed', 'acme'))
    const patch = ['patch', 'apikey', 'claimed', '--type=merge', '-p', JSON.stringify({ metadata: { finalizers: [FINALIZER] } })]
    await plane.kubectl(...editor, '-n', NAMESPACE, ...patch)
    await plane.kubectl(...editor, '-n', NAMESPACE, ...patch.slice(0, -1), '{"metadata":{"finalizers":null}}')
  })

  it('a developer of the team reads no Secret and no Account', async () => {
    const rights = { apikeys: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'], 'accounts/acme': ['use'] }
    expect(await listed(...developer)).toEqual(rights)
    await expect(plane.kubectl(...developer, '-n', NAMESPACE, 'get', 'secrets')).rejects.toThrow(/cannot list resource "secrets"/)
    await expect(plane.kubectl(...developer, 'get', 'account', 'acme')).rejects.toThrow(/cannot get resource "accounts"/)
  })
})
