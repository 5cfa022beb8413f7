/**
 * Many plain calls at once to a real llama-server with its default number of HTTP threads, directly and through the gateway in turn.
 * Such a server keeps a thread for each connection that is kept alive, so idle connections of a proxy can hold all of them.
 */
import { Agent, request } from 'undici'
import { setTimeout as sleep } from 'node:timers/promises'
import { ModelServerPart, UPSTREAM_MODEL } from '../support/model-server-part.ts'
import { type PartResult, type Progress, skippedPart } from './operator-parts.ts'
import { missingControlPlane, withStack, type OwnLabSite } from './own-lab.ts'
import { table } from './table.ts'

/** State of the connections before the burst. */
const BEFORE = ['6 s of rest', '200 calls one by one'] as const
type Before = (typeof BEFORE)[number]
const WAYS = ['direct', 'gateway'] as const
type Way = (typeof WAYS)[number]

const AT_ONCE = 50
const ONE_BY_ONE = 200
const REST_MS = 6_000
/** A burst whose slowest call takes longer counts as stalled, ms. */
const STALLED_MS = 2_000
/** The gateway may stall this many more bursts than direct calls: a difference of one is chance. */
const TOLERATED = 1
const MODEL = 'bursts'

/** One burst. */
interface Burst {
  readonly before: Before
  readonly way: Way
  /** Time of the slowest call, ms. */
  readonly slowestMs: number
  /** Calls that were not answered with 200. */
  readonly failed: number
}

interface Target {
  readonly url: string
  readonly model: string
  readonly credential: string
}

/** @param trials bursts for each state of the connections, directly and through the gateway */
export async function burstsPart(site: OwnLabSite, trials: number, say: Progress): Promise<PartResult> {
  const missing = missingControlPlane()
  if (missing !== undefined) return skippedPart('bursts', missing)
  const server = await ModelServerPart.start(site.folder, site.ip, undefined)
  try {
    const own = { ...site, modelServer: { url: server.url, port: server.port } }
    return await withStack(own, { gateways: 1 }, async (stack) => {
      await stack.serveModel(MODEL)
      const credential = await stack.issueKey('bursts', { models: [MODEL] })
      const targets = {
        direct: { url: server.url, model: UPSTREAM_MODEL, credential: 'none-needed' },
        gateway: { url: stack.gateway.url, model: MODEL, credential },
      }
      return report(await runTrials(targets, trials, say), trials)
    })
  } finally {
    await server.stop()
  }
}

async function runTrials(targets: Readonly<Record<Way, Target>>, trials: number, say: Progress): Promise<Burst[]> {
  const bursts: Burst[] = []
  for (const before of BEFORE) {
    for (let trial = 0; trial < trials; trial++) {
      for (const way of WAYS) bursts.push(await burst(before, way, targets[way]))
      const [direct, gateway] = bursts.slice(-2).map(({ slowestMs }) => `${(slowestMs / 1000).toFixed(2)} s`)
      say(`  ${AT_ONCE} calls after ${before}, trial ${trial + 1} of ${trials}: slowest direct ${direct}, gateway ${gateway}`)
    }
  }
  return bursts
}

async function burst(before: Before, way: Way, target: Target): Promise<Burst> {
  const agent = new Agent() // a new client per trial
  const call = async (): Promise<boolean> => (await statusOf(target, agent)) === 200
  let failed = 0
  if (before === '6 s of rest') await sleep(REST_MS)
  else for (let i = 0; i < ONE_BY_ONE; i++) failed += (await call()) ? 0 : 1
  const started = performance.now()
  const answers = await Promise.all(Array.from({ length: AT_ONCE }, call))
  const slowestMs = performance.now() - started
  await agent.close()
  return { before, way, slowestMs, failed: failed + answers.filter((isAnswered) => !isAnswered).length }
}

async function statusOf({ url, model, credential }: Target, dispatcher: Agent): Promise<number> {
  const body = JSON.stringify({ model, max_tokens: 3, messages: [{ role: 'user', content: 'Say something.' }] })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${credential}` }
  const answer = await request(`${url}/v1/chat/completions`, { method: 'POST', headers, body, dispatcher })
  await answer.body.dump()
  return answer.statusCode
}

function report(bursts: readonly Burst[], trials: number): PartResult {
  const of = (before: Before, way: Way): Burst[] => bursts.filter((one) => one.before === before && one.way === way)
  const stalled = (before: Before, way: Way): number => of(before, way).filter(({ slowestMs }) => slowestMs > STALLED_MS).length
  const rows = BEFORE.flatMap((before) =>
    WAYS.map((way) => {
      const seconds = of(before, way).map(({ slowestMs }) => slowestMs / 1000)
      const failed = of(before, way).reduce((sum, one) => sum + one.failed, 0)
      return [before, way, `${stalled(before, way)} of ${trials}`, Math.max(...seconds).toFixed(2), String(failed)]
    }),
  )
  const isMissed = BEFORE.some((before) => stalled(before, 'gateway') > stalled(before, 'direct') + TOLERATED)
  const text = [
    `bursts: ${AT_ONCE} plain calls at once to a llama-server with its default number of HTTP threads`,
    ...table([['after', 'way', `bursts over ${STALLED_MS / 1000} s`, 'slowest s', 'failed calls'], ...rows]),
    `  stalled bursts through the gateway: must <= direct + ${TOLERATED}: ${isMissed ? 'MISSED' : 'held'}`,
  ].join('\n')
  return { text, isMissed, data: bursts }
}
