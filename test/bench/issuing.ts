/**
 * Issuing: the time from the first write of many ApiKeys until all are Ready, divided by the time in which one client writes the same objects
 * without an operator. The bare writes come before and after (A/A), on one control plane.
 */
import type { ControlPlane } from '../support/control-plane.ts'
import { atOnce } from '../support/at-once.ts'
import type { Stack } from '../support/stack.ts'
import { makeBareKey } from './bare-keys.ts'
import { type Clone, clonesOf } from './gateways.ts'
import { keyManifest, keyNames, KeyWatch, serverReading, WIDTH, withControlPlane, withStack } from './many-keys.ts'
import { type BenchSite, type Bound, breaks, cpuMs, inTurn, median, memoryMib, type PartResult, shown, tableOf } from './part.ts'

const RATIO: Bound = { must: 1.3 }
/** Keyring Secrets are written in groups: writes per key. */
const KEYRING_WRITES: Bound = { must: 0.2 }
/** Of the operator, MiB. Without a memory limit V8 collects garbage later than in a container. */
const PEAK: Bound = { must: 400 }
const NAMESPACES = 5
const ROUNDS = 2
/** The first write of each kind costs the API server much more than the next. */
const WARM_UP_KEYS = 200

interface Measured {
  readonly seconds: number
  readonly apiServerCpuSeconds: number
  readonly secretWrites: number
}

interface Issued extends Measured {
  readonly clone: Clone['clone']
  readonly operatorCpuSeconds: number
  readonly peakMib: number
}

interface IssuingRound {
  readonly bare: readonly [Measured, Measured]
  readonly issued: readonly Issued[]
}

export async function issuingPart(site: BenchSite): Promise<PartResult> {
  const keys = site.isQuick ? 100 : 5_000
  const rounds = await withControlPlane(site, 'issuing-plane', async (plane) => {
    await bareHalf(plane, WARM_UP_KEYS, 'warm-up')
    const done: IssuingRound[] = []
    for (let round = 0; round < (site.isQuick ? 1 : ROUNDS); round++) {
      site.say(`issuing: ${keys} ApiKeys, round ${round + 1}`)
      const first = await bareHalf(plane, keys, `bare-${round}-first`)
      const issued: Issued[] = []
      for (const { clone, dist } of inTurn(clonesOf(site), round)) {
        const name = `issuing-${clone.toLowerCase()}-${round}`
        const result = await withStack(site, { plane, name, dist, namespaces: namespacesOf(name) }, (stack) => issue(stack, keys))
        issued.push({ clone, ...result })
      }
      done.push({ bare: [first, await bareHalf(plane, keys, `bare-${round}-last`)], issued })
    }
    return done
  })
  return issuingReport(keys, rounds)
}

const namespacesOf = (name: string): string[] => Array.from({ length: NAMESPACES }, (_, i) => `${name}-${i}`)

/** The bench watches the same objects as in the operator's half. */
async function bareHalf(plane: ControlPlane, keys: number, name: string): Promise<Measured> {
  const namespaces = namespacesOf(name)
  for (const namespace of namespaces) await plane.namespace(namespace)
  const watch = new KeyWatch(plane.admin, namespaces)
  try {
    return await measured(plane, () => atOnce(keyNames('key', keys, namespaces), (key) => makeBareKey(plane.admin, key), WIDTH))
  } finally {
    watch.stop()
  }
}

async function issue({ operator, kube, namespaces, site }: Stack, keys: number): Promise<Omit<Issued, 'clone'>> {
  const watch = new KeyWatch(kube, namespaces)
  const names = keyNames('key', keys, namespaces)
  const { pid } = operator.process
  try {
    const before = cpuMs(pid)
    const result = await measured(site.plane, async () => {
      await atOnce(names, (key) => kube.create(keyManifest(key)), WIDTH)
      await watch.untilReady(names)
    })
    return { ...result, operatorCpuSeconds: (cpuMs(pid) - before) / 1000, peakMib: memoryMib(pid).peak }
  } finally {
    watch.stop()
  }
}

async function measured(plane: ControlPlane, work: () => Promise<unknown>): Promise<Measured> {
  const before = await serverReading(plane)
  const started = performance.now()
  await work()
  const seconds = (performance.now() - started) / 1000
  const after = await serverReading(plane)
  return { seconds, apiServerCpuSeconds: after.cpuSeconds - before.cpuSeconds, secretWrites: after.secretWrites - before.secretWrites }
}

function issuingReport(keys: number, rounds: readonly IssuingRound[]): PartResult {
  const bareSeconds = ({ bare: [first, last] }: IssuingRound): number => (first.seconds + last.seconds) / 2
  const all = rounds.flatMap((round) =>
    round.issued.map((one) => ({
      ...one,
      round,
      ratio: one.seconds / bareSeconds(round),
      keyringWrites: (one.secretWrites - keys) / keys,
    })),
  )
  const own = all.filter(({ clone }) => clone === 'this')
  const ratio = median(own.map((one) => one.ratio))
  const writes = median(own.map((one) => one.keyringWrites))
  const peak = Math.max(...own.map(({ peakMib }) => peakMib))
  const rows = all.map(({ clone, round, ...one }) => ({
    '': clone,
    'bare s': bareSeconds(round).toFixed(1),
    'A/A': (round.bare[0].seconds / round.bare[1].seconds).toFixed(2),
    'all Ready s': one.seconds.toFixed(1),
    ratio: one.ratio.toFixed(2),
    'API server CPU s': one.apiServerCpuSeconds.toFixed(1),
    'operator CPU s': one.operatorCpuSeconds.toFixed(1),
    'peak MiB': one.peakMib.toFixed(0),
    'other Secret writes per key': one.keyringWrites.toFixed(2),
  }))
  const lines = [
    `${keys} ApiKeys applied at once by one client, ${WIDTH} calls in flight; from the first write until all are Ready. Bare: the same client writes`,
    'ApiKey, finalizer, Secret, status and one Event of each key, without an operator.',
    ...tableOf(rows),
    `  ratio ${shown(ratio, RATIO, '', 2)}; keyring writes per key ${shown(writes, KEYRING_WRITES, '', 2)}; peak ${shown(peak, PEAK, 'MiB', 0)}`,
  ]
  return { lines, isMissed: breaks(RATIO, ratio) || breaks(KEYRING_WRITES, writes) || breaks(PEAK, peak), data: rounds }
}
