import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { describe, test } from 'vitest'
import { CREDIT_SCHEDULES, playCredits } from '../../test/support/credit-schedules.ts'

/** `SEED=… make property` repeats a run; `BALANCE_RUNS=…` is the number of schedules of each kind. */
const SEED = Number(process.env.SEED ?? randomInt(2 ** 31))
const RUNS = Number(process.env.BALANCE_RUNS ?? 300)
/** Schedules with the codecs of production, which take ten times as long. */
const PACKED_RUNS = Math.ceil(RUNS / 15)

describe.each(Object.entries(CREDIT_SCHEDULES))('%s', (_, schedules) => {
  test(`lose no spend and no Credit, count none twice, and make no money (SEED=${SEED})`, async () => {
    await fc.assert(
      fc.asyncProperty(schedules, (schedule) => playCredits(schedule)),
      { seed: SEED, numRuns: RUNS },
    )
  })

  test(`the same holds with compressed Secrets (SEED=${SEED})`, async () => {
    await fc.assert(
      fc.asyncProperty(schedules, (schedule) => playCredits(schedule, { isPacked: true })),
      { seed: SEED + 1, numRuns: PACKED_RUNS },
    )
  })
})
