/**
 * What the chart lets the dashboard's ServiceAccount do with ApiKeys. The tests call with its token, as a thief of the token would. The API server is
 * this file's own, because its definition of ApiKey has fields of a later version.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { Account } from '#api/account.ts'
import type { ApiKeySpec } from '#api/apikey.ts'
import { apiKeys, plans, servedModels } from '#api/resources.ts'
import { InformerFactory } from '#kube/informer-factory.ts'
import { KubeCredentials } from '#kube/kube-credentials.ts'
import { RawClient } from '#kube/raw-client.ts'
import { Transport } from '#kube/transport.ts'
import { systemClock as clock } from '#platform/clock.ts'
import { createLog } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { newApiKey } from '../../dashboard/server/keys/key-manifest.ts'
import { drawValue } from '../../dashboard/server/keys/key-value.ts'
import { Keys } from '../../dashboard/server/keys/keys.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import type { KubeAdmin, TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { waitFor } from '../support/wait-for.ts'

const lab = openLab()
const DENIED = /ValidatingAdmissionPolicy 'headgate-dashboard-headgate-keys' .*denied request: the dashboard of Headgate may/s
const NAMESPACE = 'headgate-accounts'
const PATH = `/apis/headgate.dev/v1alpha1/namespaces/${NAMESPACE}/apikeys`
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/apikeys.headgate.dev'
/** A field that no version has so far. */
const LATER = 'fieldOfALaterVersion'
const ACCOUNT: Account = {
  ...{ apiVersion: 'headgate.dev/v1alpha1', kind: 'Account', metadata: { name: 'u-0123456789abcdef0123' } },
  spec: { planRef: { name: 'default' }, state: 'Active', billing: 'Prepaid' },
}

/** A valid value of each field: a new field of an ApiKey needs a sample here. */
const SAMPLES: Readonly<Record<keyof ApiKeySpec, unknown>> = {
  displayName: 'Another name',
  state: 'Suspended',
  accountRef: { name: 'acme' },
  models: ['llama'],
  expirationTime: '2099-01-01T00:00:00Z',
  ttlSeconds: 3_600,
  limits: { requestsPerMinute: 5 },
  budgets: [{ name: 'all', amount: '1000.00', unit: 'Currency', window: 'Lifetime' }],
  onStoreUnavailable: 'LocalShare',
  source: { type: 'Generated' },
  rotation: { overlapSeconds: 0 },
  secret: { name: 'of-another' },
}
/** Fields that the dashboard may write, also later. */
const WRITABLE: ReadonlySet<string> = new Set(['displayName', 'models', 'expirationTime', 'limits', 'budgets', 'rotation'])

interface Schema {
  readonly properties?: Record<string, Schema>
  readonly items?: Schema
}

let plane: ControlPlane
let thief: KubeAdmin
let admin: KubeAdmin
let spec: Schema
let later: readonly (readonly string[])[] = []

const nameOf = (number: number): string => `k-${String(number).padStart(20, '0')}`

/** An ApiKey as the code of the dashboard makes it. */
function fresh(number: number): TestObject {
  const name = nameOf(number)
  const { hash } = drawValue({ namespace: NAMESPACE, name })
  const form = { name: 'docs', models: ['*'] }
  return newApiKey(form, { name, namespace: NAMESPACE, account: ACCOUNT.metadata.name, hash }) as unknown as TestObject
}

const withSpec = (number: number, change: object): TestObject => {
  const made = fresh(number)
  return { ...made, spec: { ...made['spec'], ...change } }
}
const withMetadata = (number: number, change: object): TestObject => {
  const made = fresh(number)
  return { ...made, metadata: { ...made.metadata, ...change } }
}
const create = (object: unknown): Promise<TestObject> => thief.call('POST', `${PATH}?dryRun=All`, object)
const merge = (name: string, change: unknown): Promise<TestObject> =>
  thief.call('PATCH', `${PATH}/${name}?dryRun=All`, change, 'application/merge-patch+json')

/** Adds the field of a later version to every object of a schema. @returns the paths of the new fields */
function extend(schema: Schema, path: readonly string[]): readonly (readonly string[])[] {
  if (schema.items) return extend(schema.items, [...path, '0'])
  if (!schema.properties) return []
  const inner = Object.entries(schema.properties).flatMap(([name, one]) => extend(one, [...path, name]))
  schema.properties[LATER] = { type: 'string' } as Schema
  return [[...path, LATER], ...inner]
}

beforeAll(async () => {
  plane = await lab.ownControlPlane()
  admin = plane.admin
  const rendered = parseAllDocuments(readFileSync(join(import.meta.dirname, '../golden/chart/dashboard.yaml'), 'utf8'))
    .map((document) => document.toJS() as TestObject | null)
    .filter((object): object is TestObject =>
      /^(ServiceAccount|(Cluster)?Role(Binding)?|ValidatingAdmissionPolicy(Binding)?|Namespace)$/.test(object?.kind ?? ''),
    )
    .filter(({ metadata }) => (metadata['labels'] as Record<string, string>)['app.kubernetes.io/component'] === 'dashboard')
  const definition = (await admin.get(CRD))!
  spec = definition['spec'].versions[0].schema.openAPIV3Schema.properties.spec as Schema
  later = extend(spec, [])
  await admin.call('PUT', CRD, definition)
  await plane.namespace('headgate')
  for (const object of rendered) await admin.apply(object)
  thief = await plane.as('headgate', 'headgate-dashboard')
  await waitFor('the later version', async () => {
    const { spec: kept } = await admin.call('POST', `${PATH}?dryRun=All`, withSpec(1, { [LATER]: 'x' }))
    return kept[LATER] === 'x'
  })
  await waitFor('the policy', () =>
    create(withSpec(1, { state: 'Suspended' })).then(
      () => false,
      (error: unknown) => DENIED.test(String(error)),
    ),
  )
})
afterAll(() => thief?.close())

it('the code of the dashboard makes, edits, suspends, replaces and revokes keys with these rights', async () => {
  const kubeconfig = join(lab.folder, 'dashboard-key-rights.kubeconfig')
  await plane.kubeconfigFor('headgate', 'headgate-dashboard', kubeconfig)
  const transport = new Transport({ credentials: new KubeCredentials(kubeconfig), clock })
  const kube = new RawClient({ transport, clock })
  const { log } = createLog('dashboard', 'error')
  const source = { source: kube, clock, logger: log, random: Math.random, outage: new OutageLog('the API server', log, clock) }
  const [all, ofKeys] = [new InformerFactory(source, []), new InformerFactory(source, [NAMESPACE])]
  const plan = { apiVersion: 'headgate.dev/v1alpha1', kind: 'Plan', metadata: { name: 'default' }, spec: { models: ['*'], maxKeys: 5 } }
  await admin.create(plan)
  const caches = { apiKeys: ofKeys.createInformer(apiKeys), plans: all.createInformer(plans), models: all.createInformer(servedModels) }
  const keys = new Keys({ kube, ...caches, namespace: NAMESPACE, currency: 'EUR', clock })
  for (const watches of [all, ofKeys]) watches.start()
  await Promise.all([all.synced(), ofKeys.synced()])
  const form = { name: 'docs', models: ['*'], budget: { amount: '5', window: 'Day' as const } }
  const { key } = await keys.create(ACCOUNT, { ...form, attempt: 'the-only-attempt' })
  await keys.edit(ACCOUNT, key.id, { ...form, name: 'docs-search', requestsPerMinute: 5, budget: undefined })
  await keys.setState(ACCOUNT, key.id, 'Suspended')
  await keys.setState(ACCOUNT, key.id, 'Active')
  await keys.replace(ACCOUNT, key.id, 3_600)
  await keys.endFormerValue(ACCOUNT, key.id)
  expect(await keys.setState(ACCOUNT, key.id, 'Revoked')).toMatchObject({ name: 'docs-search', wanted: 'Revoked', budgets: [] })
  for (const watches of [all, ofKeys]) watches.stop()
  await transport.close()
})

describe('an ApiKey of the dashboard', () => {
  it('may be created as the code makes it', async () => {
    await create(fresh(2))
  })

  it.each<readonly [string, () => TestObject]>([
    ['a name of its own choice', () => withMetadata(2, { name: 'first-key' })],
    ['a name that only begins like one of its own', () => withMetadata(2, { name: `${nameOf(2)}-x` })],
    ['no label', () => withMetadata(2, { labels: undefined })],
    ['another label', () => withMetadata(2, { labels: { 'headgate.dev/created-by': 'dashboard', team: 'x' } })],
    ['an annotation', () => withMetadata(2, { annotations: { 'headgate.dev/x': 'x' } })],
    ['a finalizer', () => withMetadata(2, { finalizers: ['example.net/never'] })],
    ['an owner of the object', () => withMetadata(2, { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' }] })],
    ['no account', () => withSpec(2, { accountRef: undefined })],
    ['a value that the operator writes into a Secret', () => withSpec(2, { source: { type: 'Generated' } })],
    ['no source, so that the default counts', () => withSpec(2, { source: undefined })],
    ['a hash without a proof', () => withSpec(2, { source: { type: 'Hash', hash: { sha256: 'a'.repeat(64) } } })],
    ['a state of its own', () => withSpec(2, { state: 'Suspended' })],
    ['a policy for an outage of Redis', () => withSpec(2, { onStoreUnavailable: 'LocalShare' })],
    ['a time to live', () => withSpec(2, { ttlSeconds: 3_600 })],
  ])('may not be created with %s', async (_what, object) => {
    await expect(create(object())).rejects.toThrow(DENIED)
  })

  it('has a sample of each field in this file', () => {
    const fields = Object.keys(spec.properties ?? {}).filter((name) => name !== LATER)
    expect(Object.keys(SAMPLES).toSorted()).toEqual(fields.toSorted())
  })

  it('may not have a field of a later version, neither a new one nor one that exists', async () => {
    expect(later.length).toBeGreaterThan(5)
    await admin.create(fresh(3))
    const deep = later.filter(([head = '']) => !WRITABLE.has(head) && head !== 'accountRef')
    for (const path of deep.filter(({ length }) => length === 1)) {
      await expect(create(withSpec(4, { [path[0] ?? '']: 'x' })), path.join('.')).rejects.toThrow(DENIED)
      await expect(merge(nameOf(3), { spec: { [path[0] ?? '']: 'x' } }), path.join('.')).rejects.toThrow(DENIED)
    }
    for (const change of [{ source: { [LATER]: 'x' } }, { source: { hash: { [LATER]: 'x' } } }])
      await expect(merge(nameOf(3), { spec: change })).rejects.toThrow(DENIED)
  })

  it.each([...WRITABLE])('may be changed in %s', async (name) => {
    await merge(nameOf(3), { spec: { [name]: SAMPLES[name as keyof ApiKeySpec] } })
  })

  it('may be suspended, revoked, and given another value with a proof', async () => {
    for (const state of ['Suspended', 'Revoked']) await merge(nameOf(3), { spec: { state } })
    const { hash } = drawValue({ namespace: NAMESPACE, name: nameOf(3) })
    await merge(nameOf(3), { spec: { source: { hash } } })
    await expect(merge(nameOf(3), { spec: { source: { hash: { proof: null } } } })).rejects.toThrow(DENIED)
  })

  it.each<readonly [string, object]>([
    ['get another policy for an outage of Redis', { spec: { onStoreUnavailable: 'LocalShare' } }],
    ['get a label', { metadata: { labels: { team: 'x' } } }],
    ['lose its label', { metadata: { labels: null } }],
    ['get an annotation', { metadata: { annotations: { x: 'y' } } }],
    ['get a finalizer', { metadata: { finalizers: ['example.net/x'] } }],
  ])('may not %s', async (_what, change) => {
    await expect(merge(nameOf(3), change)).rejects.toThrow(DENIED)
  })
})

it('an ApiKey that somebody else made in the namespace may not be changed', async () => {
  await admin.create({ ...fresh(5), metadata: { name: 'of-gitops', namespace: NAMESPACE } })
  for (const change of [{ spec: { state: 'Suspended' } }, { metadata: { labels: { 'headgate.dev/created-by': 'dashboard' } } }])
    await expect(merge('of-gitops', change)).rejects.toThrow(DENIED)
})

it('no other user is refused anything', async () => {
  await admin.call('POST', `${PATH}?dryRun=All`, { ...fresh(6), metadata: { name: 'of-an-administrator', labels: { team: 'x' } } })
})
