/**
 * An operator with many keys: memory and main-thread time while the keys are issued, at rest, in a restart, and while every key spends; the writes
 * of a restart; and the bytes per second of the durable spend. `BENCH_KEYS` keys, 25 in each namespace, one watch of the whole cluster.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { budgetField } from '#contract/ledger/ledger-layout.ts'
import { ledgerKeys, settledSubjects } from '#contract/redis/redis-keys.ts'
import { atOnce } from '../support/at-once.ts'
import { objectPath } from '../support/kube-admin.ts'
import type { Stack } from '../support/stack.ts'
import { clonesOf } from './gateways.ts'
import {
  GROUP,
  keyManifest,
  keyNames,
  type KeyName,
  KeyWatch,
  serverReading,
  untilIdle,
  WIDTH,
  withControlPlane,
  withStack,
} from './many-keys.ts'
import { Inspector, type SettledMemory } from './settled-memory.ts'
import { type BenchSite, type Bound, breaks, memoryMib, type PartResult, shown, tableOf, withProgress } from './part.ts'

const KEYS_PER_NAMESPACE = 25
const FIELD = budgetField('life:Currency:Lifetime', 0)
const BUDGETS = [{ name: 'life', amount: '900000000', unit: 'Currency', window: 'Lifetime', onExceeded: 'Block' }]
/** The heap of the chart would end such a run, and the memory that it needs would not be known. */
const HEAP = '--max-old-space-size=4096'
/** Keys per second at which issuing counts as stuck. */
const SLOWEST_PER_SECOND = 10
/** Time after a start for writes that a restart must not make, ms. */
const AFTER_START_MS = 30_000
/** Keys whose spend is written in one round trip, and how often each key spends, ms. */
const CHUNK = 500
const SPEND_EVERY_MS = 3_000
const RESTART_WRITES: Bound = { must: 0 }
/** Eight Secrets, each at most 48 KiB per second. */
const SPEND_KIB: Bound = { must: 400 }

interface Phase {
  readonly name: string
  readonly seconds: number
  /** Of the main thread of the operator, ms per second. */
  readonly mainMs: number
  readonly rssMib: number
  readonly peakMib: number
}

class ScaleBench {
  readonly #site: BenchSite
  readonly #stack: Stack
  readonly #namespaces: readonly string[]
  readonly uids: string[] = []

  constructor(site: BenchSite, stack: Stack) {
    this.#site = site
    this.#stack = stack
    this.#namespaces = Array.from({ length: Math.ceil(site.keys / KEYS_PER_NAMESPACE) }, (_, i) => `scale-${i}`)
  }

  async createNamespaces(): Promise<void> {
    await atOnce(this.#namespaces, (namespace) => this.#stack.site.plane.namespace(namespace), WIDTH)
    this.#site.say(`scale: ${this.#namespaces.length} namespaces`)
  }

  async issue(): Promise<void> {
    const { kube, operator } = this.#stack
    const watch = new KeyWatch(kube, ['']) // the whole cluster
    const keys = keyNames('key', this.#site.keys, this.#namespaces)
    const create = async (key: KeyName): Promise<void> => {
      this.uids.push((await kube.create(keyManifest(key, { budgets: BUDGETS }))).metadata.uid ?? '')
    }
    try {
      await withProgress(
        this.#site,
        'scale',
        () => watch.progress(keys),
        async () => {
          await atOnce(keys, create, WIDTH)
          await watch.untilReady(keys, (keys.length * 1_000) / SLOWEST_PER_SECOND)
          await untilIdle(operator)
        },
      )
    } finally {
      watch.stop()
    }
  }

  async phase(name: string, work: () => Promise<unknown>): Promise<Phase> {
    this.#site.say(`scale: ${name}`)
    const before = this.#mainMs
    const started = performance.now()
    await work()
    const seconds = (performance.now() - started) / 1_000
    const { rss, peak } = memoryMib(this.#stack.operator.process.pid)
    return { name, seconds, mainMs: (this.#mainMs - before) / seconds, rssMib: rss, peakMib: peak }
  }

  /** @returns writes of Secrets and statuses from the end of the former process on */
  async restart(): Promise<{ readonly phase: Phase; readonly writes: number }> {
    const { operator, site } = this.#stack
    await operator.stop()
    const before = await serverReading(site.plane)
    await operator.start()
    const phase = await this.phase('started again', async () => {
      await untilIdle(operator)
      await sleep(this.#site.isQuick ? AFTER_START_MS / 10 : AFTER_START_MS)
    })
    const after = await serverReading(site.plane)
    return { phase, writes: after.secretWrites + after.statusWrites - before.secretWrites - before.statusWrites }
  }

  /** Every key spends, as gateways would write it. @returns KiB per second of the Secrets of durable spend */
  async spend(ms: number): Promise<{ readonly phase: Phase; readonly kibPerSecond: number }> {
    const { kube, operatorNamespace } = this.#stack
    const stopped = new AbortController()
    let bytes = 0
    void kube.watch(objectPath('v1', 'Secret', operatorNamespace), stopped.signal, ({ type, object }) => {
      const data = (object['data'] ?? {}) as Record<string, string>
      if (type !== 'ADDED' && object.metadata.name.startsWith('hg-spend-'))
        bytes += Object.values(data).reduce((sum, text) => sum + Buffer.byteLength(text, 'base64'), 0)
    })
    const end = performance.now() + ms
    const phase = await this.phase('every key spends', async () => {
      while (performance.now() < end) await this.#spendOnce()
    })
    stopped.abort()
    return { phase, kibPerSecond: bytes / 1_024 / phase.seconds }
  }

  async #spendOnce(): Promise<void> {
    const started = performance.now()
    for (let at = 0; at < this.uids.length; at += CHUNK) {
      const some = this.uids.slice(at, at + CHUNK)
      const pipeline = this.#stack.redis.admin.pipeline()
      for (const uid of some) pipeline.hincrby(ledgerKeys('hg', uid).budget, `${FIELD}:s`, 1_000_000)
      pipeline.sadd(settledSubjects('hg'), ...some)
      await pipeline.exec()
    }
    await sleep(Math.max(0, started + SPEND_EVERY_MS - performance.now()))
  }

  get #mainMs(): number {
    const { pid } = this.#stack.operator.process
    const stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10 // ticks of 10 ms
  }
}

/** Lets the operator work in every namespace, which the rights of a stack do not include. */
async function grantCluster({ kube, operatorNamespace }: Stack): Promise<void> {
  await kube.apply({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'bench-scale' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: 'headgate-operator', namespace: operatorNamespace }],
  })
}

/** The heap of such a run is never short, so that its resident memory says little: this is what a collection of garbage leaves. */
function keptLine(kept: readonly SettledMemory[], keys: number): string {
  const [empty = 0, full = 0] = kept.map(({ bytes }) => bytes)
  const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)
  return `memory after a collection: ${mib(empty)} MiB without keys, ${mib(full)} MiB with them, after a restart: ${((full - empty) / keys).toFixed(0)} bytes a key`
}

export async function scalePart(site: BenchSite): Promise<PartResult> {
  const windowMs = site.isQuick ? 10_000 : 60_000
  const [{ dist }] = clonesOf(site)
  const inspector = await Inspector.at(site.ip)
  const operatorEnv = { WATCH_NAMESPACES: '', NODE_OPTIONS: `${HEAP} ${inspector.option}` }
  const order = { name: 'scale', dist, namespaces: ['scale'], operatorEnv, prepare: grantCluster }
  const data = await withControlPlane(site, 'scale-plane', (plane) =>
    withStack(site, { ...order, plane }, async (stack) => {
      const bench = new ScaleBench(site, stack)
      const empty = await bench.phase('empty', () => bench.createNamespaces())
      const kept = [await inspector.settled(stack.operator)]
      const issued = await bench.phase('all keys are issued', () => bench.issue())
      const rest = await bench.phase('at rest', () => sleep(windowMs))
      const restarted = await bench.restart()
      const restAgain = await bench.phase('at rest after the restart', () => sleep(windowMs))
      kept.push(await inspector.settled(stack.operator))
      const spent = await bench.spend(windowMs)
      return { keys: bench.uids.length, phases: [empty, issued, rest, restarted.phase, restAgain, spent.phase], restarted, spent, kept }
    }),
  )
  const { keys, phases, restarted, spent, kept } = data
  const rows = phases.map(({ name, seconds, mainMs, rssMib, peakMib }) => ({
    '': name,
    seconds: seconds.toFixed(0),
    'main thread ms/s': mainMs.toFixed(0),
    'RSS MiB': rssMib.toFixed(0),
    'peak MiB': peakMib.toFixed(0),
  }))
  const lines = [
    `${keys} keys (${GROUP}) with a budget, ${KEYS_PER_NAMESPACE} in each namespace; one operator for the whole cluster, heap up to 4 GiB`,
    ...tableOf(rows),
    `  ${keptLine(kept, keys)}`,
    `  writes of Secrets and statuses by a restart: ${shown(restarted.writes, RESTART_WRITES, '', 0)}`,
    `  durable spend: ${shown(spent.kibPerSecond, SPEND_KIB, 'KiB/s')} to the API server`,
  ]
  return { lines, isMissed: breaks(RESTART_WRITES, restarted.writes) || breaks(SPEND_KIB, spent.kibPerSecond), data }
}
