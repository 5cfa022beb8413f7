/**
 * Conservation on a real API server and a real Redis: random payments, requests, edits and failures, and at rest what was paid minus what was
 * spent is the balance, exactly.
 */
import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { LEDGER_TIMING } from '#contract/ledger/ledger-layout.ts'
import type { KubePort } from '#kube/port.ts'
import { CREDIT_SCHEDULES, type CreditStep } from '../support/credit-schedules.ts'
import { openLab } from '../support/lab.ts'
import { LedgerRedis } from '../support/ledger-redis.ts'
import { realKubePort } from '../support/real-credit-books.ts'
import { playReal } from '../support/real-credit-schedules.ts'
import { RealCreditWorld } from '../support/real-credit-world.ts'

/** `SEED=…` repeats a run; `CREDIT_RUNS=…` is the number of schedules of each kind. */
const SEED = Number(process.env.SEED ?? randomInt(2 ** 31))
const RUNS = Number(process.env.CREDIT_RUNS ?? 12)
/** Schedules that run at once, each on a Redis of its own. */
const AT_ONCE = 4

const lab = openLab()
let kube: KubePort

beforeAll(async () => {
  const plane = await lab.ownControlPlane() // operators of other tests would book the same Credits
  kube = realKubePort(plane.adminKubeconfig)
}, 60_000)

let admitted = 0

const kinds = Object.entries(CREDIT_SCHEDULES).filter(([kind]) => !kind.endsWith('and older Secrets'))

test.each(kinds)(
  `%s: lose no spend and no Credit, count none twice, and make no money (SEED=${SEED})`,
  { timeout: 600_000 },
  async (kind, schedules) => {
    const left = fc
      .sample(schedules, { seed: SEED, numRuns: RUNS })
      .map((steps, at) => ({ steps, id: `s${kinds.findIndex(([one]) => one === kind)}x${at}` }))
    const seen = { admitted: 0, failures: [] as string[] }
    await Promise.all(Array.from({ length: AT_ONCE }, () => runOfEach(left, seen)))
    expect(seen.failures).toEqual([])
    admitted += seen.admitted
  },
)

test('the schedules of all kinds together admit many requests', () => {
  expect(admitted).toBeGreaterThan(3 * RUNS)
})

interface Run {
  readonly id: string
  readonly steps: readonly CreditStep[]
}

/** Runs schedules one after another, until none is left. */
async function runOfEach(left: Run[], seen: { admitted: number; readonly failures: string[] }): Promise<void> {
  const redis = await LedgerRedis.start(LEDGER_TIMING, 'set')
  try {
    for (let run = left.shift(); run; run = left.shift()) {
      const world = await RealCreditWorld.open(run.id, kube, redis)
      try {
        await playReal(world, run.steps)
      } catch (error) {
        seen.failures.push(`${run.id}: ${String(error)}\n${run.steps.map((step) => JSON.stringify(step)).join('\n')}`)
      }
      seen.admitted += world.admitted
      await world.stop()
    }
  } finally {
    await redis.stop()
  }
}
