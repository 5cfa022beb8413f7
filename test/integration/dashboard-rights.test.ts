/**
 * What the chart lets the dashboard's ServiceAccount do. No dashboard runs here: the tests call with its token, as a thief of the token would. The API
 * server is this file's own, because its definition of Account has fields of a later version.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { AccountSpec } from '#api/account.ts'
import { accounts } from '#api/resources.ts'
import { InformerFactory } from '#kube/informer-factory.ts'
import { KubeCredentials } from '#kube/kube-credentials.ts'
import { RawClient } from '#kube/raw-client.ts'
import { Transport } from '#kube/transport.ts'
import { systemClock as clock } from '#platform/clock.ts'
import { createLog } from '#platform/log.ts'
import { OutageLog } from '#platform/outage-log.ts'
import { accountNameOf, Accounts, newAccount } from '../../dashboard/server/accounts/accounts.ts'
import type { Member, Members } from '../../dashboard/server/accounts/members.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import type { KubeAdmin, TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const lab = openLab()
const USER = 'system:serviceaccount:headgate:headgate-dashboard'
const AS = [
  '--as',
  USER,
  ...['serviceaccounts', 'serviceaccounts:headgate', 'authenticated'].flatMap((one) => ['--as-group', `system:${one}`]),
]
const DENIED = /ValidatingAdmissionPolicy 'headgate-dashboard-headgate-(?:accounts|keys)' .*denied request: the dashboard of Headgate may/s
const PATH = '/apis/headgate.dev/v1alpha1/accounts'
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/accounts.headgate.dev'
/** A field that no version has so far. */
const LATER = 'fieldOfALaterVersion'
const SETTINGS = { defaultPlan: 'default', billing: 'Prepaid', keysNamespace: 'headgate-accounts' } as const
const ADA = { id: 'ada', name: 'Ada', email: 'ada@example.net' }

/** Another value of each field than the dashboard may set: a new field of an Account needs a sample here. */
const SAMPLES: Readonly<Record<keyof AccountSpec, unknown>> = {
  displayName: 'Another name',
  owner: { email: 'eve@example.net', emailVerification: 'Pending' },
  planRef: { name: 'enterprise' },
  state: 'Suspended',
  billing: 'Unmetered',
  namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' }, matchExpressions: [{ key: 'x', operator: 'Exists' }] },
  limits: { requestsPerMinute: 1_000_000 },
  budgets: [{ name: 'all', amount: '1000.00', unit: 'Currency', window: 'Lifetime' }],
}
const CHANGEABLE: ReadonlySet<string> = new Set(['displayName', 'owner', 'state'])

interface Schema {
  readonly type?: string
  readonly properties?: Record<string, Schema>
  readonly items?: Schema
}

let plane: ControlPlane
let thief: KubeAdmin
let admin: KubeAdmin
let spec: Schema

/** An Account as the code of the dashboard makes it. */
function fresh(id: string, change: Readonly<Record<string, unknown>> = {}): TestObject {
  const made = newAccount({ ...ADA, id }, accountNameOf(id), SETTINGS) as unknown as TestObject
  return { ...made, ...change }
}

const withSpec = (id: string, change: Readonly<Record<string, unknown>>): TestObject =>
  fresh(id, { spec: { ...fresh(id)['spec'], ...change } })
const withMetadata = (id: string, change: Readonly<Record<string, unknown>>): TestObject =>
  fresh(id, { metadata: { ...fresh(id).metadata, ...change } })
const create = (object: unknown): Promise<TestObject> => thief.call('POST', `${PATH}?dryRun=All`, object)
const merge = (name: string, change: unknown): Promise<TestObject> =>
  thief.call('PATCH', `${PATH}/${name}?dryRun=All`, change, 'application/merge-patch+json')

/** Adds the field of a later version to every object of a schema. @returns the paths of the new fields */
function extend(schema: Schema, path: readonly string[]): readonly (readonly string[])[] {
  if (schema.items) return extend(schema.items, [...path, '0'])
  if (!schema.properties) return []
  const inner = Object.entries(schema.properties).flatMap(([name, one]) => extend(one, [...path, name]))
  schema.properties[LATER] = { type: 'string' }
  return [[...path, LATER], ...inner]
}

/** A copy of a value with the field of a later version at the end of the path; missing parts come from the samples. */
function reaching(value: unknown, [head = '', ...rest]: readonly string[], sample: unknown): unknown {
  if (rest.length === 0) return { ...(value as object), [head]: 'x' }
  const [part, partSample] = [value, sample].map((one) => (one as Record<string, unknown> | undefined)?.[head])
  const inner = reaching(part ?? partSample ?? {}, rest, partSample)
  return head === '0' ? [inner] : { ...(value as object), [head]: inner }
}

let later: readonly (readonly string[])[] = []

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
    const { spec: kept } = await admin.call('POST', `${PATH}?dryRun=All`, withSpec('later', { [LATER]: 'x' }))
    return kept[LATER] === 'x'
  })
  await waitFor('the policy', () =>
    create(withSpec('first', { state: 'Suspended' })).then(
      () => false,
      (error: unknown) => DENIED.test(String(error)),
    ),
  )
})
afterAll(() => thief?.close())

describe('rights', () => {
  it('are those of the golden file, as `kubectl auth can-i --list` prints them', async () => {
    const listed = async (): Promise<string> => {
      const printed = await plane.kubectl(...AS, '-n', 'headgate-accounts', 'auth', 'can-i', '--list', '--no-headers')
      const lines = printed
        .trim()
        .split('\n')
        .map((line) => line.trim().replaceAll(/ {2,}/g, '  '))
      return `${lines.toSorted().join('\n')}\n`
    }
    await eventually(async () => expect(await listed()).toContain('accounts.headgate.dev'))
    await expect(await listed()).toMatchFileSnapshot('../golden/dashboard-rights.txt')
  })

  it.each<readonly ['GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE', string]>([
    ['GET', '/api/v1/namespaces/headgate/secrets'],
    ['GET', '/api/v1/namespaces/headgate-accounts/secrets/any'],
    ['POST', '/api/v1/namespaces/headgate-accounts/secrets'],
    ['DELETE', `${PATH}/acme`],
    ['DELETE', PATH],
    ['PUT', `${PATH}/acme`],
    ['PATCH', `${PATH}/acme/status`],
    ['POST', '/apis/headgate.dev/v1alpha1/credits'],
    ['PATCH', '/apis/headgate.dev/v1alpha1/credits/any'],
    ['PATCH', '/apis/headgate.dev/v1alpha1/credits/any/status'],
    ['DELETE', '/apis/headgate.dev/v1alpha1/credits/any'],
    ['POST', '/apis/headgate.dev/v1alpha1/plans'],
    ['PATCH', '/apis/headgate.dev/v1alpha1/plans/default'],
    ['POST', '/apis/headgate.dev/v1alpha1/namespaces/headgate/apikeys'],
    ['GET', '/apis/headgate.dev/v1alpha1/apikeys'],
    ['DELETE', '/apis/headgate.dev/v1alpha1/namespaces/headgate-accounts/apikeys/any'],
    ['PATCH', '/apis/headgate.dev/v1alpha1/namespaces/headgate-accounts/apikeys/any/status'],
    ['PATCH', '/apis/headgate.dev/v1alpha1/namespaces/headgate-accounts/servedmodels/any'],
    ['POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'],
    ['PATCH', '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/headgate-dashboard-headgate-accounts'],
    ['POST', '/api/v1/namespaces/headgate/serviceaccounts/headgate-operator/token'],
  ])('do not include %s %s', async (method, path) => {
    const body = method === 'GET' || method === 'DELETE' ? undefined : {}
    expect(await thief.answer(method, path, body, method === 'PATCH' ? 'application/merge-patch+json' : undefined)).toMatchObject({
      status: 403,
    })
  })
})

describe('the code of the dashboard', () => {
  it('lists, watches, creates, finds, changes and suspends Accounts with these rights', async () => {
    const kubeconfig = join(lab.folder, 'dashboard-rights.kubeconfig')
    await plane.kubeconfigFor('headgate', 'headgate-dashboard', kubeconfig)
    const transport = new Transport({ credentials: new KubeCredentials(kubeconfig), clock })
    const kube = new RawClient({ transport, clock })
    const { log } = createLog('dashboard', 'error')
    const watches = new InformerFactory(
      { source: kube, clock, logger: log, random: Math.random, outage: new OutageLog('the API server', log, clock) },
      [],
    )
    const informer = watches.createInformer(accounts)
    const people = new Accounts({ kube, informer, members: membersInMemory(), settings: SETTINGS, log })
    watches.start()
    await informer.synced
    const found = await people.of(ADA)
    expect(found).toMatchObject({ state: 'Found', account: { metadata: { name: accountNameOf('ada') } } })
    if (found.state !== 'Found') return
    await people.bringUpToDate({ ...ADA, email: 'ada@example.org' })
    await people.suspend(found.member.accountName)
    expect((await admin.get(`${PATH}/${accountNameOf('ada')}`))?.['spec']).toEqual({
      displayName: 'Ada',
      owner: { email: 'ada@example.org', emailVerification: 'Verified' },
      planRef: { name: 'default' },
      state: 'Suspended',
      billing: 'Prepaid',
      namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'headgate-accounts' } },
    })
    watches.stop()
    await transport.close()
  })

  it('reads Plans', async () => {
    await eventually(async () => expect(await thief.list('/apis/headgate.dev/v1alpha1/plans')).toEqual([])) // 429 while the definition is new
  })
})

describe('an Account of the dashboard', () => {
  it('may be created as the code makes it, with a name or without', async () => {
    await create(fresh('bo'))
    await create(withSpec('bo', { displayName: undefined }))
  })

  it.each<readonly [string, () => TestObject]>([
    ['a name of its own choice', () => withMetadata('bo', { name: 'acme' })],
    ['a name that only begins like one of its own', () => withMetadata('bo', { name: `${accountNameOf('bo')}-x` })],
    ['a generated name', () => withMetadata('bo', { name: undefined, generateName: 'u-0123456789abcde' })],
    ['no label', () => withMetadata('bo', { labels: undefined })],
    ['another label', () => withMetadata('bo', { labels: { 'headgate.dev/created-by': 'dashboard', team: 'x' } })],
    ['another value of the label', () => withMetadata('bo', { labels: { 'headgate.dev/created-by': 'admin' } })],
    ['an annotation', () => withMetadata('bo', { annotations: { 'headgate.dev/installation': 'x' } })],
    ['a finalizer', () => withMetadata('bo', { finalizers: ['example.net/never'] })],
    [
      'an owner of the object',
      () => withMetadata('bo', { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' }] }),
    ],
    ['an address that is not verified', () => withSpec('bo', { owner: { email: 'bo@example.net', emailVerification: 'Pending' } })],
    ['an address of which nothing is said', () => withSpec('bo', { owner: { email: 'bo@example.net' } })],
    ['no owner', () => withSpec('bo', { owner: undefined })],
    ['no billing, so that the default counts', () => withSpec('bo', { billing: undefined })],
    ['no namespaces', () => withSpec('bo', { namespaces: undefined })],
    [
      'one more namespace',
      () =>
        withSpec('bo', { namespaces: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['shop'] }] } }),
    ],
    ['all namespaces', () => withSpec('bo', { namespaces: { matchExpressions: [{ key: 'x', operator: 'DoesNotExist' }] } })],
  ])('may not be created with %s', async (_what, object) => {
    await expect(create(object())).rejects.toThrow(DENIED)
  })

  it('has a sample of each field in this file', () => {
    expect(Object.keys(SAMPLES).toSorted()).toEqual(
      Object.keys(spec.properties ?? {})
        .filter((name) => name !== LATER)
        .toSorted(),
    )
  })

  it.each(Object.keys(SAMPLES).filter((name) => name !== 'displayName'))('may not be created with another value of %s', async (name) => {
    const sample = SAMPLES[name as keyof AccountSpec]
    await expect(create(withSpec('bo', { [name]: sample }))).rejects.toThrow(DENIED)
    await admin.call('POST', `${PATH}?dryRun=All`, withSpec('bo', { [name]: sample })) // the sample is valid, so the policy has refused it
  })

  it('may not have a field of a later version, at any place of the definition', async () => {
    expect(later.length).toBeGreaterThan(5)
    await admin.create(fresh('cy'))
    for (const path of later) {
      const made = fresh('di')
      const changed = reaching(made['spec'], path, SAMPLES)
      await admin.call('POST', `${PATH}?dryRun=All`, { ...made, spec: changed })
      await expect(create({ ...made, spec: changed }), path.join('.')).rejects.toThrow(DENIED)
      await expect(merge(accountNameOf('cy'), { spec: changed }), path.join('.')).rejects.toThrow(DENIED)
    }
  })
})

describe('any Account', () => {
  const acme: TestObject = {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'Account',
    metadata: {
      name: 'acme',
      labels: { team: 'x' },
      annotations: { 'headgate.dev/installation': 'headgate/1', note: 'y' },
      finalizers: ['example.net/x'],
    },
    spec: { ...(SAMPLES as object), planRef: { name: 'default' }, state: 'Active', billing: 'Prepaid', displayName: 'Acme' },
  }
  beforeAll(async () => {
    await admin.create(acme)
    const status = { observedGeneration: 1, spent: '1.00' }
    await admin.call('PATCH', `${PATH}/acme/status`, { status }, 'application/merge-patch+json')
  })

  it.each<readonly [string, object]>([
    ['another name for people', { displayName: 'Acme Ltd' }],
    ['no name for people', { displayName: null }],
    ['state Suspended', { state: 'Suspended' }],
    ['both', { displayName: 'A', state: 'Suspended' }],
  ])('may be changed to have %s', async (_what, change) => {
    await merge('acme', { spec: change })
  })

  describe.each<readonly [string, string, object]>([
    ['that an administrator made', 'acme', {}],
    ['with another value of the label', 'of-another', { labels: { 'headgate.dev/created-by': 'admin' } }],
    ['with another value of the annotation', 'not-marked', { annotations: { 'headgate.dev/owner-follows-person': 'false' } }],
  ])('%s', (_what, name, metadata) => {
    beforeAll(async () => {
      if (name !== 'acme') await admin.create({ ...acme, metadata: { name, ...metadata } })
    })

    it.each<readonly [string, object]>([
      ['another address', { owner: { email: 'thief@example.org' } }],
      ['a verified address', { owner: { emailVerification: 'Verified' } }],
      ['another address together with another name', { displayName: 'A', owner: { email: 'thief@example.org' } }],
    ])('may not be given %s, so that a thief of the token cannot get the Account by signing up', async (_change, change) => {
      await expect(merge(name, { spec: change })).rejects.toThrow(DENIED)
    })

    it('may not be marked for that', async () => {
      for (const change of [
        { labels: { 'headgate.dev/created-by': 'dashboard' } },
        { annotations: { 'headgate.dev/owner-follows-person': 'true' } },
      ])
        await expect(merge(name, { metadata: change, spec: { owner: { email: 'thief@example.org' } } })).rejects.toThrow(DENIED)
    })
  })

  it('without an owner may not be given one', async () => {
    await admin.create({ ...acme, metadata: { name: 'ownerless' }, spec: { ...acme['spec'], owner: undefined } })
    await expect(merge('ownerless', { spec: { owner: { email: 'thief@example.org' } } })).rejects.toThrow(DENIED)
  })

  it.each<readonly [string, string, object]>([
    ['that the dashboard created', 'of-dashboard', { labels: { 'headgate.dev/created-by': 'dashboard', team: 'x' } }],
    ['that an administrator has marked', 'marked', { annotations: { 'headgate.dev/owner-follows-person': 'true' } }],
  ])('%s may be given another address', async (_what, name, metadata) => {
    await admin.create({ ...acme, metadata: { name, ...metadata } })
    await merge(name, { spec: { owner: { email: 'ada@example.org', emailVerification: 'Verified' } } })
    await merge(name, { spec: { displayName: 'A', owner: { email: 'a@example.org' }, state: 'Suspended' } })
  })

  it.each(Object.keys(SAMPLES).filter((name) => !CHANGEABLE.has(name)))(
    'may not be changed in %s, and not lose the field',
    async (name) => {
      const other = {
        billing: 'Unmetered',
        namespaces: { matchLabels: { other: 'x' } },
        limits: { tokensPerMinute: 1 },
        budgets: [],
        planRef: { name: 'other' },
      }
      await expect(merge('acme', { spec: { [name]: (other as Record<string, unknown>)[name] } })).rejects.toThrow(DENIED)
      if (name !== 'planRef') await expect(merge('acme', { spec: { [name]: null } })).rejects.toThrow(DENIED)
    },
  )

  it.each<readonly [string, object]>([
    ['lose its owner', { spec: { owner: null } }],
    ['get a label', { metadata: { labels: { 'headgate.dev/created-by': 'dashboard' } } }],
    ['lose a label', { metadata: { labels: { team: null } } }],
    ['get another mark of its installation', { metadata: { annotations: { 'headgate.dev/installation': 'other/2' } } }],
    ['lose its annotations', { metadata: { annotations: null } }],
    ['lose its finalizers', { metadata: { finalizers: null } }],
    ['get a finalizer', { metadata: { finalizers: ['example.net/x', 'example.net/y'] } }],
  ])('may not %s', async (_what, change) => {
    await expect(merge('acme', change)).rejects.toThrow(DENIED)
  })

  it('may not be activated, not even together with another change', async () => {
    await admin.create({ ...acme, metadata: { name: 'idle' }, spec: { ...acme['spec'], state: 'Suspended' } })
    await merge('idle', { spec: { displayName: 'Idle' } })
    await expect(merge('idle', { spec: { state: 'Active', displayName: 'Idle' } })).rejects.toThrow(DENIED)
    await expect(merge('idle', { spec: { state: null } }), 'the default is Active').rejects.toThrow(DENIED)
  })

  it('may be changed by server-side apply within the same bounds', async () => {
    const apply = (change: object): Promise<TestObject> =>
      thief.call(
        'PATCH',
        `${PATH}/acme?dryRun=All&fieldManager=thief&force=true`,
        { apiVersion: acme.apiVersion, kind: acme.kind, ...change },
        'application/apply-patch+yaml',
      )
    await apply({ spec: { displayName: 'A', planRef: { name: 'default' } } })
    await expect(apply({ spec: { planRef: { name: 'enterprise' } } })).rejects.toThrow(DENIED)
  })
})

describe('with a right that somebody added by mistake', () => {
  beforeAll(async () => {
    const rules = [{ apiGroups: ['headgate.dev'], resources: ['*'], verbs: ['*'] }]
    await admin.apply({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'mistake' }, rules })
    await admin.apply({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'mistake' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'mistake' },
      subjects: [{ kind: 'ServiceAccount', name: 'headgate-dashboard', namespace: 'headgate' }],
    })
    await waitFor('the right', async () => (await thief.answer('DELETE', '/apis/headgate.dev/v1alpha1/credits/any')).status === 404)
  })

  it('the policy still refuses status, deletion, Credits, Plans and keys', async () => {
    const body = (kind: string, rest: object): object => ({ apiVersion: 'headgate.dev/v1alpha1', kind, metadata: { name: 'x' }, ...rest })
    const group = '/apis/headgate.dev/v1alpha1'
    const credit = body('Credit', { spec: { accountRef: { name: 'acme' }, amount: '5.00', type: 'Grant' } })
    const key = body('ApiKey', { spec: { models: ['*'] } })
    const status = { status: { spent: '0.00' } }
    await admin.call('POST', `${group}/credits?dryRun=All`, credit)
    await expect(thief.call('POST', `${group}/credits?dryRun=All`, credit)).rejects.toThrow(DENIED)
    await expect(thief.call('POST', `${group}/plans?dryRun=All`, body('Plan', { spec: { models: ['*'] } }))).rejects.toThrow(DENIED)
    await expect(thief.call('POST', `${group}/namespaces/headgate-accounts/apikeys?dryRun=All`, key)).rejects.toThrow(DENIED)
    await expect(thief.call('PATCH', `${PATH}/acme/status`, status, 'application/merge-patch+json')).rejects.toThrow(DENIED)
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x' }]
    await expect(merge('acme', { metadata: { ownerReferences } }), 'deletion by the garbage collector').rejects.toThrow(DENIED)
    await expect(thief.call('DELETE', `${PATH}/acme?dryRun=All`)).rejects.toThrow(DENIED)
  })
})

it('no other user is refused anything', async () => {
  await admin.call('POST', `${PATH}?dryRun=All`, withMetadata('bo', { name: 'of-an-administrator', labels: { team: 'x' } }))
})

function membersInMemory(): Members {
  const rows = new Map<string, Member>()
  return {
    of: async (userId) => rows.get(userId),
    areTaken: async (names) => new Set(names.filter((name) => [...rows.values()].some(({ accountName }) => accountName === name))),
    add: async (userId, accountName) => {
      const member: Member = rows.get(userId) ?? {
        userId,
        accountName,
        role: 'owner',
        isConfirmed: false,
        isDeleting: false,
        isEmailDue: false,
      }
      rows.set(userId, member)
      return member
    },
    confirm: async (userId) => void rows.set(userId, { ...rows.get(userId)!, isConfirmed: true }),
    beginDeletion: async () => undefined,
    beginEmailChange: async () => undefined,
    endEmailChange: async () => undefined,
    remove: async (userId) => void rows.delete(userId),
    without: async () => [],
    unfinished: async () => [],
  }
}
