import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chartRights } from '../support/chart-rights.ts'
import { type KubeAdmin, objectPath, type TestObject } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

/**
 * The rights on Secrets that the chart's ValidatingAdmissionPolicy leaves to the operator. No operator runs here: the test calls with the
 * operator's ServiceAccount, as a thief of its token would.
 */
const lab = openLab()
const OWN = 'headgate-admission-policy'
const USERS = 'admission-policy'
const RIGHTS = chartRights({ own: OWN, watched: [USERS, 'kube-system'] })
/** A label that Argo CD takes for the credentials of a cluster. */
const FOREIGN = { 'argocd.argoproj.io/secret-type': 'cluster' }
const DENIED = /ValidatingAdmissionPolicy 'headgate-operator-headgate-admission-policy-secrets' .*denied request/s
const OURS = { 'app.kubernetes.io/managed-by': 'headgate-operator' }
let operator: KubeAdmin
let owner: Readonly<Record<string, unknown>>

interface SecretPart {
  readonly type?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly unknown[]
}

function secret(namespace: string, name: string, { type = 'Opaque', ...metadata }: SecretPart = {}): TestObject {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, ...metadata }, type }
}

const userSecret = (name: string) => secret(USERS, name, { labels: OURS, ownerReferences: [owner] })
const path = (namespace: string, name = '') => objectPath('v1', 'Secret', namespace, name)
const create = (object: TestObject, query = '') => operator.call('POST', `${path(object.metadata.namespace ?? '')}${query}`, object)
const patch = (namespace: string, name: string, change: unknown, query = '') =>
  operator.call('PATCH', `${path(namespace, name)}${query}`, change, 'application/merge-patch+json')
const remove = (namespace: string, name: string, query = '') => operator.call('DELETE', `${path(namespace, name)}${query}`)
const DRY_RUN = '?dryRun=All'

beforeAll(async () => {
  for (const namespace of [OWN, USERS]) await lab.plane.namespace(namespace)
  for (const right of RIGHTS) await lab.plane.admin.apply(right)
  const key = { apiVersion: 'headgate.dev/v1alpha1', kind: 'ApiKey', metadata: { name: 'bot', namespace: USERS }, spec: { models: ['*'] } }
  const { metadata } = await lab.plane.admin.apply(key)
  owner = { apiVersion: key.apiVersion, kind: 'ApiKey', name: 'bot', uid: metadata.uid, controller: true, blockOwnerDeletion: true }
  await lab.plane.admin.apply(secret(USERS, 'database'))
  await lab.plane.admin.apply(secret(OWN, 'sh.helm.release.v1.headgate.v1', { type: 'helm.sh/release.v1' }))
  operator = await lab.plane.as(OWN, 'headgate-operator')
  // the API server compiles a new policy within seconds
  await waitFor('the policy', () =>
    create(secret(USERS, 'nobodys'), DRY_RUN).then(
      () => false,
      (error: unknown) => DENIED.test(String(error)),
    ),
  )
})

afterAll(async () => {
  await operator?.close()
  for (const right of RIGHTS.filter(({ metadata }) => metadata.namespace === undefined || metadata.namespace === 'kube-system')) {
    await lab.plane.admin.remove(objectPath(right.apiVersion, right.kind, right.metadata.namespace, right.metadata.name))
  }
})

describe.each([
  ['', 'for good'],
  [DRY_RUN, 'as a dry run'],
])("the operator's ServiceAccount is refused (%s)", (query, _how) => {
  it.each<readonly [string, () => TestObject]>([
    ['the token of another ServiceAccount', () => stolenToken('kube-system')],
    ['such a token in its own namespace, under any name', () => stolenToken(OWN)],
    ['the token of another ServiceAccount that an ApiKey seems to own', () => claimed(stolenToken(USERS))],
    ['a Secret without an owner', () => secret(USERS, 'plain', { labels: OURS })],
    [
      'a Secret that its ApiKey does not control',
      () => secret(USERS, 'loose', { labels: OURS, ownerReferences: [{ ...owner, controller: false }] }),
    ],
    ['a Secret that another object controls', () => secret(USERS, 'other', { labels: OURS, ownerReferences: [configMapOwner()] })],
    [
      'a Secret with a label of another controller',
      () => secret(USERS, 'cluster', { labels: { ...OURS, ...FOREIGN }, ownerReferences: [owner] }),
    ],
    ['such a Secret under a name of its own', () => secret(OWN, 'hg-keyring-32-1', { labels: { ...OURS, ...FOREIGN } })],
    [
      'a Secret that an ApiKey seems to own in kube-system',
      () => secret('kube-system', 'claimed', { labels: OURS, ownerReferences: [owner] }),
    ],
    ['a Secret without its label', () => secret(USERS, 'unlabelled', { ownerReferences: [owner] })],
    ['a foreign Secret in its own namespace', () => secret(OWN, 'database')],
    ['a Secret whose name only begins like that of its own', () => secret(OWN, 'hg-keyring-32-0-and-more')],
    ['a Secret named like its own in another namespace', () => secret(USERS, 'hg-keyring-32-0')],
  ])('to create %s', async (_what, object) => {
    await expect(create(object(), query)).rejects.toThrow(DENIED)
  })

  it('to change a foreign Secret, also to make the Secret its own', async () => {
    await expect(patch(USERS, 'database', { stringData: { password: 'mine' } }, query)).rejects.toThrow(DENIED)
    await expect(patch(USERS, 'database', { metadata: { labels: OURS, ownerReferences: [owner] } }, query)).rejects.toThrow(DENIED)
  })

  it('to delete a foreign Secret, and a release of Helm beside its own', async () => {
    await expect(remove(USERS, 'database', query)).rejects.toThrow(DENIED)
    await expect(remove(OWN, 'sh.helm.release.v1.headgate.v1', query)).rejects.toThrow(DENIED)
  })

  it('to add a label of another controller to the Secret of an ApiKey, or to change one', async () => {
    await lab.plane.admin.apply(secret(USERS, 'labelled', { labels: { ...OURS, ...FOREIGN }, ownerReferences: [owner] }))
    await lab.plane.admin.apply(userSecret('unlabelled-yet'))
    await expect(patch(USERS, 'unlabelled-yet', { metadata: { labels: FOREIGN } }, query)).rejects.toThrow(DENIED)
    const other = { 'argocd.argoproj.io/secret-type': 'repository' }
    await expect(patch(USERS, 'labelled', { metadata: { labels: other } }, query)).rejects.toThrow(DENIED)
  })

  it('to remove the owner or the label of a Secret of an ApiKey', async () => {
    await lab.plane.admin.apply(userSecret('kept'))
    await expect(patch(USERS, 'kept', { metadata: { ownerReferences: null } }, query)).rejects.toThrow(DENIED)
    await expect(patch(USERS, 'kept', { metadata: { labels: null } }, query)).rejects.toThrow(DENIED)
  })
})

describe("the operator's ServiceAccount may", () => {
  it('create, change and delete the Secret of an ApiKey', async () => {
    await create(userSecret('bot'), DRY_RUN)
    await create(userSecret('bot'))
    await patch(USERS, 'bot', { stringData: { SERVICE_BASE_URL: 'http://gateway/v1' } })
    await remove(USERS, 'bot')
  })

  it('give the Secret labels without a prefix, and keep foreign labels that others have set', async () => {
    await create(secret(USERS, 'team', { labels: { ...OURS, team: 'shop' }, ownerReferences: [owner] }), DRY_RUN)
    await lab.plane.admin.apply(secret(USERS, 'tracked', { labels: { ...OURS, ...FOREIGN }, ownerReferences: [owner] }))
    await patch(USERS, 'tracked', { stringData: { SERVICE_BASE_URL: 'http://gateway/v1' } })
  })

  it('put its label back after a user has removed the label', async () => {
    await lab.plane.admin.apply(secret(USERS, 'mended', { ownerReferences: [owner] }))
    await patch(USERS, 'mended', { metadata: { labels: OURS } })
  })

  it.each([
    'hg-installation',
    'hg-keyring-32-0',
    'hg-models-8-7',
    'hg-accounts-8-0',
    'hg-balances-8-3',
    'hg-credits-8-3',
    'hg-upstream-8-0',
    'hg-keyring-32-0-damaged-0a1b2c3d',
  ])('create, write and delete %s in its own namespace', async (name) => {
    const created = await create(secret(OWN, name))
    await operator.call('PUT', path(OWN, name), { ...created, stringData: { records: 'x' } })
    await remove(OWN, name)
  })

  it('not create a Secret that blocks the deletion of its ApiKey without the right on finalizers of ApiKeys', async () => {
    const role = RIGHTS.find(({ kind, metadata }) => kind === 'Role' && metadata.namespace === USERS)!
    const rules = (role.rules as readonly { readonly resources: readonly string[] }[]).filter(
      ({ resources }) => !resources.includes('apikeys/finalizers'),
    )
    await lab.plane.admin.apply({ ...role, rules })
    const refusal = /cannot set blockOwnerDeletion/
    await eventually(async () => expect(create(userSecret('blocking'), DRY_RUN)).rejects.toThrow(refusal))
    await lab.plane.admin.apply(role)
    await eventually(async () => expect(await create(userSecret('blocking'), DRY_RUN)).toBeDefined())
  })
})

it('no other user is refused anything', async () => {
  await lab.plane.admin.apply(secret(USERS, 'plain-of-somebody'))
  await lab.plane.admin.remove(path(USERS, 'plain-of-somebody'))
})

function stolenToken(namespace: string): TestObject {
  const annotations = { 'kubernetes.io/service-account.name': 'default' }
  return secret(namespace, 'hg-keyring-1-0', { type: 'kubernetes.io/service-account-token', labels: OURS, annotations })
}

function claimed(object: TestObject): TestObject {
  return { ...object, metadata: { ...object.metadata, ownerReferences: [owner] } }
}

function configMapOwner(): unknown {
  return { apiVersion: 'v1', kind: 'ConfigMap', name: 'bot', uid: owner['uid'], controller: true }
}
