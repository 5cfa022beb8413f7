/**
 * One tenant's namespace refuses calls of the operator. The owner reads the cause and the remedy on the object itself, and no other tenant
 * is affected, neither during the failure nor when the operator restarts during the failure.
 */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startStubModel, type StubModel } from '../../examples/stub-model/stub-model.ts'
import { ask } from '../support/ask.ts'
import { breakSecrets } from '../support/broken-object.ts'
import type { ControlPlane } from '../support/control-plane.ts'
import { answerOf } from '../support/gateway-answers.ts'
import { holdBackRights } from '../support/held-back-rights.ts'
import { objectPath } from '../support/kube-admin.ts'
import { openLab } from '../support/lab.ts'
import { OtherTenant } from '../support/other-tenant.ts'
import { projectedKeys } from '../support/projection-view.ts'
import { POLICY_WORDS, policyAgainstSecrets, quotaOnSecrets } from '../support/refused-secrets.ts'
import { eventReasons, expectCleared, expectReported, type Reported } from '../support/reported.ts'
import type { Stack } from '../support/stack.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const OTHERS = 'tenants-others'
const QUOTA = 'tenants-quota'
const POLICY = 'tenants-policy'
const NO_CREATE = 'tenants-no-create'
const NO_GET = 'tenants-no-get'
const NO_ROLE = 'tenants-no-role'
const BROKEN = 'tenants-broken'
const HOSTS = 'tenants-hosts'
const PUBLISHING = 'tenants-publishing'
const NAMESPACES = [OTHERS, QUOTA, POLICY, NO_CREATE, NO_GET, NO_ROLE, BROKEN, HOSTS, PUBLISHING]

const lab = openLab()
let plane: ControlPlane
let stack: Stack
let others: OtherTenant
let server: StubModel
const sent: (string | undefined)[] = []

beforeAll(async () => {
  plane = await lab.ownControlPlane() // the tests remove rights and policies
  stack = await lab.stack({ gateways: 2, namespaces: NAMESPACES }, plane)
  server = await startStubModel({ host: lab.address.ip, onRequest: ({ headers }) => sent.push(headers.authorization) })
  others = await OtherTenant.settle(lab, stack, OTHERS)
})
afterAll(async () => {
  await others.close()
  await server.close()
})

const applyCredential = (namespace: string, annotations: Record<string, string>): Promise<unknown> =>
  stack.kube.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'upstream', namespace, labels: { 'headgate.dev/upstream-auth': 'true' }, annotations },
    type: 'Opaque',
    data: { token: Buffer.from('tenants-upstream-credential').toString('base64') },
  })
const withCredential = (url: string): object => ({
  backends: [{ name: 'one', url, messages: 'Native', authSecretRef: { name: 'upstream', key: 'token' } }],
})

function notIssued(namespace: string, reason: string, message: RegExp): Reported {
  return { kind: 'ApiKey', name: 'bot', namespace, type: 'SecretIssued', reason, message }
}

async function expectContained(reported: Reported, { isRotating = true } = {}): Promise<void> {
  const { metadata } = await expectReported(stack, reported)
  await others.expectServed({ isRotating })
  await stack.operator.restart()
  await others.expectServed({ isRotating })
  await expectReported(stack, reported)
  expect((await eventReasons(stack, reported.namespace, metadata.uid)).filter((reason) => reason === reported.reason)).toHaveLength(1)
  const elsewhere = await stack.kube.list(objectPath('events.k8s.io/v1', 'Event', OTHERS))
  expect(elsewhere.filter(({ reason }) => reason === reported.reason)).toEqual([])
}

/** Asserts that no gateway admits a value that no user has got. */
async function expectNoLiveVerifier(namespace: string): Promise<void> {
  await eventually(async () => {
    const active = (await projectedKeys(stack)).filter((record) => record.namespace === namespace && record.state === 'Active')
    expect(active.filter(({ verifiers }) => verifiers.length > 0)).toEqual([])
  })
}

async function expectIssued(namespace: string, name: string): Promise<void> {
  const credential = await stack.value(name, namespace)
  for (const gateway of stack.gateways) expect(await answerOf(gateway, credential)).toBe(200)
}

describe('a namespace that admits no new Secret', () => {
  it('by a ResourceQuota: QuotaExceeded on its ApiKey, and the key is issued once there is room', async () => {
    const lift = await quotaOnSecrets(stack, QUOTA)
    onTestFinished(lift)
    await stack.apply('ApiKey', 'bot', {}, QUOTA)
    const reported = notIssued(QUOTA, 'QuotaExceeded', /no-secrets.*(raise|lift|remove|room)/is)
    await expectContained(reported)
    await expectNoLiveVerifier(QUOTA)
    await lift()
    await expectCleared(stack, reported)
    await expectIssued(QUOTA, 'bot')
  })

  it('by an admission policy: AdmissionDenied with the words of the policy on its ApiKey', async () => {
    const lift = await policyAgainstSecrets(stack, POLICY)
    onTestFinished(lift)
    await stack.apply('ApiKey', 'bot', {}, POLICY)
    const reported = notIssued(POLICY, 'AdmissionDenied', new RegExp(POLICY_WORDS))
    await expectContained(reported)
    await expectNoLiveVerifier(POLICY)
    await lift()
    await expectCleared(stack, reported)
    await expectIssued(POLICY, 'bot')
  })

  it('from the operator, which lacks the right: Forbidden with the right to grant on its ApiKey', async () => {
    const giveBack = await holdBackRights(stack, { namespace: NO_CREATE, verbs: ['create'] })
    onTestFinished(giveBack)
    await stack.apply('ApiKey', 'bot', {}, NO_CREATE)
    const reported = notIssued(NO_CREATE, 'Forbidden', /create.*grant|grant.*create/is)
    await expectContained(reported)
    await expectNoLiveVerifier(NO_CREATE)
    await giveBack()
    await expectCleared(stack, reported)
    await expectIssued(NO_CREATE, 'bot')
  })
})

describe('a namespace whose Secrets the operator cannot read', () => {
  it('SecretUnreadable on its ApiKey and its ServedModel, deletions still end, and both work once the operator can read', async () => {
    await stack.issueKey('older', {}, NO_GET)
    await stack.issueKey('bot', {}, NO_GET)
    await stack.exposeService('server', server.port, { namespace: NO_GET })
    const giveBack = await holdBackRights(stack, { namespace: NO_GET, verbs: ['get'] })
    onTestFinished(giveBack)
    await stack.kube.merge(stack.path('ApiKey', 'bot', NO_GET), { spec: { displayName: 'edited' } }) // each generation reads the Secret
    await applyCredential(NO_GET, { 'headgate.dev/upstream-hosts': `server.${NO_GET}.svc` })
    const backend = {
      name: 'one',
      service: { name: 'server', port: server.port },
      messages: 'Native',
      authSecretRef: { name: 'upstream', key: 'token' },
    }
    await stack.apply('ServedModel', 'model', { backends: [backend] }, NO_GET)
    const model: Reported = {
      kind: 'ServedModel',
      name: 'model',
      namespace: NO_GET,
      type: 'Accepted',
      status: 'Unknown',
      reason: 'SecretUnreadable',
      message: /upstream.*grant|grant.*upstream/is,
    }
    const key: Reported = { ...model, kind: 'ApiKey', name: 'bot', type: 'SecretIssued', message: /get.*grant|grant.*get/is, ready: 'True' }
    await expectReported(stack, model)
    await expectContained(key)
    await stack.deleteKey('older', NO_GET)
    await giveBack()
    await expectCleared(stack, key)
    await expectCleared(stack, model)
    await expectIssued(NO_GET, 'bot')
  })
})

describe('a watched namespace without any right of the operator', () => {
  it('stops neither start nor leadership: others are served, the log names the namespace, and its keys are issued once granted', async () => {
    const giveBack = await holdBackRights(stack, { namespace: NO_ROLE })
    onTestFinished(giveBack)
    await stack.operator.restart() // rejects if the operator does not become ready
    await stack.apply('ApiKey', 'bot', {}, NO_ROLE)
    await others.expectServed()
    await waitFor('the log to name the namespace', () => stack.operator.process.log().includes(NO_ROLE))
    await giveBack()
    await stack.untilCondition('ApiKey', 'bot', 'Ready', { namespace: NO_ROLE, deadlineMs: 120_000 })
    await expectIssued(NO_ROLE, 'bot')
  })
})

describe('a model author may not', () => {
  it('send a Credential to a host that its Secret does not name: CredentialHostNotAllowed, and no request carries the Credential there', async () => {
    await applyCredential(HOSTS, { 'headgate.dev/upstream-hosts': 'api.example.com' })
    const credential = await stack.issueKey('bot', {}, HOSTS)
    await stack.apply('ServedModel', 'model', withCredential(server.url), HOSTS)
    const reported: Reported = {
      kind: 'ServedModel',
      name: 'model',
      namespace: HOSTS,
      type: 'Accepted',
      reason: 'CredentialHostNotAllowed',
      message: /headgate\.dev\/upstream-hosts/,
    }
    await expectContained(reported)
    for (const gateway of stack.gateways) await ask(lab, gateway.url, { credential, model: 'model' })
    expect(sent).not.toContain('Bearer tenants-upstream-credential')
    await applyCredential(HOSTS, { 'headgate.dev/upstream-hosts': `api.example.com,${server.url}` })
    const annotations = { 'headgate.dev/reconcile-at': 'now' } // Secrets cannot be watched
    await stack.kube.merge(stack.path('ServedModel', 'model', HOSTS), { metadata: { annotations } })
    await expectCleared(stack, reported)
    await eventually(async () => {
      expect((await ask(lab, stack.gateway.url, { credential, model: 'model' })).status).toBe(200)
      expect(sent).toContain('Bearer tenants-upstream-credential')
    })
  })

  it('publish a name beyond a namespace that may not publish: PublishingNotAllowed, and keys of others do not reach it', async () => {
    const credential = await stack.issueKey('stranger', {}, OTHERS)
    const own = await stack.issueKey('own', {}, PUBLISHING)
    const spec = { backends: [{ name: 'one', url: server.url, messages: 'Native' }] }
    await stack.apply('ServedModel', 'gpt-4o', { ...spec, allowedNamespaces: { from: 'All' } }, PUBLISHING)
    const reported: Reported = {
      kind: 'ServedModel',
      name: 'gpt-4o',
      namespace: PUBLISHING,
      type: 'Accepted',
      reason: 'PublishingNotAllowed',
      message: /administrator/,
      ready: 'True', // for keys of the model's own namespace
    }
    await expectContained(reported)
    for (const gateway of stack.gateways) {
      expect((await ask(lab, gateway.url, { credential, model: 'gpt-4o' })).status).toBe(404)
    }
    await stack.apply('ServedModel', 'gpt-4o', { ...spec, allowedNamespaces: { from: 'Same' } }, PUBLISHING)
    await expectCleared(stack, reported)
    await eventually(async () => expect((await ask(lab, stack.gateway.url, { credential: own, model: 'gpt-4o' })).status).toBe(200))
    expect((await ask(lab, stack.gateway.url, { credential, model: 'gpt-4o' })).status).toBe(404)
  })
})

describe('a Secret that the API server itself cannot decode', () => {
  it('SecretUnreadable on its ApiKey, whose key works on; it stops neither start nor leadership, and the deletion of the ApiKey goes on', async () => {
    const older = await stack.issueKey('older', {}, BROKEN)
    const credential = await stack.issueKey('bot', {}, BROKEN)
    const restore = await breakSecrets(plane, BROKEN, ['bot', 'older'])
    onTestFinished(restore)
    await stack.kube.merge(stack.path('ApiKey', 'bot', BROKEN), { spec: { displayName: 'edited' } }) // each generation reads the Secret
    const reported: Reported = {
      kind: 'ApiKey',
      name: 'bot',
      namespace: BROKEN,
      type: 'SecretIssued',
      status: 'Unknown',
      reason: 'SecretUnreadable',
      message: /Secret bot cannot be read: .*administrator/is,
      ready: 'True',
    }
    await expectContained(reported, { isRotating: false }) // the API server has no cache of Secrets now, so kubelets get no change of a Secret
    await stack.deleteKey('older', BROKEN)
    for (const gateway of stack.gateways) {
      expect(await answerOf(gateway, older)).toBe(401)
      expect(await answerOf(gateway, credential)).toBe(200)
    }
    await restore()
    await expectCleared(stack, reported)
  })
})
