import { expect, test } from 'vitest'
import { runSchedules } from '../../test/support/ledger-schedules.ts'

/** `SEED=… make unit` repeats a run; the property tests run more of them. */
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const RUNS = 200

test(`#27639: ${RUNS} random schedules with losses and deaths exceed no limit and count every amount once (SEED=${SEED})`, async () => {
  expect(await runSchedules('lost and late replies, and processes that die', { seed: SEED, runs: RUNS, maxSteps: 16 })).toBeGreaterThan(
    RUNS,
  )
})
