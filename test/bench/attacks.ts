/** Measures the calls of well-behaved clients during attacks on a gateway. `test/integration/last/attacks.test.ts` tests everything else. */
import { ATTACKS } from '../support/attacks/attack-protocol.ts'
import {
  AttackedGateway,
  type AttackedSite,
  CLIENTS,
  MEMORY_BYTES,
  missingForAttacks,
  type UnderAttack,
} from '../support/attacks/attacked-gateway.ts'
import { type PartResult, type Progress, skippedPart } from './operator-parts.ts'
import { type Bound, compared } from './operator-report.ts'
import { quantile } from './statistics.ts'
import { table } from './table.ts'

/** p99 of the well-behaved clients during an attack, as a multiple of their p99 without one. */
const P99_RATIO: Bound = { name: 'p99', unit: '', must: 5, aim: 2 }
/** Heap after an attack and a forced garbage collection, as a multiple of that before the first one. */
const HEAP_RATIO: Bound = { name: 'heap', unit: '', must: 1.1 }
const MOST_SHED = 0.001

/** @param seconds of each attack */
export async function attacksPart(site: AttackedSite, seconds: number, say: Progress): Promise<PartResult> {
  const missing = missingForAttacks()
  if (missing !== undefined) return skippedPart('attacks', missing)
  const gateway = await AttackedGateway.start(site)
  try {
    const seen: UnderAttack[] = []
    await gateway.during('all together', seconds) // V8 compiles the code before the first measurement, since compiled code stays in the heap
    for (const attack of ['nothing', ...ATTACKS, 'all together'] as const) {
      const result = await gateway.during(attack, seconds)
      const p99 = quantile(result.times, 0.99).toFixed(0)
      say(`  ${attack}: p99 ${p99} ms of ${result.times.length} calls, ${result.failed} failed, ${result.shed} shed`)
      seen.push(result)
    }
    return report(seen, gateway)
  } finally {
    await gateway.stop()
  }
}

const isUnharmed = ({ failed, shed, times, inFlightAfter }: UnderAttack): boolean =>
  failed === 0 && shed <= MOST_SHED * times.length && inFlightAfter === 0

function report(seen: readonly UnderAttack[], { isRunning, oomKills }: AttackedGateway): PartResult {
  const [undisturbed, ...attacks] = seen
  const ratioOf = ({ times }: UnderAttack): number => quantile(times, 0.99) / quantile(undisturbed?.times ?? [], 0.99)
  const heapOf = ({ heapBytesAfter }: UnderAttack): number => heapBytesAfter / (undisturbed?.heapBytesAfter ?? NaN)
  const rows = seen.map((one) => {
    const times = [quantile(one.times, 0.5), quantile(one.times, 0.99), ratioOf(one)].map((time) => time.toFixed(1))
    const memory = [(one.rssBytes / 2 ** 20).toFixed(0), heapOf(one).toFixed(2)]
    return [one.attack, ...[one.times.length, one.failed, one.shed].map(String), ...times, ...memory, String(one.inFlightAfter)]
  })
  const head = ['attack', 'calls', 'failed', 'row 25', 'p50 ms', 'p99 ms', 'p99 ratio', 'RSS MiB', 'heap ratio', 'in flight 5 s later']
  const [worst, heap] = [Math.max(...attacks.map(ratioOf)), Math.max(...attacks.map(heapOf))]
  const areUnharmed = attacks.every(isUnharmed)
  const text = [
    `attacks: one gateway with ${MEMORY_BYTES / 2 ** 20} MiB on one core, ${CLIENTS} well-behaved clients beside each attack`,
    ...table([head, ...rows]),
    `  the process ${isRunning ? 'still runs' : 'has ENDED'}; killed for memory: ${oomKills}`,
    `  every call answered, at most 0.1 % shed, nothing left in flight: ${areUnharmed ? 'held' : 'MISSED'}`,
    `  worst p99, as a multiple of the p99 without an attack: ${compared(P99_RATIO, worst)}`,
    `  largest heap 5 s after an attack, as a multiple of the heap without one: ${compared(HEAP_RATIO, heap)}`,
  ].join('\n')
  const isMissed = !isRunning || oomKills > 0 || !areUnharmed || worst > P99_RATIO.must || heap > HEAP_RATIO.must
  return { text, isMissed, data: seen }
}
