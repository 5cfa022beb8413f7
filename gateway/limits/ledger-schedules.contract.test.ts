import { expect, test } from 'vitest'
import { LedgerModel, type LedgerStep } from '../../test/support/ledger-model.ts'
import { runSchedules } from '../../test/support/ledger-schedules.ts'

/** `SEED=… make contract` repeats a run; the property tests run more of them. */
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const RUNS = 200

test(`#27639: ${RUNS} random schedules with losses and deaths exceed no limit and count every amount once (SEED=${SEED})`, async () => {
  expect(await runSchedules('lost and late replies, and processes that die', { seed: SEED, runs: RUNS, maxSteps: 16 })).toBeGreaterThan(
    RUNS,
  )
})

const reserve = (process: number, micros = 0): LedgerStep => ({ do: 'reserve', process, tokens: 0, micros })
const settle = (percent: number, pick = 0): LedgerStep => ({ do: 'settle', pick, percent })

test('L7 spend that a process has learned under a new seed counts once, although the store goes back before every report has arrived', async () => {
  await new LedgerModel(4).run([
    ...[reserve(0), reserve(1, 241), reserve(3, 1_760), settle(0), { do: 'save' } as const],
    ...[settle(100), reserve(0), reserve(0, 1), settle(0), settle(100), { do: 'go back' } as const],
    ...[{ do: 'cut off', process: 0 } as const, { do: 'release', pick: 0 } as const, reserve(0), { do: 'save' } as const],
    ...[reserve(3), reserve(0), { do: 'go back' } as const],
  ])
})

test('L7 a store that is emptied twice, before every report under the first new seed has arrived, loses no spend', async () => {
  const wait = { do: 'advance', ms: 0 } as const
  await new LedgerModel(2).run([
    ...[reserve(0, 1), reserve(0), settle(0, 3), settle(100), { do: 'wipe' } as const, { do: 'wipe' } as const],
    ...[reserve(0), reserve(1, 4), settle(30, 3), reserve(0), reserve(0), wait, reserve(0), wait, reserve(0), settle(0)],
  ])
})
