/** Random schedules: with lost and late replies, dead processes, closed periods and an emptied store, no account spends more than its credits. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BalanceModel, type BalanceStep } from '../../test/support/balance-model.ts'

/** `SEED=… make property` repeats a run; `BALANCE_RUNS=…` makes it longer. */
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const RUNS = Number(process.env.BALANCE_RUNS ?? 300)

const pick = fc.nat({ max: 9 })
const usual = [
  {
    arbitrary: fc.record({
      do: fc.constant('reserve' as const),
      process: pick,
      micros: fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 5_000 })),
    }),
    weight: 12,
  },
  { arbitrary: fc.record({ do: fc.constant('settle' as const), pick, percent: fc.constantFrom(0, 30, 100) }), weight: 6 },
  { arbitrary: fc.record({ do: fc.constant('release' as const), pick }), weight: 1 },
  { arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 7_000 })) }), weight: 5 },
  { arbitrary: fc.record({ do: fc.constant('credit' as const), micros: fc.integer({ min: -3_000, max: 3_000 }) }), weight: 1 },
  { arbitrary: fc.constant({ do: 'read' as const }), weight: 1 },
]
const fail = fc.record({
  do: fc.constant('fail' as const),
  fate: fc.constantFrom('reply lost' as const, 'never arrives' as const, 'hangs' as const),
  calls: fc.integer({ min: 1, max: 3 }),
})
const fold = { arbitrary: fc.record({ do: fc.constant('fold' as const), pick }), weight: 1 }
const failures = [
  { arbitrary: fail, weight: 3 },
  { arbitrary: fc.constant({ do: 'let go' as const }), weight: 2 },
]

async function run(more: ReadonlyArray<{ arbitrary: fc.Arbitrary<BalanceStep>; weight: number }>): Promise<number> {
  let admitted = 0
  const schedules = fc.array(fc.oneof(...usual, ...more), { minLength: 10, maxLength: 60, size: 'max' })
  const property = fc.asyncProperty(fc.integer({ min: 1, max: 4 }), schedules, async (processes, schedule) => {
    const model = new BalanceModel(processes)
    await model.run(schedule)
    admitted += model.admitted
  })
  await fc.assert(property, { seed: SEED, numRuns: RUNS })
  return admitted
}

describe(`in ${RUNS} random schedules (SEED=${SEED})`, () => {
  test('with lost and late replies and closed periods, no balance is overspent, and every cost counts once', async () => {
    expect(await run([...failures, fold])).toBeGreaterThan(RUNS)
  })

  test('the same holds for the living when processes die', async () => {
    expect(
      await run([...failures, fold, { arbitrary: fc.record({ do: fc.constant('crash' as const), process: pick }), weight: 1 }]),
    ).toBeGreaterThan(RUNS)
  })

  test('B8 a store that has lost its data lends no hold of a running request again, and learns every spend once', async () => {
    expect(await run([fold, { arbitrary: fc.constant({ do: 'empty' as const }), weight: 1 }])).toBeGreaterThan(RUNS)
  })
})
