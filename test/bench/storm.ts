/**
 * Storms: many ApiKeys are applied at once, while older keys are suspended and deleted. Measures how long an ended key still works
 * on any healthy gateway, during the storm and without one. Real API server, Redis, operator and gateways.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ControlPlane } from '../support/control-plane.ts'
import type { Stack } from '../support/stack.ts'
import { inFlight } from './in-flight.ts'
import { KeptRunning } from './kept-running.ts'
import { keyManifest, KeyWatch, type KeyName } from './key-watch.ts'
import { KUBELET_LAG_MS, OPERATOR_ENV, withStackOn, type OwnLabSite } from './own-lab.ts'
import type { Probe, ProbeSummary } from './probe-protocol.ts'
import { Prober } from './prober.ts'
import { memory, toMib } from './proc.ts'

/** Calls of the client that applies the storm, at the same time. */
const WIDTH = 32
/** Longest time of one storm, ms; one that takes longer is reported as unfinished. */
const STORM_DEADLINE_MS = 300_000
const READY_DEADLINE_MS = 120_000
const LOOK_EVERY_MS = 50
/** Time between two probes without a storm, ms. */
const IDLE_PAUSE_MS = 100

/** One storm. */
export interface StormPlan {
  readonly name: string
  /** ApiKeys that are applied at once. */
  readonly keys: number
  /** Namespaces over which storm and probes are spread evenly. */
  readonly namespaces: number
  /** Keys that are ended during the storm, spread over its progress. */
  readonly probes: number
  /** Keys that are ended one after another before it begins. */
  readonly idleProbes: number
  /** Adds a third gateway that is stopped by SIGSTOP and stays in the EndpointSlice; it is not asked. */
  readonly hasStoppedGateway: boolean
}

/** What was measured in one storm. */
export interface StormResult {
  readonly plan: StormPlan
  readonly idle: readonly Probe[]
  readonly during: readonly Probe[]
  /** Seconds from the first write of the storm until the last write. */
  readonly createdSeconds: number
  /** Seconds from the first write until the last Secret; undefined if the deadline passed before. */
  readonly issuedSeconds: number | undefined
  /** Seconds from the first write until the last status of the present generation; undefined if the deadline passed before. */
  readonly describedSeconds: number | undefined
  /** Number of times that the operator ended and was started again. */
  readonly operatorRestarts: number
  /** Peak resident memory of the operator (of its last process), MiB. */
  readonly operatorPeakMib: number
  readonly summary: ProbeSummary
}

/** Runs one storm on a stack of its own. */
export async function runStorm(site: OwnLabSite, plane: ControlPlane, plan: StormPlan): Promise<StormResult> {
  const namespaces = Array.from({ length: plan.namespaces }, (_, i) => `${plan.name}-${i}`)
  const options = {
    namespaces,
    gateways: plan.hasStoppedGateway ? 3 : 2,
    kubeletLagMs: KUBELET_LAG_MS,
    operatorEnv: OPERATOR_ENV,
    gatewayEnv: { ACCESS_LOG: 'sample' },
  }
  return withStackOn({ site, plane, name: plan.name, options }, (stack) => onStack(stack, plan))
}

async function onStack(stack: Stack, plan: StormPlan): Promise<StormResult> {
  const watch = new KeyWatch(stack.kube, stack.namespaces)
  const healthy = stack.gateways.slice(0, 2)
  const stopped = stack.gateways.slice(2)
  const old = keyNames('old', plan.probes + plan.idleProbes, stack.namespaces)
  const operator = new KeptRunning(stack.operator)
  let prober: Prober | undefined
  try {
    await inFlight(WIDTH, old, (key) => stack.kube.create(keyManifest(key)))
    await watch.untilReady(old, READY_DEADLINE_MS)
    for (const gateway of stopped) await gateway.kill('SIGSTOP')
    prober = new Prober(
      stack.site.plane,
      healthy.map(({ url }) => url),
    )
    const storm = new Storm(stack, watch, prober)
    const idle = await storm.endOneByOne(old.slice(plan.probes))
    const during = await storm.endDuring(keyNames('new', plan.keys, stack.namespaces), old.slice(0, plan.probes))
    const operatorPeakMib = toMib(memory([stack.operator.process.pid]).peakRssMb)
    return { plan, idle, ...during, operatorRestarts: operator.restarts, operatorPeakMib, summary: await prober.close() }
  } finally {
    operator.stop()
    watch.stop()
    await prober?.stop()
    for (const gateway of stopped) await gateway.kill('SIGCONT')
  }
}

/** Names that take the namespaces in turn. */
function keyNames(prefix: string, count: number, namespaces: readonly string[]): KeyName[] {
  return Array.from({ length: count }, (_, i) => ({ name: `${prefix}-${i}`, namespace: namespaces[i % namespaces.length] ?? '' }))
}

type During = Omit<StormResult, 'plan' | 'idle' | 'operatorRestarts' | 'operatorPeakMib' | 'summary'>

class Storm {
  readonly #stack: Stack
  readonly #watch: KeyWatch
  readonly #prober: Prober

  constructor(stack: Stack, watch: KeyWatch, prober: Prober) {
    this.#stack = stack
    this.#watch = watch
    this.#prober = prober
  }

  async endOneByOne(keys: readonly KeyName[]): Promise<Probe[]> {
    const probes: Probe[] = []
    for (const [i, key] of keys.entries()) {
      probes.push(await this.#end(key, i))
      await sleep(IDLE_PAUSE_MS)
    }
    return probes
  }

  /** Applies `fresh` at once. Ends one of `old` after each equal part of the storm: manifests, Secrets and statuses count a third each. */
  async endDuring(fresh: readonly KeyName[], old: readonly KeyName[]): Promise<During> {
    const started = performance.now()
    const seconds = (): number => (performance.now() - started) / 1000
    let created = 0
    const creating = inFlight(WIDTH, fresh, async (key) => {
      await this.#stack.kube.create(keyManifest(key))
      created += 1
    }).then(seconds)
    creating.catch(() => undefined) // awaited below, after the loop
    const probes: Promise<Probe>[] = []
    let issuedSeconds: number | undefined
    let describedSeconds: number | undefined
    while (describedSeconds === undefined && seconds() * 1000 < STORM_DEADLINE_MS) {
      const { issued, described } = this.#watch.progress(fresh)
      const share = (created + issued + described) / (3 * fresh.length)
      if (issued === fresh.length) issuedSeconds ??= seconds()
      if (described === fresh.length) describedSeconds ??= seconds()
      const next = old[probes.length]
      if (next && share >= probes.length / old.length) {
        const probe = this.#end(next, probes.length)
        probe.catch(() => undefined) // awaited below, after the loop
        probes.push(probe)
      }
      await sleep(LOOK_EVERY_MS)
    }
    return { during: await Promise.all(probes), createdSeconds: await creating, issuedSeconds, describedSeconds }
  }

  /** Suspends and deletes in turn. */
  #end(key: KeyName, index: number): Promise<Probe> {
    const credential = this.#watch.credential(key)
    if (credential === undefined) throw new Error(`there is no value in the Secret of ${key.namespace}/${key.name}`)
    return this.#prober.probe(key, credential, index % 2 === 0 ? 'suspend' : 'delete')
  }
}
