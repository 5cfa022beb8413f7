/** Random schedules of several processes with one ledger, with failures of the store. */
import fc from 'fast-check'
import { LedgerModel, type LedgerStep, type StoreEvent } from './ledger-model.ts'

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
const oldState = fc.constantFrom('save' as const, 'go back' as const, 'checkpoint' as const, 'reach' as const).map((one) => ({ do: one }))
const cutOff = fc.record({ do: fc.constant('cut off' as const), process: fc.nat({ max: 4 }) })

const usual = [
  { arbitrary: reserve, weight: 12 },
  { arbitrary: settle, weight: 6 },
  { arbitrary: release, weight: 1 },
  { arbitrary: advance, weight: 5 },
]
type Weighted = { arbitrary: fc.Arbitrary<LedgerStep>; weight: number }
const schedules =
  (...more: Weighted[]) =>
  (maxLength: number): fc.Arbitrary<LedgerStep[]> =>
    fc.array(fc.oneof(...usual, ...more), { minLength: 10, maxLength, size: 'max' })

export const SCHEDULES = {
  'limits that change': schedules({ arbitrary: limit, weight: 1 }),
  'lost and late replies, and processes that die': schedules(
    { arbitrary: fail, weight: 3 },
    { arbitrary: letGo, weight: 2 },
    { arbitrary: crash, weight: 1 },
  ),
  'a store that is wiped': schedules({ arbitrary: wipe, weight: 1 }),
  'a store that goes back, and processes that are cut off': schedules({ arbitrary: oldState, weight: 5 }, { arbitrary: cutOff, weight: 1 }),
} as const

export interface ScheduleRuns {
  readonly seed: number
  readonly runs: number
  /** Longest schedule; 80 if absent. */
  readonly maxSteps?: number
  readonly onJournal?: (journal: readonly StoreEvent[]) => Promise<void>
}

/**
 * Runs schedules. fast-check prints the seed and the shrunk schedule of a failure.
 * @returns how many requests were admitted in all of them
 */
export async function runSchedules(kind: keyof typeof SCHEDULES, { seed, runs, maxSteps = 80, onJournal }: ScheduleRuns): Promise<number> {
  let admitted = 0
  const property = fc.asyncProperty(fc.integer({ min: 1, max: 5 }), SCHEDULES[kind](maxSteps), async (processes, schedule) => {
    const model = new LedgerModel(processes)
    await model.run(schedule)
    admitted += model.admitted
    await onJournal?.(model.world.store.journal)
  })
  await fc.assert(property, { seed, numRuns: runs })
  return admitted
}
