/** Random schedules: with lost and late replies, killed processes and wiped stores, limits hold and every amount counts once. */
import { describe, expect, test } from 'vitest'
import { runSchedules } from '../../test/support/ledger-schedules.ts'

/** `SEED=… make property` repeats a run; `LEDGER_RUNS=…` makes it longer. */
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const RUNS = Number(process.env.LEDGER_RUNS ?? 1_000)

describe(`in ${RUNS} random schedules (SEED=${SEED})`, () => {
  test('no rolling window, no count of permits and no budget is ever exceeded, also while limits change', async () => {
    expect(await runSchedules('limits that change', { seed: SEED, runs: RUNS })).toBeGreaterThan(RUNS)
  })

  test('#27639, #28283, #30460, #36926, #40050: the same holds with lost and late replies, and with processes that die', async () => {
    expect(await runSchedules('lost and late replies, and processes that die', { seed: SEED, runs: RUNS })).toBeGreaterThan(RUNS)
  })

  test('a store that is wiped learns every spend again, and none twice', async () => {
    expect(await runSchedules('a store that is wiped', { seed: SEED, runs: RUNS })).toBeGreaterThan(RUNS)
  })

  test('L7 a store that goes back keeps every checkpoint, and counts no spend twice', async () => {
    expect(await runSchedules('a store that goes back, and processes that are cut off', { seed: SEED, runs: RUNS })).toBeGreaterThan(RUNS)
  })
})
