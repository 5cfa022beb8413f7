/**
 * The least work of any operator that issues keys, done by one client: the writes of the objects of each key. The time of these writes is the
 * reference for the operator.
 */
import { randomBytes } from 'node:crypto'
import type { KubeAdmin, TestObject } from '../support/kube-admin.ts'
import { keyManifest, keyPath, GROUP, type KeyName } from './many-keys.ts'

const FINALIZER = 'headgate.dev/revoke'
const MANAGER = 'headgate-operator'
const BASE_URL = 'http://headgate.example'

/** Creates a key as a user does; then makes the four writes of an operator: finalizer, Secret, status and Event. */
export async function makeBareKey(kube: KubeAdmin, key: KeyName): Promise<void> {
  const created = await kube.create(keyManifest(key))
  await addFinalizer(kube, key, created)
  await kube.create(secretOf(key, created))
  await kube.call('PATCH', `${keyPath(key)}/status?fieldManager=${MANAGER}&force=true`, statusOf(key), 'application/apply-patch+yaml')
  await kube.create(eventOf(key, created))
}

async function addFinalizer(kube: KubeAdmin, key: KeyName, { metadata }: TestObject): Promise<void> {
  const patch = [
    { op: 'test', path: '/metadata/resourceVersion', value: metadata.resourceVersion },
    { op: 'add', path: '/metadata/finalizers', value: [FINALIZER] },
  ]
  await kube.call('PATCH', `${keyPath(key)}?fieldManager=${MANAGER}`, patch, 'application/json-patch+json')
}

function secretOf({ namespace, name }: KeyName, { metadata }: TestObject): TestObject {
  const value = `sk-bench-${randomBytes(24).toString('base64url')}`
  const entries = {
    SERVICE_API_KEY: value,
    SERVICE_BASE_URL: `${BASE_URL}/v1`,
    OPENAI_API_KEY: value,
    OPENAI_BASE_URL: `${BASE_URL}/v1`,
    ANTHROPIC_AUTH_TOKEN: value,
    ANTHROPIC_BASE_URL: BASE_URL,
  }
  const owner = { apiVersion: GROUP, kind: 'ApiKey', name, uid: metadata.uid, controller: true, blockOwnerDeletion: true }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name,
      namespace,
      labels: { 'app.kubernetes.io/managed-by': 'headgate-operator' },
      annotations: { 'headgate.dev/key-id': randomBytes(8).toString('hex'), 'headgate.dev/generation': '1' },
      ownerReferences: [owner],
    },
    type: 'Opaque',
    data: Object.fromEntries(Object.entries(entries).map(([entry, text]) => [entry, Buffer.from(text).toString('base64')])),
  }
}

/** A status as large as that of a working key: four conditions. */
function statusOf({ namespace, name }: KeyName): TestObject {
  const now = `${new Date().toISOString().slice(0, 19)}Z`
  const id = randomBytes(8).toString('hex')
  const condition = (type: string, message: string): unknown => ({
    type,
    status: 'True',
    reason: type === 'SecretIssued' ? 'Issued' : type,
    message,
    observedGeneration: 1,
    lastTransitionTime: now,
  })
  const status = {
    observedGeneration: 1,
    keyID: id,
    prefix: `sk-bench-${id.slice(0, 8)}`,
    secretRef: { name },
    verifiers: [{ id, createTime: now }],
    programmed: { revision: 1, ready: 2, total: 2 },
    summary: { programmed: '2/2', models: '*' },
    conditions: [
      condition('Ready', 'The key works on every gateway.'),
      condition('Accepted', 'The manifest is accepted.'),
      condition('SecretIssued', `Secret ${name} holds the key.`),
      condition('Programmed', '2 of 2 gateway pods have acknowledged revision 1.'),
    ],
  }
  return { apiVersion: GROUP, kind: 'ApiKey', metadata: { name, namespace }, status }
}

function eventOf({ namespace, name }: KeyName, { metadata }: TestObject): TestObject {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `${name}.${randomBytes(8).toString('hex')}`, namespace },
    eventTime: new Date().toISOString().replace('Z', '000Z'),
    reportingController: 'headgate.dev/operator',
    reportingInstance: 'bench',
    action: 'Issue',
    reason: 'Issued',
    type: 'Normal',
    note: `The key stands in Secret ${name}.`,
    regarding: { apiVersion: GROUP, kind: 'ApiKey', namespace, name, uid: metadata.uid },
  }
}
