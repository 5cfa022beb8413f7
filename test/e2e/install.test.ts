/** One installation on a real node, from `helm install` to a deleted key, with failures and under load. Each test needs those before it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { Outcome } from './client.ts'
import type { LoadReport } from './steady-load.ts'
import { operatorRights } from '../../operator/rights.ts'
import { allowedUses, grants } from '../support/audit-log.ts'
import { API_KINDS } from '#api/kinds.ts'
import { auditFolder, type Cluster, progress, timed } from './cluster.ts'
import { useCluster } from './use-cluster.ts'

const MANIFESTS = join(import.meta.dirname, 'manifests')
const QUICKSTART = join(import.meta.dirname, '../../examples/quickstart')
const INSTALL = ['headgate', 'charts/headgate', '--namespace', 'headgate', '--values', join(MANIFESTS, 'values.yaml')]

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec: { readonly servedName?: string; readonly models?: readonly string[]; readonly secret?: { readonly name?: string } }
}

interface PodList {
  readonly items: ReadonlyArray<{
    readonly metadata: { readonly name: string; readonly namespace: string; readonly labels?: Readonly<Record<string, string>> }
    readonly spec: {
      readonly volumes?: ReadonlyArray<Readonly<Record<string, unknown>>>
      readonly containers: ReadonlyArray<{ readonly name: string }>
    }
    readonly status: {
      readonly conditions?: ReadonlyArray<{ readonly type: string; readonly status: string }>
      readonly containerStatuses?: ReadonlyArray<{ readonly restartCount: number }>
    }
  }>
}

function manifestOf(file: string): Manifest {
  const [document] = parseAllDocuments(readFileSync(join(QUICKSTART, file), 'utf8'))
  if (document === undefined) throw new Error(`${file} is empty`)
  return document.toJS() as Manifest
}

const issued: string[] = [] // the values in the users' Secrets; never printed
const texts: string[] = [] // logs, Events and statuses; the last test searches them for the values

const model = manifestOf('model.yaml')
const key = manifestOf('apikey.yaml')
const namespace = key.metadata.namespace ?? 'default'
const servedName = model.spec.servedName ?? model.metadata.name
const secretName = key.spec.secret?.name ?? key.metadata.name

const { cluster } = useCluster(createNamespaces)
async function pods(...selection: readonly string[]): Promise<PodList['items']> {
  return (JSON.parse(await cluster.kubectl('get', 'pods', ...selection, '-o', 'json')) as PodList).items
}

async function ask(name: string): Promise<readonly Outcome[]> {
  const out = await cluster.kubectl('-n', namespace, 'exec', 'client', '--', '/usr/local/bin/node', '/app/client.js', 'ask', name)
  return JSON.parse(out) as Outcome[]
}

/** Starts a client pod whose only configuration is its Secret. */
async function startClient(name: string, secret: string): Promise<void> {
  const pod = readFileSync(join(MANIFESTS, 'client.yaml'), 'utf8')
  await cluster.apply(pod.replace('name: client,', `name: ${name},`).replace('name: SECRET', `name: ${secret}`))
  await cluster.kubectl('-n', namespace, 'wait', '--for=condition=Ready', `pod/${name}`, '--timeout=180s')
  const value = await cluster.kubectl('-n', namespace, 'get', 'secret', secret, '-o', 'jsonpath={.data.SERVICE_API_KEY}')
  issued.push(Buffer.from(value, 'base64').toString('utf8'))
}

async function untilReady(...objects: readonly string[]): Promise<void> {
  for (const object of objects) await cluster.kubectl('-n', namespace, 'wait', '--for=condition=Ready', '--timeout=180s', object)
}

async function untilReplaced(gateways: number): Promise<void> {
  const deployment = 'deployment/headgate-gateway'
  await cluster.kubectl('-n', 'headgate', 'rollout', 'status', deployment, '--timeout=180s')
  const left = () => pods('-n', 'headgate', '-l', 'app.kubernetes.io/component=gateway')
  await expect.poll(async () => (await left()).length, { timeout: 120_000, interval: 500 }).toBe(gateways)
}

/** Adds the logs of all pods to `texts`. Call it before pods are deleted, since a deleted pod has no logs. */
async function readLogs(): Promise<void> {
  for (const { metadata, spec } of await pods('-A')) {
    for (const { name } of spec.containers) {
      texts.push(await cluster.kubectl('-n', metadata.namespace, 'logs', metadata.name, '-c', name))
    }
  }
}

/** Changes the ApiKey as `kubectl edit` would. */
async function edit(spec: Readonly<Record<string, unknown>>): Promise<void> {
  await cluster.kubectl('-n', namespace, 'patch', 'apikey', key.metadata.name, '--type=merge', '-p', JSON.stringify({ spec }))
}

async function eventually(status: number): Promise<void> {
  const statuses = async () => (await ask(servedName)).map((outcome) => outcome.status)
  await expect.poll(statuses, { timeout: 120_000, interval: 200 }).toEqual([status, status, status, status])
}

function expectAll(outcomes: readonly Outcome[], status: number): void {
  expect(
    outcomes.map((outcome) => outcome.status),
    JSON.stringify(outcomes),
  ).toEqual([status, status, status, status])
}

async function createNamespaces(target: Cluster): Promise<void> {
  const labels = '{ pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/enforce-version: latest }'
  const manifest = (name: string) => `apiVersion: v1\nkind: Namespace\nmetadata: { name: ${name}, labels: ${labels} }\n`
  await target.apply(['headgate', 'front', namespace].map(manifest).join('---\n'))
}

describe('headgate on a real node', () => {
  it('is installed by helm from nothing, with every pod Ready under the restricted profile', async () => {
    await timed('helm install', () => cluster.helm('install', ...INSTALL, '--wait', '--timeout', '240s'))
    const all = await pods('-n', 'headgate')
    expect(all.map(({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] ?? '').toSorted()).toEqual([
      'gateway',
      'gateway',
      'operator',
      'operator',
      'redis',
    ])
    for (const { metadata, status } of all) {
      expect(status.conditions, metadata.name).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }))
    }
    const plain = cluster.kubectl('-n', 'headgate', 'run', 'plain', '--image=localhost/redis:dev', '--dry-run=server')
    await expect(plain, 'the profile is enforced here').rejects.toThrow(/violates PodSecurity "restricted:latest"/)
  })

  it('refuses a second release with accounts in the cluster, and names what is in the way', async () => {
    const second = cluster.helm(
      'install',
      'second',
      ...INSTALL.slice(1, 2),
      '--namespace',
      'front',
      ...INSTALL.slice(4),
      '--set',
      'crds.enabled=false',
    )
    await expect(second).rejects.toThrow(
      /ClusterRole \\?"headgate-account\S*" .*exists and cannot be imported into the current release.*"headgate"/s,
    )
  })

  it('gives gateway pods no Kubernetes token', async () => {
    const gateways = await pods('-n', 'headgate', '-l', 'app.kubernetes.io/component=gateway')
    expect(gateways).toHaveLength(2)
    for (const { metadata, spec } of gateways) {
      expect(JSON.stringify(spec.volumes)).not.toContain('serviceAccountToken')
      const look = "process.stdout.write(String(require('node:fs').existsSync('/var/run/secrets/kubernetes.io')))"
      expect(await cluster.kubectl('-n', 'headgate', 'exec', metadata.name, '--', '/usr/local/bin/node', '-e', look)).toBe('false')
    }
  })

  it('turns the model and the key of the quickstart, unchanged, into a model and a key that are Ready on both gateways', async () => {
    await cluster.kubectl('apply', '-f', join(MANIFESTS, 'model-server.yaml'), '-f', join(MANIFESTS, 'front.yaml'))
    await cluster.kubectl('apply', '-f', join(QUICKSTART, 'model.yaml'), '-f', join(QUICKSTART, 'apikey.yaml'))
    await timed('model and key Ready', async () => {
      await untilReady(`servedmodel/${model.metadata.name}`, `apikey/${key.metadata.name}`)
    })
    const programmed = await cluster.kubectl('-n', namespace, 'get', 'apikey', key.metadata.name, '-o', 'jsonpath={.status.programmed}')
    expect(JSON.parse(programmed)).toMatchObject({ ready: 2, total: 2 })
  })

  it('answers both SDKs, plain and streamed, in a pod whose only configuration is its Secret, through nginx in front', async () => {
    await startClient('client', secretName)
    await cluster.kubectl('-n', 'front', 'wait', '--for=condition=Available', 'deployment/front', '--timeout=180s')
    expect(issued[0]).toMatch(/^sk-hg1[0-9A-Za-z]{59}$/)

    const outcomes = await ask(servedName)
    expectAll(outcomes, 200)
    for (const { call, events, characters } of outcomes) {
      expect(characters, call).toBeGreaterThan(0)
      expect(events, call).toBeGreaterThanOrEqual(call.includes('streamed') ? 4 : 1)
    }
    const lines = await cluster.kubectl('-n', 'front', 'logs', 'deployment/front')
    expect(lines.match(/"POST \/v1\/(chat\/completions|messages)\S* HTTP\/1\.1" 200/g)).toHaveLength(4)
  })

  it('answers 403 for a model outside the scope of the key, whether the model exists or not', async () => {
    expectAll(await ask('no-such-model'), 403)
    await edit({ models: ['another-model'] })
    await eventually(403)
    await edit({ models: key.spec.models })
    await eventually(200)
  })

  it('keeps the passwords of the trial Redis over an upgrade, and restarts no pod', async () => {
    const before = (await pods('-n', 'headgate')).map(({ metadata }) => metadata.name).toSorted()
    await timed('helm upgrade', () => cluster.helm('upgrade', ...INSTALL, '--wait', '--timeout', '240s'))
    expect((await pods('-n', 'headgate')).map(({ metadata }) => metadata.name).toSorted()).toEqual(before)
    expectAll(await ask(servedName), 200)
  })

  it('loses no call of clients that never retry while gateways are replaced, added and removed', async () => {
    await cluster.kubectl('apply', '-f', join(MANIFESTS, 'steady-model.yaml'))
    await untilReady('servedmodel/steady', 'apikey/steady')
    await startClient('steady-client', 'steady')
    await readLogs()
    const scale = (replicas: number) => cluster.kubectl('-n', 'headgate', 'scale', 'deployment/headgate-gateway', `--replicas=${replicas}`)
    const targets = ['http://front.front.svc', 'http://headgate-gateway.headgate.svc.cluster.local:8080']
    const program = ['/usr/local/bin/node', '/app/client.js', 'load', 'steady', ...targets]
    const endLoad = cluster.begin('-n', namespace, 'exec', '-i', 'steady-client', '--', ...program)
    await timed('gateways replaced under load', async () => {
      await cluster.kubectl('-n', 'headgate', 'rollout', 'restart', 'deployment/headgate-gateway')
      await untilReplaced(2)
    })
    await timed('3 gateways, then 1, then 2, under load', async () => {
      for (const replicas of [3, 1, 2]) {
        await scale(replicas)
        await untilReplaced(replicas)
      }
    })
    const report = JSON.parse(await endLoad()) as LoadReport
    progress(`under load: ${report.answered} plain calls and ${report.streams} streams answered, ${report.failed} failed`)
    expect(report.failures).toEqual([])
    expect(report.answered).toBeGreaterThan(2_000)
    expect(report.streams).toBeGreaterThan(150)
  })

  it('answers from gateways that started while Redis was down, and follows changes again when an empty Redis starts', async () => {
    const scale = (replicas: number) => cluster.kubectl('-n', 'headgate', 'scale', 'statefulset/headgate-redis', `--replicas=${replicas}`)
    const rollout = (what: string) => cluster.kubectl('-n', 'headgate', 'rollout', 'status', what, '--timeout=180s')
    await edit({ limits: null }) // while Redis is down, gateways refuse a key with limits unless its spec says LocalShare
    await untilReady(`apikey/${key.metadata.name}`)
    await readLogs()
    await scale(0)
    await cluster.kubectl('-n', 'headgate', 'wait', '--for=delete', 'pod/headgate-redis-0', '--timeout=180s')
    await timed('gateways cold-started without Redis', async () => {
      await cluster.kubectl('-n', 'headgate', 'delete', 'pods', '-l', 'app.kubernetes.io/component=gateway')
      await rollout('deployment/headgate-gateway')
    })
    expectAll(await ask(servedName), 200)
    await timed('Redis back, rebuilt and followed', async () => {
      await scale(1)
      await rollout('statefulset/headgate-redis')
      await edit({ state: 'Suspended' })
      await eventually(401)
    })
    await edit({ state: 'Active' })
    await eventually(200)
  })

  it('answers the same client with 401 once kubectl delete has returned', async () => {
    await timed('kubectl delete apikey', () => cluster.kubectl('-n', namespace, 'delete', 'apikey', key.metadata.name, '--timeout=180s'))
    expectAll(await ask(servedName), 401)
    await expect
      .poll(() => cluster.kubectl('-n', namespace, 'get', 'secrets', '-o', 'name'), { timeout: 120_000 })
      .not.toContain(`/${secretName}\n`)
  })

  it('has restarted no container, and asked the API server only for what its roles grant', async () => {
    const all = await pods('-n', 'headgate')
    expect(all.flatMap(({ status }) => status.containerStatuses ?? []).map(({ restartCount }) => restartCount)).toEqual(all.map(() => 0))
    const operators = await cluster.kubectl('-n', 'headgate', 'logs', '-l', 'app.kubernetes.io/component=operator', '--tail=-1')
    expect(operators).toContain('"msg":"leading"')
    expect(operators).not.toMatch(/forbidden/i)
    const rights = operatorRights(API_KINDS)
    const used = await allowedUses(auditFolder(), rights)
    expect(used.size, 'the audit log was read').toBeGreaterThan(10)
    expect([...used].filter((use) => !grants(rights).has(use))).toEqual([])
  })

  it('has written the value of the key into no log, event or status', async () => {
    await readLogs()
    texts.push(await cluster.kubectl('get', 'events', '-A', '-o', 'json'))
    texts.push(await cluster.kubectl('get', 'apikeys,servedmodels,pods,configmaps', '-A', '-o', 'json'))
    expect(texts.filter((text) => text.includes(`"model":"${servedName}"`)).length, 'access logs were read').toBeGreaterThanOrEqual(2)
    expect(issued).toHaveLength(2)
    for (const value of issued) {
      const secret = value.slice(16) // what follows the tag and the public id
      const encoded = Buffer.from(value).toString('base64')
      expect(texts.filter((text) => text.includes(secret) || text.includes(encoded)).length).toBe(0)
    }
  })
})
