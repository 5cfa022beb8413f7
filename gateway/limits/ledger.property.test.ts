/** Random schedules: whatever is admitted, lost, late, killed or wiped, the limits hold and every amount counts once. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LedgerModel, type LedgerStep } from '../../test/support/ledger-model.ts'

/** `SEED=… make property` repeats a run; `LEDGER_RUNS=…` makes it longer. */
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const RUNS = Number(process.env.LEDGER_RUNS ?? 200)

const pick = fc.nat({ max: 9 })
const reserve = fc.record({
  do: fc.constant('reserve' as const),
  process: pick,
  tokens: fc.oneof(fc.nat({ max: 120 }), fc.nat({ max: 700 })),
  micros: fc.oneof(fc.nat({ max: 100 }), fc.nat({ max: 2_000 })),
})
const settle = fc.record({ do: fc.constant('settle' as const), pick, percent: fc.constantFrom(0, 30, 100, 130) })
const release = fc.record({ do: fc.constant('release' as const), pick })
const advance = fc.record({ do: fc.constant('advance' as const), ms: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 7_000 })) })
const limit = fc.record({
  do: fc.constant('limit' as const),
  requests: fc.integer({ min: 1, max: 20 }),
  tokens: fc.integer({ min: 1, max: 800 }),
})
const fail = fc.record({
  do: fc.constant('fail' as const),
  fate: fc.constantFrom('reply lost' as const, 'never arrives' as const, 'hangs' as const),
  calls: fc.integer({ min: 1, max: 3 }),
})
const letGo = fc.constant({ do: 'let go' as const })
const crash = fc.record({ do: fc.constant('crash' as const), process: pick })
const wipe = fc.constant({ do: 'wipe' as const })

const usual = [
  { arbitrary: reserve, weight: 12 },
  { arbitrary: settle, weight: 6 },
  { arbitrary: release, weight: 1 },
  { arbitrary: advance, weight: 5 },
]
const schedules = (...more: Array<{ arbitrary: fc.Arbitrary<LedgerStep>; weight: number }>): fc.Arbitrary<LedgerStep[]> =>
  fc.array(fc.oneof(...usual, ...more), { minLength: 10, maxLength: 80, size: 'max' })

async function holds(steps: fc.Arbitrary<LedgerStep[]>): Promise<number> {
  let admitted = 0
  const property = fc.asyncProperty(fc.integer({ min: 1, max: 5 }), steps, async (processes, schedule) => {
    const model = new LedgerModel(processes)
    await model.run(schedule)
    admitted += model.admitted
  })
  await fc.assert(property, { seed: SEED, numRuns: RUNS })
  return admitted
}

describe(`in ${RUNS} random schedules (SEED=${SEED})`, () => {
  test('no rolling window, no count of permits and no budget is ever exceeded', async () => {
    expect(await holds(schedules({ arbitrary: limit, weight: 1 }))).toBeGreaterThan(RUNS)
  })

  test('#27639, #28283, #30460, #36926, #40050: lost and late replies, and processes that die, change nothing of it', async () => {
    expect(
      await holds(schedules({ arbitrary: fail, weight: 3 }, { arbitrary: letGo, weight: 2 }, { arbitrary: crash, weight: 1 })),
    ).toBeGreaterThan(RUNS)
  })

  test('a store that is wiped learns every spend again, and none twice', async () => {
    expect(await holds(schedules({ arbitrary: wipe, weight: 1 }))).toBeGreaterThan(RUNS)
  })
})
