import { expect, test } from 'vitest'
import { held, LedgerWorld, need, subject, usage } from '../../test/support/ledger-world.ts'
import { SeededRandom } from '../../test/support/seeded-random.ts'
import { MemoryLedgerStore } from './memory-ledger.ts'

const LIMIT = 300
const MINUTE_MS = 60_000
const STEP_MS = 100
const PROCESSES = 4

/** Error of the store's clock in ms at a time of the test. */
type ClockError = (atMs: number) => number

/** Times of the admissions of four processes at three times the limit. */
async function admissions(minutes: number, error: ClockError): Promise<number[]> {
  const world = new LedgerWorld()
  const store = new MemoryLedgerStore(() => world.clock.now() + error(world.clock.monotonic()))
  const ledgers = Array.from({ length: PROCESSES }, () => world.process({ store }))
  world.live = PROCESSES
  const key = subject({ limits: { requestsPerMinute: LIMIT } })
  const times: number[] = []
  for (let step = 0; step < (minutes * MINUTE_MS) / STEP_MS; step += 1) {
    const ledger = ledgers[step % PROCESSES]!
    for (let call = 0; call < 2; call += 1) {
      const verdict = await ledger.reserve([key], need())
      if (verdict.outcome !== 'held') continue
      times.push(world.clock.monotonic())
      ledger.settle(held(verdict), usage())
    }
    await world.advance(STEP_MS)
  }
  return times
}

/** Maximum number of admissions in any 60 s. */
function most(times: readonly number[]): number {
  let from = 0
  return times.reduce((max, time, to) => {
    while ((times[from] ?? 0) <= time - MINUTE_MS) from += 1
    return Math.max(max, to - from + 1)
  }, 0)
}

/** After this time every process has asked once: only then does it know the time. */
const KNOWN_MS = 5_000
const random = new SeededRandom(7)
const jitter = Array.from({ length: 10_000 }, () => random.below(8_001) - 4_000)

test.each<[string, ClockError]>([
  ['jumps forward by 30 s', (atMs) => (atMs < 90_000 ? 0 : 30_000)],
  ['is set back by 30 s', (atMs) => (atMs < 90_000 ? 0 : -30_000)],
  ['jitters by 4 s', (atMs) => (atMs < KNOWN_MS ? 0 : (jitter[Math.floor(atMs / STEP_MS) % jitter.length] ?? 0))],
  ['is right', () => 0],
])('L2 while the clock of the store %s, no minute exceeds the limit, and nine tenths of it are used', async (_what, error) => {
  const times = await admissions(5, error)
  expect(most(times)).toBeLessThanOrEqual(LIMIT)
  expect(times.length / (5 * LIMIT)).toBeGreaterThan(0.9)
})
