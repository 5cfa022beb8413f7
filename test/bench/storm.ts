/** How long a suspended or deleted key still works on any gateway while thousands of ApiKeys are applied, and without that (the control). */
import { setTimeout as sleep } from 'node:timers/promises'
import { atOnce } from '../support/at-once.ts'
import type { Stack } from '../support/stack.ts'
import { type Clone, clonesOf } from './gateways.ts'
import { keyManifest, type KeyName, keyNames, KeyWatch, WIDTH, withControlPlane, withStack } from './many-keys.ts'
import { type BenchSite, type Bound, breaks, inTurn, memoryMib, type PartResult, quantile, shown, tableOf } from './part.ts'
import { Prober, type ProbeQuality } from './prober.ts'

/** p99 of how long an ended key still works, ms. */
export const STILL_WORKS: Bound = { must: 1_000, aim: 300 }
/** Longest time of one storm, ms; one that takes longer is reported as unfinished. */
const STORM_DEADLINE_MS = 300_000
const PROGRESS_EVERY_MS = 50
/** Time between two probes without a storm, ms. */
const IDLE_PAUSE_MS = 100
/** Namespaces of every storm but the last, which uses only one. */
const NAMESPACES = 5
/** Keys that are ended one after another before each storm. */
const IDLE_PROBES = 20

interface StormPlan {
  readonly clone: Clone['clone']
  readonly name: string
  readonly keys: number
  readonly namespaces: number
  readonly probes: number
}

interface StormResult extends StormPlan, ProbeQuality {
  /** How long keys still worked, ms: without a storm, and during it. */
  readonly idle: readonly number[]
  readonly during: readonly number[]
  /** Seconds from the first write until the last Secret, and until the last status; undefined if the deadline passed before. */
  readonly issuedSeconds: number | undefined
  readonly describedSeconds: number | undefined
  readonly operatorPeakMib: number
}

export async function stormPart(site: BenchSite): Promise<PartResult> {
  const { isQuick } = site
  const storms = isQuick ? 1 : 5
  const results = await withControlPlane(site, 'storm-plane', async (plane) => {
    const done: StormResult[] = []
    for (let round = 0; round < storms; round++) {
      for (const { clone, dist } of inTurn(clonesOf(site), round)) {
        const namespaces = storms > 1 && round === storms - 1 ? 1 : NAMESPACES
        const plan = {
          clone,
          dist,
          name: `storm-${clone.toLowerCase()}-${round}`,
          keys: isQuick ? 200 : 2_000,
          namespaces,
          probes: isQuick ? 10 : 40,
        }
        site.say(`${plan.name}: ${plan.keys} ApiKeys over ${namespaces} namespaces`)
        const names = Array.from({ length: namespaces }, (_, i) => `${plan.name}-${i}`)
        done.push(await withStack(site, { plane, name: plan.name, dist, namespaces: names }, (stack) => storm(stack, plan)))
      }
    }
    return done
  })
  return stormReport(results)
}

async function storm(stack: Stack, plan: StormPlan): Promise<StormResult> {
  const watch = new KeyWatch(stack.kube, stack.namespaces)
  const prober = new Prober(stack)
  const old = keyNames('old', plan.probes + IDLE_PROBES, stack.namespaces)
  const end = (key: KeyName, i: number): Promise<number> => prober.end(key, watch.credential(key), i % 2 === 0 ? 'suspend' : 'delete')
  try {
    await atOnce(old, (key) => stack.kube.create(keyManifest(key)), WIDTH)
    await watch.untilReady(old)
    const idle: number[] = []
    for (const [i, key] of old.slice(plan.probes).entries()) {
      idle.push(await end(key, i))
      await sleep(IDLE_PAUSE_MS)
    }
    const seen = await endDuring({ stack, watch, end }, keyNames('new', plan.keys, stack.namespaces), old.slice(0, plan.probes))
    const operatorPeakMib = memoryMib(stack.operator.process.pid).peak
    return { ...plan, idle, ...seen, operatorPeakMib, ...(await prober.close()) }
  } finally {
    watch.stop()
    await prober.stop()
  }
}

interface Running {
  readonly stack: Stack
  readonly watch: KeyWatch
  readonly end: (key: KeyName, i: number) => Promise<number>
}

/**
 * Applies `fresh` at once. Ends one of `old` after each equal part of the storm: manifests, Secrets and statuses count a third each, so that a
 * slow build is probed as often as a fast one.
 */
async function endDuring(
  { stack, watch, end }: Running,
  fresh: readonly KeyName[],
  old: readonly KeyName[],
): Promise<Pick<StormResult, 'during' | 'issuedSeconds' | 'describedSeconds'>> {
  const started = performance.now()
  const seconds = (): number => (performance.now() - started) / 1000
  let created = 0
  const creating = atOnce(
    fresh,
    async (key) => {
      await stack.kube.create(keyManifest(key))
      created += 1
    },
    WIDTH,
  )
  creating.catch(() => undefined) // awaited below, after the loop
  const probes: Promise<number>[] = []
  let issuedSeconds: number | undefined
  let describedSeconds: number | undefined
  while ((issuedSeconds === undefined || describedSeconds === undefined) && seconds() * 1000 < STORM_DEADLINE_MS) {
    const { issued, described } = watch.progress(fresh)
    if (issued === fresh.length) issuedSeconds ??= seconds()
    if (described === fresh.length) describedSeconds ??= seconds()
    const next = old[probes.length]
    if (next && (created + issued + described) / (3 * fresh.length) >= probes.length / old.length) {
      const probe = end(next, probes.length)
      probe.catch(() => undefined) // awaited below, after the loop
      probes.push(probe)
    }
    await sleep(PROGRESS_EVERY_MS)
  }
  await creating
  return { during: await Promise.all(probes), issuedSeconds, describedSeconds }
}

function stormReport(results: readonly StormResult[]): PartResult {
  const own = results.filter(({ clone }) => clone === 'this')
  const p99 = quantile(
    own.flatMap(({ during }) => during),
    0.99,
  )
  const isFinished = own.every(({ describedSeconds, admittedAgain }) => describedSeconds !== undefined && admittedAgain === 0)
  const rows = results.map(({ name, namespaces, idle, during, ...rest }) => ({
    '': name,
    namespaces: String(namespaces),
    'all Secrets s': rest.issuedSeconds?.toFixed(1) ?? 'unfinished',
    'all statuses s': rest.describedSeconds?.toFixed(1) ?? 'unfinished',
    'idle p50 ms': quantile(idle, 0.5).toFixed(0),
    'idle p99': quantile(idle, 0.99).toFixed(0),
    'storm p50 ms': quantile(during, 0.5).toFixed(0),
    'storm p99': quantile(during, 0.99).toFixed(0),
    max: quantile(during, 1).toFixed(0),
    resolution: rest.resolutionMs.toFixed(0),
    again: String(rest.admittedAgain),
    'peak MiB': rest.operatorPeakMib.toFixed(0),
  }))
  const lines = [
    `${results[0]?.keys ?? 0} ApiKeys applied at once, ${WIDTH} calls in flight; older keys are suspended and deleted, from the API server's answer until`,
    'every gateway answers 401. resolution: a measured time is too long by at most this. again: ended keys admitted after the storm.',
    ...tableOf(rows),
    `  p99 over all storms ${shown(p99, STILL_WORKS, 'ms', 0)}; finished, and none admitted again: ${isFinished ? 'held' : 'MISSED'}`,
  ]
  return { lines, isMissed: breaks(STILL_WORKS, p99) || !isFinished, data: results }
}
