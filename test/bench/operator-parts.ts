/** The parts of `make bench` that measure the operator: each starts a control plane of its own. */
import { issuingRound, warmUp, type IssuingRound } from './issuing.ts'
import { isIssuingMissed, isStormMissed, renderIssuing, renderStorms, stormP99 } from './operator-report.ts'
import { missingControlPlane, withControlPlane, type OwnLabSite } from './own-lab.ts'
import { runStorm, type StormPlan, type StormResult } from './storm.ts'

/** The result of a part. */
export interface PartResult {
  readonly text: string
  /** Whether a limit was broken. */
  readonly isMissed: boolean
  /** Everything that was measured, for the JSON beside the report. */
  readonly data: unknown
}

/** Prints a line of progress. */
export type Progress = (line: string) => void

/** How many storms, and of what size. */
export interface StormOptions {
  readonly storms: number
  readonly keys: number
  /** Keys that are ended in each storm. */
  readonly probes: number
}

/** Namespaces of every storm but the last, which uses only one. */
const NAMESPACES = 5
/** Keys that are ended before each storm. */
const IDLE_PROBES = 20

/** Storms with two gateways, or with a third one that is stopped. */
export async function stormPart(site: OwnLabSite, options: StormOptions, hasStoppedGateway: boolean, say: Progress): Promise<PartResult> {
  const name = hasStoppedGateway ? 'storm-stopped' : 'storm'
  const missing = missingControlPlane()
  if (missing !== undefined) return skippedPart(name, missing)
  const { storms, keys, probes } = options
  const plans = Array.from({ length: storms }, (_, i): StormPlan => {
    const namespaces = storms > 1 && i === storms - 1 ? 1 : NAMESPACES
    return { name: `${name}-${i}`, keys, namespaces, probes, idleProbes: IDLE_PROBES, hasStoppedGateway }
  })
  return withControlPlane(
    site,
    async (plane) => {
      const results: StormResult[] = []
      for (const plan of plans) {
        say(`${plan.name}: ${plan.keys} ApiKeys over ${plan.namespaces} namespaces, ${plan.probes} keys ended during the storm`)
        const result = await runStorm(site, plane, plan)
        say(
          `  p99 ${stormP99([result]).toFixed(0)} ms; all statuses after ${result.describedSeconds?.toFixed(1) ?? 'more than the deadline'} s`,
        )
        results.push(result)
      }
      return { text: renderStorms(results), isMissed: isStormMissed(results), data: results }
    },
    `${name}-control-plane`,
  )
}

/** The numbers of keys, and the rounds for each number. */
export interface IssuingOptions {
  readonly keys: readonly number[]
  readonly rounds: number
}

/** Measures All Ready ÷ bare. */
export async function issuingPart(site: OwnLabSite, { keys, rounds }: IssuingOptions, say: Progress): Promise<PartResult> {
  const missing = missingControlPlane()
  if (missing !== undefined) return skippedPart('issuing', missing)
  return withControlPlane(
    site,
    async (plane) => {
      const results: IssuingRound[] = []
      await warmUp(plane)
      for (const count of keys) {
        for (let round = 0; round < rounds; round++) {
          say(`issuing: ${count} ApiKeys, bare and by the operator, round ${round + 1} of ${rounds}`)
          const result = await issuingRound({ site, plane }, count, `issuing-${count}-${round}`)
          say(`  bare ${result.bare.seconds.toFixed(1)} s, all Ready ${result.operator.seconds.toFixed(1)} s`)
          results.push(result)
        }
      }
      const data = results.map(({ keys: count, bare, operator }) => ({ keys: count, bare: plain(bare), operator: plain(operator) }))
      return { text: renderIssuing(results), isMissed: isIssuingMissed(results), data }
    },
    'issuing-control-plane',
  )
}

/** A part that cannot run here. */
export function skippedPart(name: string, reason: string): PartResult {
  return { text: `${name}: SKIPPED: ${reason}`, isMissed: false, data: null }
}

/** Turns maps into objects, since JSON has no maps. */
function plain(measured: object): Record<string, unknown> {
  const entries = Object.entries(measured).map(([name, value]: [string, unknown]) => [
    name,
    value instanceof Map ? Object.fromEntries(value) : value,
  ])
  return Object.fromEntries(entries) as Record<string, unknown>
}
