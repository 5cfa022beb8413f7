import { afterAll, beforeAll, expect, it } from 'vitest'
import { FINALIZER } from '../../operator/apikey/decide.ts'
import { NEWEST, objectsOf, template } from '../support/chart.ts'
import { objectPath, type KubeAdmin, type TestObject } from '../support/kube-admin.ts'
import { openLab, type Lab } from '../support/lab.ts'
import { waitFor } from '../support/wait-for.ts'

/** The chart's admission policy on a real API server, with no operator anywhere near. */
const GROUP = 'headgate.dev/v1alpha1'
const WATCHED = 'policy-watched'
let lab: Lab
let admin: KubeAdmin
let policy: readonly TestObject[] = []

beforeAll(async () => {
  lab = openLab()
  admin = lab.plane.admin
  for (const namespace of [WATCHED, 'policy-elsewhere']) await lab.plane.namespace(namespace)
  const objects = objectsOf(template([`scope.watchNamespaces={${WATCHED}}`], NEWEST)) as unknown as readonly TestObject[]
  policy = objects.filter(({ kind }) => kind.startsWith('MutatingAdmissionPolicy'))
  for (const object of policy) await admin.apply(object)
  let tries = 0
  const isInForce = async () => (await finalizersOf(`probe-${tries++}`)).includes(FINALIZER)
  await waitFor('the policy to be in force', isInForce, { everyMs: 100 })
})

afterAll(async () => {
  for (const { apiVersion, kind, metadata } of policy) await admin.remove(objectPath(apiVersion, kind, '', metadata.name))
  await lab.close()
})

/** Applies an ApiKey as a user does. @returns its finalizers in the answer */
async function finalizersOf(
  name: string,
  change: { namespace?: string; finalizers?: string[]; spec?: object } = {},
): Promise<readonly string[]> {
  const { namespace = WATCHED, finalizers, spec = {} } = change
  const metadata = { name, namespace, ...(finalizers ? { finalizers } : {}) }
  const { metadata: applied } = await admin.apply({ apiVersion: GROUP, kind: 'ApiKey', metadata, spec })
  return (applied as { finalizers?: readonly string[] }).finalizers ?? []
}

it('a new ApiKey has the finalizer in the very answer, and keeps it when it is applied again without', async () => {
  expect(await finalizersOf('bot')).toEqual([FINALIZER])
  expect(await finalizersOf('bot', { spec: { displayName: 'Bot' } })).toEqual([FINALIZER])
})

it('finalizers of others stay, and one that is there already is not added twice', async () => {
  expect(await finalizersOf('shared', { finalizers: ['example.net/mine'] })).toEqual(['example.net/mine', FINALIZER])
  expect(await finalizersOf('whole', { finalizers: [FINALIZER] })).toEqual([FINALIZER])
})

it('where no operator watches there is none: nobody would take it away', async () => {
  expect(await finalizersOf('bot', { namespace: 'policy-elsewhere' })).toEqual([])
})
