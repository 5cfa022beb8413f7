/**
 * What is charged in the end, on a real Redis: random answers of a model server, processes that are killed or cut off for hours, and keys that
 * are deleted meanwhile.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MoneySchedule, moneySteps } from '../support/money-schedule.ts'
import { MoneyWorld } from '../support/money-world.ts'

/** `SEED=…` repeats a run; `LEDGER_RUNS=…` makes it longer. */
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const RUNS = Number(process.env.LEDGER_RUNS ?? 2_000)

test(
  `${RUNS} random schedules charge what servers report or a marked estimate, never nothing for work, and never twice (SEED=${SEED})`,
  { timeout: 600_000 },
  async () => {
    const world = await MoneyWorld.start()
    let runs = 0
    let calls = 0
    try {
      const property = fc.asyncProperty(moneySteps, async (steps) => {
        world.renew()
        const schedule = new MoneySchedule(world, `run-${(runs += 1)}`)
        await schedule.run(steps)
        calls += schedule.calls
      })
      await fc.assert(property, { seed: SEED, numRuns: RUNS })
      expect(calls).toBeGreaterThan(RUNS)
    } finally {
      await world.redis.stop()
    }
  },
)
