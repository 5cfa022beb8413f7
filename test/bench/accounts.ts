/**
 * Accounts: the time from the first write of many accounts with ten keys each until all are Ready, divided by the time in which one client
 * writes the same objects without an operator; then one edit of their plan, which may rewrite no status.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { atOnce } from '../support/at-once.ts'
import type { KubeAdmin, TestObject } from '../support/kube-admin.ts'
import { objectPath } from '../support/kube-admin.ts'
import type { Stack } from '../support/stack.ts'
import { waitFor } from '../support/wait-for.ts'
import { makeBareKey } from './bare-keys.ts'
import { clonesOf } from './gateways.ts'
import { GROUP, keyManifest, type KeyName, keyNames, KeyWatch, serverReading, WIDTH, withControlPlane, withStack } from './many-keys.ts'
import { type BenchSite, type Bound, breaks, memoryMib, type PartResult, shown } from './part.ts'

const RATIO: Bound = { must: 1.3 }
/** Status writes after an edit of the plan: that of the Plan itself. */
const STATUSES: Bound = { must: 2 }
const KEYS_EACH = 10
const PLAN = 'bench-plan'
/** Statuses are written within this time after an edit, ms. */
const SETTLED_MS = 15_000

interface Issued {
  readonly seconds: number
  readonly statusWrites: number
  readonly operatorMib: number
  readonly gatewayMib: number
}

export async function accountsPart(site: BenchSite): Promise<PartResult> {
  const accounts = site.isQuick ? 10 : 1_000
  const data = await withControlPlane(site, 'accounts-plane', async (plane) => {
    const bare = async (name: string, count: number): Promise<number> => {
      await plane.namespace(name)
      const started = performance.now()
      await atOnce(accountNames(name, count), (account) => makeBareAccount(plane.admin, account, name), WIDTH)
      await atOnce(keysOf(name, count), (key) => makeBareKey(plane.admin, key), WIDTH)
      return (performance.now() - started) / 1000
    }
    await bare('accounts-warm-up', Math.min(accounts, 50))
    const first = await bare('accounts-bare-first', accounts)
    const [own] = clonesOf(site)
    const name = 'accounts-issued'
    const issued = await withStack(site, { plane, name, dist: own.dist, namespaces: [name] }, (stack) => issue(stack, name, accounts))
    return { first, issued, last: await bare('accounts-bare-last', accounts) }
  })
  const { first, issued, last } = data
  const ratio = issued.seconds / ((first + last) / 2)
  const lines = [
    `${accounts} Accounts on one Plan with ${KEYS_EACH} ApiKeys each, applied at once by one client, ${WIDTH} calls in flight; from the first write until all are Ready`,
    `  bare ${first.toFixed(1)} s and ${last.toFixed(1)} s (A/A ${(first / last).toFixed(2)}), all Ready ${issued.seconds.toFixed(1)} s, ratio ${shown(ratio, RATIO, '', 2)}`,
    `  status writes after an edit of the Plan ${shown(issued.statusWrites, STATUSES, '', 0)}`,
    `  peak of the operator ${issued.operatorMib.toFixed(0)} MiB, of a gateway ${issued.gatewayMib.toFixed(0)} MiB`,
  ]
  return { lines, isMissed: breaks(RATIO, ratio) || breaks(STATUSES, issued.statusWrites), data }
}

const accountNames = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${prefix}-${at}`)

function keysOf(namespace: string, accounts: number): KeyName[] {
  return keyNames('key', accounts * KEYS_EACH, [namespace])
}

function accountManifest(name: string, namespace: string): TestObject {
  const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': namespace } }
  return { apiVersion: GROUP, kind: 'Account', metadata: { name }, spec: { planRef: { name: PLAN }, namespaces } }
}

/** Creates an Account as a user does; then makes the two writes of an operator: mark and status. */
async function makeBareAccount(kube: KubeAdmin, name: string, namespace: string): Promise<void> {
  await kube.create(accountManifest(name, namespace))
  const path = objectPath(GROUP, 'Account', undefined, name)
  await kube.merge(path, { metadata: { annotations: { 'headgate.dev/bench': 'a mark of fifty characters, as an operator writes it' } } })
  const condition = (type: string): object => ({
    ...{ type, status: 'True', reason: type, message: 'The account holds on every gateway.' },
    ...{ observedGeneration: 1, lastTransitionTime: '2026-01-01T00:00:00Z' },
  })
  const conditions = ['Ready', 'Accepted', 'Programmed'].map(condition)
  const status = { observedGeneration: 1, keyCount: KEYS_EACH, activeKeyCount: KEYS_EACH, conditions }
  const body = { apiVersion: GROUP, kind: 'Account', metadata: { name }, status }
  await kube.call('PATCH', `${path}/status?fieldManager=bench&force=true`, body, 'application/apply-patch+yaml')
}

async function issue({ operator, gateway, kube, site }: Stack, namespace: string, accounts: number): Promise<Issued> {
  const watch = new KeyWatch(kube, [namespace])
  const keys = keysOf(namespace, accounts)
  try {
    await kube.create(planManifest(['*']))
    const started = performance.now()
    await atOnce(accountNames(namespace, accounts), (name) => kube.create(accountManifest(name, namespace)), WIDTH)
    const inAccount = (at: number): object => ({ accountRef: { name: `${namespace}-${Math.floor(at / KEYS_EACH)}` } })
    await atOnce(keys, (key, at) => kube.create(keyManifest(key, inAccount(at))), WIDTH)
    await watch.untilReady(keys)
    const seconds = (performance.now() - started) / 1000
    await sleep(SETTLED_MS) // the counts of keys in the statuses of the accounts
    const before = await serverReading(site.plane)
    await kube.merge(objectPath(GROUP, 'Plan', undefined, PLAN), { spec: { models: ['a', 'b'] } })
    await waitFor('the edit to hold', async () => {
      const plan = await kube.get(objectPath(GROUP, 'Plan', undefined, PLAN))
      return plan?.status?.['observedGeneration'] === 2
    })
    await sleep(SETTLED_MS)
    const after = await serverReading(site.plane)
    const peak = (pid: number): number => memoryMib(pid).peak
    return {
      seconds,
      statusWrites: after.statusWrites - before.statusWrites,
      operatorMib: peak(operator.process.pid),
      gatewayMib: peak(gateway.process.pid),
    }
  } finally {
    watch.stop()
  }
}

function planManifest(models: readonly string[]): TestObject {
  return { apiVersion: GROUP, kind: 'Plan', metadata: { name: PLAN }, spec: { models } }
}
