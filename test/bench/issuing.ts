/**
 * All Ready ÷ bare: the time from the first write of many ApiKeys until all are Ready, divided by the time in which one client writes the same
 * objects without an operator. Both run in turn on one control plane.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ControlPlane } from '../support/control-plane.ts'
import type { Program } from '../support/program.ts'
import type { Stack } from '../support/stack.ts'
import { makeBareKey } from './bare-keys.ts'
import { inFlight } from './in-flight.ts'
import { keyManifest, KeyWatch, type KeyName } from './key-watch.ts'
import { KUBELET_LAG_MS, OPERATOR_ENV, withStackOn, type OwnLabSite } from './own-lab.ts'
import { cpuMs, memory, toMib } from './proc.ts'
import { increase, readSamples, sumBy } from './prometheus-text.ts'

/** Calls of the client at the same time. */
const WIDTH = 32
/** Namespaces over which the keys of a round are spread. */
const NAMESPACES = 5
const WARM_UP_KEYS = 200
const READY_DEADLINE_MS = 600_000

/** One round: the same number of keys, once bare and once by the operator. */
export interface IssuingRound {
  readonly keys: number
  readonly bare: Measured
  readonly operator: OperatorMeasured
}

/** The measurements of each half of a round. */
export interface Measured {
  /** From the first write until the last write (bare), or until all are Ready (operator). */
  readonly seconds: number
  /** CPU time of kube-apiserver in this time, s. */
  readonly apiServerCpuSeconds: number
  /** Writes that the API server has counted, by verb and resource. */
  readonly writes: ReadonlyMap<string, number>
}

/** Further measurements of the operator's half. */
export interface OperatorMeasured extends Measured {
  /** Calls that the operator has counted, by method. */
  readonly calls: ReadonlyMap<string, number>
  /** Writes of keyring Secrets that the operator has counted. */
  readonly keyringCommits: number
  readonly operatorCpuSeconds: number
  /** Resident memory of the operator, MiB: before the first key, and its peak up to the end. */
  readonly idleMib: number
  readonly peakMib: number
}

/** Where rounds run. */
export interface IssuingSite {
  readonly site: OwnLabSite
  readonly plane: ControlPlane
}

/** Writes some bare keys before anything is measured: the first write of each kind costs the API server much more than the next. */
export async function warmUp(plane: ControlPlane): Promise<void> {
  await bareHalf(plane, WARM_UP_KEYS, 'warm-up')
}

/** Runs one round: bare first. @param name of its namespaces; unique on the control plane */
export async function issuingRound({ site, plane }: IssuingSite, keys: number, name: string): Promise<IssuingRound> {
  const bare = await bareHalf(plane, keys, `${name}-bare`)
  const namespaces = namespacesOf(name)
  const options = {
    namespaces,
    gateways: 2,
    kubeletLagMs: KUBELET_LAG_MS,
    operatorEnv: OPERATOR_ENV,
    gatewayEnv: { ACCESS_LOG: 'sample' },
  }
  const operator = await withStackOn({ site, plane, name, options }, (stack) => operatorHalf(stack, keys))
  return { keys, bare, operator }
}

/** Only the bench itself watches these namespaces, as in the other half. */
async function bareHalf(plane: ControlPlane, keys: number, name: string): Promise<Measured> {
  const namespaces = namespacesOf(name)
  for (const namespace of namespaces) await plane.namespace(namespace)
  const watch = new KeyWatch(plane.admin, namespaces)
  try {
    return await measured(plane, () => inFlight(WIDTH, keyNames(keys, namespaces), (key) => makeBareKey(plane.admin, key)))
  } finally {
    watch.stop()
  }
}

async function operatorHalf(stack: Stack, keys: number): Promise<OperatorMeasured> {
  const { operator, kube, namespaces } = stack
  const watch = new KeyWatch(kube, namespaces)
  const names = keyNames(keys, namespaces)
  try {
    const before = await operatorReading(operator)
    const result = await measured(stack.site.plane, async () => {
      await inFlight(WIDTH, names, (key) => kube.create(keyManifest(key)))
      await watch.untilReady(names, READY_DEADLINE_MS)
    })
    const after = await operatorReading(operator)
    return {
      ...result,
      calls: increase(before.calls, after.calls),
      keyringCommits: after.commits - before.commits,
      operatorCpuSeconds: after.cpuSeconds - before.cpuSeconds,
      idleMib: before.rssMib,
      peakMib: after.peakMib,
    }
  } finally {
    watch.stop()
  }
}

async function measured(plane: ControlPlane, work: () => Promise<void>): Promise<Measured> {
  const before = await serverReading(plane)
  const started = performance.now()
  await work()
  const seconds = (performance.now() - started) / 1000
  const after = await serverReading(plane)
  return { seconds, apiServerCpuSeconds: after.cpuSeconds - before.cpuSeconds, writes: increase(before.writes, after.writes) }
}

const WRITE_VERBS = new Set(['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE'])
const OUR_RESOURCES = new Set(['apikeys', 'secrets', 'events'])

async function serverReading(plane: ControlPlane): Promise<{ cpuSeconds: number; writes: Map<string, number> }> {
  const pid = Number(readFileSync(join(plane.address.folder, 'kube-apiserver.pid'), 'utf8'))
  const samples = readSamples(await plane.admin.text('/metrics'), ['apiserver_request_total'])
  const writes = sumBy(samples, ({ labels: { verb = '', resource = '', subresource = '' } }) =>
    WRITE_VERBS.has(verb) && OUR_RESOURCES.has(resource) ? `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}` : undefined,
  )
  return { cpuSeconds: cpuMs([pid]) / 1000, writes }
}

interface OperatorReading {
  readonly calls: Map<string, number>
  readonly commits: number
  readonly cpuSeconds: number
  readonly rssMib: number
  readonly peakMib: number
}

async function operatorReading(operator: Program): Promise<OperatorReading> {
  const commitsName = 'headgate_operator_keyring_commit_seconds_count'
  const samples = readSamples(await operator.metrics(), ['rest_client_requests_total', commitsName])
  const pids = [operator.process.pid]
  const { rssMb, peakRssMb } = memory(pids)
  return {
    calls: sumBy(samples, ({ name, labels }) => (name === commitsName ? undefined : labels['method'])),
    commits: sumBy(samples, ({ name }) => name).get(commitsName) ?? Number.NaN,
    cpuSeconds: cpuMs(pids) / 1000,
    rssMib: toMib(rssMb),
    peakMib: toMib(peakRssMb),
  }
}

/**
 * Writes of Secrets that are not the users' own: those of keyring, models and tokens. One Secret of each key is a user's.
 * @param writes as the API server has counted them
 */
export function keyringWrites({ writes }: Measured, keys: number): number {
  const secrets = [...writes].filter(([name]) => name.endsWith(' secrets') && !name.startsWith('DELETE'))
  return secrets.reduce((sum, [, count]) => sum + count, 0) - keys
}

function namespacesOf(name: string): string[] {
  return Array.from({ length: NAMESPACES }, (_, i) => `${name}-${i}`)
}

function keyNames(count: number, namespaces: readonly string[]): KeyName[] {
  return Array.from({ length: count }, (_, i) => ({ name: `key-${i}`, namespace: namespaces[i % namespaces.length] ?? '' }))
}
