/** The cost of a request, a start with many keys, and well-behaved clients beside attacks. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ATTACKS } from '../support/attacks/attack-protocol.ts'
import { AttackedGateway, CLIENTS, MEMORY_BYTES, missingForAttacks, type UnderAttack } from '../support/attacks/attacked-gateway.ts'
import { freePorts } from '../support/free-port.ts'
import { imageFlags } from '../support/image-flags.ts'
import type { RedisPart } from '../support/redis-part.ts'
import { waitFor } from '../support/wait-for.ts'
import { comparing, type Comparison } from './compare.ts'
import { type Clone, clonesOf, fillRedis, gatewayEnv, Started } from './gateways.ts'
import { type BenchSite, type Bound, breaks, inTurn, memoryMib, type Part, type PartResult, quantile, shown, table } from './part.ts'

const USED_KEYS = 256

const BESIDE_BARE: Omit<Comparison, 'name' | 'about' | 'bounds'> = {
  ...{ model: 'plain', bodyBytes: 1_500, connections: 32, keys: USED_KEYS },
  ...{ measured: { of: 'gateway', keys: 'bare' }, control: { of: 'bare', keys: 'bare' } },
}

/** Keys with limits: every translated call counts tokens, so the same chat completion has to do so, too. */
const TRANSLATED: Omit<Comparison, 'name' | 'about' | 'bounds'> = {
  ...{ model: 'plain', bodyBytes: 1_500, connections: 32, keys: USED_KEYS },
  ...{ measured: { of: 'gateway', keys: 'limited', route: 'messages' }, control: { of: 'gateway', keys: 'limited' } },
}

const READY: Bound = { must: 5 }
const PEAK: Bound = { must: 512 }
/** The gateway reads the mounted folder again and again, so its memory may peak after the start, ms. */
const SETTLED_AFTER_MS = 10_000

/** p99 of the well-behaved clients during an attack, as a multiple of their p99 without one. */
const P99_RATIO: Bound = { must: 5, aim: 2 }
/** The same beside sound files of 25 MB for a slow model server. */
const LARGE_FILES_RATIO: Bound = { must: 3 }
/** The same beside images of 20 MB for a model whose messages are translated, and 100 such streams. */
const LARGE_IMAGES_RATIO: Bound = { must: 3 }
/** Heap after an attack and a forced garbage collection, as a multiple of that before the first one. */
const HEAP_RATIO: Bound = { must: 1.1 }
const MAX_SHED = 0.001
const NONE_SHED: Bound = { must: 0 }

export const REQUEST_PARTS: readonly Part[] = [
  comparing({
    ...BESIDE_BARE,
    name: '1.5k-c32',
    about: 'plain calls of 1.5 KB, 32 connections: gateway ÷ a bare proxy (node:http, undici, no policy)',
    bounds: { cpu: { aim: 1.35 } },
  }),
  comparing({ ...BESIDE_BARE, name: '20k-c32', about: 'the same with 20 KB', bodyBytes: 20_000, bounds: { cpu: { aim: 1.4 } } }),
  comparing({
    ...BESIDE_BARE,
    ...{ name: 'sse-c256', about: 'streams of 64 events 20 ms apart, 256 connections, per event: gateway ÷ bare proxy' },
    ...{ model: 'stream', connections: 256, bounds: { cpu: { aim: 1.2 } } },
  }),
  comparing({
    ...BESIDE_BARE,
    ...{ name: '401-c32', about: 'a refusal of an unknown key ÷ a forwarded request' },
    ...{ measured: { of: 'gateway', keys: 'unknown' }, control: { of: 'gateway', keys: 'bare' }, bounds: { cpu: { must: 0.6 } } },
  }),
  comparing({
    ...TRANSLATED,
    ...{ name: 'translate', about: 'a translated message of 1.5 KB ÷ the same call as a chat completion, keys with limits' },
    bounds: { cpu: { must: 1.4 } },
  }),
  comparing({
    ...TRANSLATED,
    ...{ name: 'translate-sse', about: 'the same, per streamed event', model: 'stream', connections: 256, bounds: { cpu: { must: 1.5 } } },
  }),
  { name: 'start', needs: 'redis', run: startPart },
  { name: 'attacks', needs: 'redis', run: (site) => attacksPart(site, site.isQuick ? 2 : 10) },
]

interface ColdStart {
  readonly clone: string
  readonly way: 'with Redis' | 'without Redis'
  readonly readySeconds: number
  readonly peakMib: number
}

async function startPart(site: BenchSite): Promise<PartResult> {
  const keys = site.isQuick ? 1_000 : 100_000
  const starts: ColdStart[] = []
  for (let round = 0; round < (site.base === undefined ? 1 : 2); round++) {
    for (const clone of inTurn(clonesOf(site), round)) {
      site.say(`start: ${keys} keys, ${clone.clone}`)
      starts.push(...(await startsOf(site, clone, { keys, folder: join(site.folder, `start-${clone.clone}-${round}`) })))
    }
  }
  const own = starts.filter(({ clone }) => clone === 'this')
  const ready = Math.max(...own.filter(({ way }) => way === 'with Redis').map(({ readySeconds }) => readySeconds))
  const peak = Math.max(...own.map(({ peakMib }) => peakMib))
  const rows = starts.map(({ clone, way, readySeconds, peakMib }) => [clone, way, readySeconds.toFixed(2), peakMib.toFixed(0)])
  const lines = [
    `a gateway that starts with ${keys} keys; without Redis it waits 5 s for a projection first`,
    ...table([['clone', '', 'ready s', 'peak MiB'], ...rows]),
    `  ready with Redis ${shown(ready, READY, 's')}; peak ${shown(peak, PEAK, 'MiB', 0)}`,
  ]
  return { lines, isMissed: breaks(READY, ready) || breaks(PEAK, peak), data: starts }
}

async function startsOf(
  site: BenchSite,
  { clone, root, dist }: Clone,
  { keys, folder }: { keys: number; folder: string },
): Promise<ColdStart[]> {
  const started = new Started(folder)
  try {
    const redis = await started.redis('redis', site.ip)
    await fillRedis(root, {
      redis,
      folder,
      keys: { bare: keys, limited: 0, refused: 0, shared: 0 },
      models: {},
      keyring: join(folder, 'keyring'),
    })
    const withRedis = await coldStart(site, { dist, folder, redis, name: 'with-redis' })
    await redis.stop()
    const withoutRedis = await coldStart(site, { dist, folder, redis, name: 'without-redis' })
    return [
      { clone, way: 'with Redis', ...withRedis },
      { clone, way: 'without Redis', ...withoutRedis },
    ]
  } finally {
    await started.stop()
  }
}

interface StartOrder {
  readonly dist: string
  /** Has the keyring, and the keys that the gateway must know. */
  readonly folder: string
  readonly redis: RedisPart
  readonly name: string
}

async function coldStart(
  { ip }: BenchSite,
  { dist, folder, redis, name }: StartOrder,
): Promise<Pick<ColdStart, 'readySeconds' | 'peakMib'>> {
  const [port = 0, metricsPort = 0] = await freePorts(2)
  const started = new Started(join(folder, name))
  const begin = performance.now()
  const env = { ...gatewayEnv(redis, port, metricsPort), KEYRING_DIR: join(folder, 'keyring') }
  const gateway = await started.process('gateway', [process.execPath, ...imageFlags('gateway'), join(dist, 'gateway.js')], env)
  try {
    const isReady = async (): Promise<boolean> => (await fetch(`http://${ip}:${metricsPort}/readyz`)).ok
    await waitFor('the gateway to be ready', isReady, { deadlineMs: 60_000, everyMs: 20 })
    const readySeconds = (performance.now() - begin) / 1000
    await sleep(SETTLED_AFTER_MS)
    return { readySeconds, peakMib: memoryMib(gateway.pid).peak }
  } finally {
    await started.stop()
  }
}

/** The calls of well-behaved clients beside each attack. `test/integration/last/attacks.test.ts` tests the outcomes. @param seconds of each attack */
export async function attacksPart(site: Pick<BenchSite, 'ip' | 'folder' | 'say'>, seconds: number): Promise<PartResult> {
  const missing = missingForAttacks()
  if (missing !== undefined) return { lines: [`SKIPPED: ${missing}`], isMissed: false, data: null }
  const gateway = await AttackedGateway.start(site)
  try {
    const seen: UnderAttack[] = []
    await gateway.during('all together', seconds) // V8 compiles the code before the first measurement, since compiled code stays in the heap
    for (const attack of ['nothing', ...ATTACKS, 'all together'] as const) {
      site.say(`  ${attack}`)
      seen.push(await gateway.during(attack, seconds))
    }
    return attackReport(seen, gateway)
  } finally {
    await gateway.stop()
  }
}

function attackReport(seen: readonly UnderAttack[], { isRunning, oomKills }: AttackedGateway): PartResult {
  const [undisturbed, ...attacks] = seen
  const ratioOf = ({ times }: UnderAttack): number => quantile(times, 0.99) / quantile(undisturbed?.times ?? [], 0.99)
  const heapOf = ({ heapBytesAfter }: UnderAttack): number => heapBytesAfter / (undisturbed?.heapBytesAfter ?? Number.NaN)
  const isUnharmed = ({ failed, shed, times, inFlightAfter }: UnderAttack): boolean =>
    failed === 0 && shed <= MAX_SHED * times.length && inFlightAfter === 0
  const rows = seen.map((one) => [
    ...[one.attack, String(one.times.length), String(one.failed), String(one.shed)],
    ...[quantile(one.times, 0.99).toFixed(1), ratioOf(one).toFixed(1), (one.rssBytes / 2 ** 20).toFixed(0), heapOf(one).toFixed(2)],
  ])
  const [worst, heap] = [Math.max(...attacks.map(ratioOf)), Math.max(...attacks.map(heapOf))]
  const [files, images] = [besideLarge(attacks, 'large files', ratioOf), besideLarge(attacks, 'large images', ratioOf)]
  const areUnharmed = isRunning && oomKills === 0 && attacks.every(isUnharmed)
  const lines = [
    `one gateway with ${MEMORY_BYTES / 2 ** 20} MiB on one core, ${CLIENTS} well-behaved clients beside each attack`,
    ...table([['attack', 'calls', 'failed', 'shed', 'p99 ms', 'p99 ratio', 'RSS MiB', 'heap ratio'], ...rows]),
    `  the process runs, every call answered, at most 0.1 % shed, nothing left in flight: ${areUnharmed ? 'held' : 'MISSED'}`,
    `  worst p99 ratio ${shown(worst, P99_RATIO)}; largest heap ratio ${shown(heap, HEAP_RATIO, '', 2)}`,
    `  beside large files, p99 ratio ${shown(files.ratio, LARGE_FILES_RATIO)}; files that were answered: ${files.answered} (must be some)`,
    `  beside large images, p99 ratio ${shown(images.ratio, LARGE_IMAGES_RATIO)}; calls shed ${shown(images.shed, NONE_SHED, '', 0)}; images that were answered: ${images.answered} (must be some)`,
  ]
  const areBroken = [
    ...[breaks(P99_RATIO, worst), breaks(HEAP_RATIO, heap), breaks(LARGE_FILES_RATIO, files.ratio), files.answered === 0],
    ...[breaks(LARGE_IMAGES_RATIO, images.ratio), breaks(NONE_SHED, images.shed), images.answered === 0],
  ]
  const isMissed = !areUnharmed || areBroken.includes(true)
  return { lines, isMissed, data: seen }
}

/** The calls of the well-behaved clients beside an attack with large bodies, and how many of those bodies were answered. */
function besideLarge(
  attacks: readonly UnderAttack[],
  name: 'large files' | 'large images',
  ratioOf: (attack: UnderAttack) => number,
): { readonly ratio: number; readonly shed: number; readonly answered: number } {
  const found = attacks.find(({ attack }) => attack === name)
  if (found === undefined) throw new RangeError(`the attack ${name} did not run`)
  return { ratio: ratioOf(found), shed: found.shed, answered: name === 'large files' ? found.filesAnswered : found.imagesAnswered }
}
