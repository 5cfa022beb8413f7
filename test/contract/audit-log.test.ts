import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { operatorRights } from '../../operator/rights.ts'
import { allowedUses, grants } from '../support/audit-log.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { API_KINDS } from '#api/kinds.ts'

/** The comparison of rights and uses at the end of an integration run. It must not pass because it overlooks a request. */
const rights = operatorRights(API_KINDS)
let folder = ''

beforeEach(() => {
  folder = temporaryFolder()
})

const REQUEST = {
  kind: 'Event',
  level: 'Metadata',
  verb: 'patch',
  user: { username: 'system:serviceaccount:headgate-story:headgate-operator' },
  objectRef: { resource: 'apikeys', subresource: 'status', apiGroup: 'headgate.dev', namespace: 'shop', name: 'bot' },
  annotations: { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': 'RBAC: allowed by …' },
}

async function usesOf(...changes: readonly Readonly<Record<string, unknown>>[]): Promise<readonly string[]> {
  const path = join(folder, 'control-plane/audit')
  mkdirSync(path, { recursive: true })
  const lines = changes.map((change) => JSON.stringify({ ...REQUEST, ...change }))
  const cut = '{"kind":"Event","level":"Meta' // the server was killed while it wrote
  writeFileSync(join(path, 'audit.log'), `${cut}${lines.join('\n')}\n${cut}`)
  return [...(await allowedUses(folder, rights))]
}

test('a request counts as a use of its verb and its resource in its namespace', async () => {
  const own = { resource: 'secrets', namespace: 'headgate-story', name: 'hg-installation' }
  const reason = 'RBAC: allowed by RoleBinding "x" of Role "headgate-operator-headgate-story-former" to ServiceAccount "y"'
  const uses = await usesOf(
    {},
    { verb: 'update', objectRef: own },
    { verb: 'get', objectRef: { ...own, namespace: 'shop', name: 'bot' } },
    { verb: 'watch', objectRef: { resource: 'namespaces' } },
    { verb: 'list', objectRef: { resource: 'apikeys', apiGroup: 'headgate.dev' } },
    {
      verb: 'list',
      objectRef: { resource: 'apikeys', apiGroup: 'headgate.dev', namespace: 'old' },
      annotations: { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': reason },
    },
  )
  expect(uses).toEqual([
    'watched patch headgate.dev/apikeys/status',
    'own update /secrets',
    'watched get /secrets',
    'cluster watch /namespaces',
    'watched list headgate.dev/apikeys',
    'former list headgate.dev/apikeys',
  ])
  expect(uses.filter((use) => !grants(rights).has(use))).toEqual([])
})

test('a request that no row of the table grants is found', async () => {
  const [use = ''] = await usesOf({ verb: 'deletecollection', objectRef: { resource: 'secrets', namespace: 'shop' } })
  expect(use).toBe('watched deletecollection /secrets')
  expect(grants(rights).has(use)).toBe(false)
})

test('requests that were refused, of other users and of the tests themselves do not count', async () => {
  const uses = await usesOf(
    { annotations: { 'authorization.k8s.io/decision': 'forbid' } },
    { user: { username: 'system:serviceaccount:shop:bot' } },
    { userAgent: 'headgate-tests' },
  )
  expect(uses).toEqual([])
})

test('a log that holds a body is refused', async () => {
  await expect(usesOf({ level: 'RequestResponse', requestObject: { data: {} } })).rejects.toThrow(/more than metadata/)
})
