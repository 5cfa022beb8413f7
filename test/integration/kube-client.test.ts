import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { z } from 'zod'
import { systemClock as clock } from '#platform/clock.ts'
import { KubeEventRecorder } from '#kube/events.ts'
import { InformerFactory } from '#kube/informer-factory.ts'
import { KubeCredentials } from '#kube/kube-credentials.ts'
import { LeaderLease, LEASE_NAME } from '#kube/leader.ts'
import { isKubeError, type KubeObject, type Resource } from '#kube/port.ts'
import { RawClient } from '#kube/raw-client.ts'
import { events, leases, namespaces, type Lease } from '#kube/resources.ts'
import { StatusError } from '#kube/status-error.ts'
import { Transport } from '#kube/transport.ts'
import { openLab } from '../support/lab.ts'
import { PrivateCa } from '../support/private-ca.ts'
import { temporaryFolderOfFile } from '../support/temporary-folder.ts'
import { waitFor } from '../support/wait-for.ts'

/**
 * The client against a real API server. reflector-wire.test.ts has the failures that a real server does not show on demand, and
 * surroundings.test.ts the operator without CustomResourceDefinitions and without rights.
 */
const lab = openLab()
const kubeconfig = lab.plane.adminKubeconfig

interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>
}
const configMaps: Resource<ConfigMap> = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }

const config = z.object({
  clusters: z.array(z.object({ name: z.string(), cluster: z.record(z.string(), z.unknown()) })),
  users: z.array(z.object({ name: z.string(), user: z.record(z.string(), z.unknown()) })),
})

const transports: Transport[] = []
const folder = temporaryFolderOfFile()
const run = Math.random().toString(36).slice(2, 8)
let count = 0

function connect(file: string): RawClient {
  const transport = new Transport({ credentials: new KubeCredentials(file), clock })
  transports.push(transport)
  return new RawClient({ transport, clock })
}

const admin = connect(kubeconfig)

async function newNamespace(): Promise<string> {
  const name = `client-${run}-${(count += 1)}`
  await admin.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  return name
}

function configMap(namespace: string, name: string, more: Partial<ConfigMap['metadata']> = {}): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, ...more }, data: { a: '1' } }
}

/** A copy of the administrator's kubeconfig with another user or CA. */
function writeConfig(name: string, change: (cluster: Record<string, unknown>, user: Record<string, unknown>) => void): string {
  const text: unknown = parse(readFileSync(kubeconfig, 'utf8'))
  const { clusters, users } = config.parse(text)
  const [first] = clusters
  const [admins] = users
  if (!first || !admins) throw new Error('the kubeconfig has no cluster or no user')
  change(first.cluster, admins.user)
  const file = join(folder, name)
  writeFileSync(file, stringify({ ...(text as object), clusters, users }), { mode: 0o600 })
  return file
}

afterAll(async () => {
  await Promise.all(transports.map((transport) => transport.close()))
})

describe('informers', () => {
  test('follow additions, changes, removals and re-creations in their namespaces, and in no others', async () => {
    const [one, two, other] = [await newNamespace(), await newNamespace(), await newNamespace()]
    const logger = pino({ level: 'silent' })
    const factory = new InformerFactory({ source: admin, clock, logger, random: Math.random }, [one, two])
    const informer = factory.createInformer(configMaps)
    const heard: string[] = []
    informer.subscribe((before, after) => {
      const name = (after ?? before)?.metadata.name ?? ''
      if (name.length === 1) heard.push(`${before ? 'x' : '-'}${after ? 'x' : '-'} ${name}`) // not the ConfigMaps that Kubernetes creates itself
    })
    factory.start()
    await factory.synced()
    const first = await admin.create(configMaps, configMap(one, 'a'))
    await admin.create(configMaps, configMap(other, 'foreign'))
    await admin.update(configMaps, { ...first, data: { a: '2' } })
    await waitFor('the change', () => informer.get({ namespace: one, name: 'a' })?.data?.['a'] === '2')
    await admin.remove(configMaps, { namespace: one, name: 'a' })
    await admin.create(configMaps, configMap(one, 'a'))
    await admin.create(configMaps, configMap(two, 'b'))
    await waitFor('all of it', () => heard.length >= 5)
    expect(heard.toSorted()).toEqual(['-x a', '-x a', '-x b', 'x- a', 'xx a'])
    expect(informer.get({ namespace: one, name: 'a' })).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' })
    expect(informer.get({ namespace: one, name: 'a' })?.metadata).not.toHaveProperty('managedFields')
    factory.stop()
  })
})

describe('credentials', () => {
  test('a token file that is replaced while the client runs is used, and a wrong token is answered Unauthorized', async () => {
    const namespace = await newNamespace()
    const tokenFile = join(folder, 'token')
    writeFileSync(tokenFile, 'not-a-token\n')
    const client = connect(writeConfig('token-file', (_cluster, user) => useToken(user, { tokenFile })))
    const refusal: unknown = await client.get(configMaps, { namespace, name: 'x' }).catch((error: unknown) => error)
    expect(isKubeError(refusal, 'Unauthorized')).toBe(true)
    writeFileSync(tokenFile, await tokenFor(namespace, 'reader'))
    await grantView(namespace, 'reader')
    await waitFor('the new token and its rights', () => client.get(configMaps, { namespace, name: 'kube-root-ca.crt' }))
  })

  test('a CA file that is replaced while the client runs is used without a restart', async () => {
    const ca = join(folder, 'ca.crt')
    const right = join(folder, 'right.crt')
    const file = writeConfig('ca-file', (cluster) => {
      writeFileSync(right, Buffer.from(String(cluster['certificate-authority-data']), 'base64'))
      delete cluster['certificate-authority-data']
      cluster['certificate-authority'] = ca
    })
    copyFileSync((await PrivateCa.make(join(folder, 'foreign'))).file, ca)
    const client = connect(file)
    const refusal: unknown = await client
      .create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'never' } })
      .catch((error: unknown) => error)
    expect(isKubeError(refusal, 'Unreachable')).toBe(true)
    copyFileSync(right, ca)
    expect(await client.get(namespaces, { namespace: '', name: 'default' })).toBeDefined()
  })
})

describe('answers', () => {
  test('a namespace in deletion has an error code of its own, different from the code of missing rights', async () => {
    const namespace = await newNamespace()
    await admin.create(configMaps, configMap(namespace, 'held', { finalizers: ['client.test/hold'] }))
    await admin.remove(namespaces, { namespace: '', name: namespace })
    const refusal: unknown = await admin.create(configMaps, configMap(namespace, 'late')).catch((error: unknown) => error)
    expect(isKubeError(refusal, 'NamespaceTerminating')).toBe(true)
    await admin.patch(configMaps, { namespace, name: 'held' }, [{ op: 'remove', path: '/metadata/finalizers' }])
  })

  test('the refusal of a resourceVersion that is too large is recognized', async () => {
    const refusal: unknown = await admin.listAt(configMaps, { namespace: 'default' }, '999999999').catch((error: unknown) => error)
    expect(refusal instanceof StatusError && refusal.versionTooLarge).toBe(true)
  })
})

describe('the LeaderLease', () => {
  let namespace: string
  const lost: string[] = []
  const candidate = (identity: string): LeaderLease =>
    new LeaderLease({
      kube: admin,
      clock,
      logger: pino({ level: 'silent' }),
      random: Math.random,
      namespace,
      identity,
      times: { durationMs: 8_000, renewMs: 6_000, retryMs: 200 },
      onLost: (why) => lost.push(`${identity}: ${why}`),
    })

  beforeAll(async () => {
    namespace = await newNamespace()
  })

  test('is accepted by the API server, renewed, fenced, handed over, and lost with the object', async () => {
    const [a, b] = [candidate('a'), candidate('b')]
    await a.acquire()
    const waiting = b.acquire()
    const first = await admin.get(leases, { namespace, name: LEASE_NAME })
    expect(first?.spec).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 8, leaseTransitions: 1 })
    expect(await a.raiseFence(41)).toBe(42)
    const renewedAt = (lease: Lease | undefined): number => Date.parse(lease?.spec?.renewTime ?? '')
    const renewals = async (): Promise<boolean> =>
      renewedAt(await admin.get(leases, { namespace, name: LEASE_NAME })) - renewedAt(first) > 8_500
    await waitFor('renewals for longer than the Lease lasts, which keep the standby away', renewals)
    expect([a.leading, b.leading]).toEqual([true, false])
    await a.release()
    await waiting
    expect(b.fence).toBe(43)
    await admin.remove(leases, { namespace, name: LEASE_NAME })
    await waitFor('the loss', () => lost.length > 0)
    expect(lost).toEqual(['b: another operator holds the Lease, or it was deleted'])
    expect(b.leading).toBe(false)
  })
})

test('the API server accepts an Event, and a repeat of the Event as a series', async () => {
  const namespace = await newNamespace()
  const object = await admin.create(configMaps, configMap(namespace, 'subject.with.dots'))
  const lines: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const recorder = new KubeEventRecorder({ kube: admin, clock, logger, instance: 'operator-0' })
  const text = { type: 'Warning', reason: 'Tested', action: 'Test', note: 'Only a test.' } as const
  recorder.record(object, text)
  await recorder.flush()
  recorder.record(object, text)
  await recorder.flush()
  expect(lines).toEqual([])
  const [event, ...others] = await admin.list(events, namespace)
  expect(others).toEqual([])
  expect(event).toMatchObject({
    reason: 'Tested',
    note: 'Only a test.',
    series: { count: 2 },
    regarding: { kind: 'ConfigMap', name: 'subject.with.dots' },
  })
})

async function tokenFor(namespace: string, account: string): Promise<string> {
  await lab.plane.kubectl('-n', namespace, 'create', 'serviceaccount', account)
  return lab.plane.kubectl('-n', namespace, 'create', 'token', account)
}

async function grantView(namespace: string, account: string): Promise<void> {
  const roles = ['--clusterrole=view', `--serviceaccount=${namespace}:${account}`]
  await lab.plane.kubectl('-n', namespace, 'create', 'rolebinding', account, ...roles)
}

function useToken(user: Record<string, unknown>, token: Record<string, string>): void {
  for (const field of Object.keys(user)) delete user[field]
  Object.assign(user, token)
}
