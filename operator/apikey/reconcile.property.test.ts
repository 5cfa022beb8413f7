import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'vitest'
import type { ApiKeySpec } from '../api/apikey.ts'
import { type Happening, KeyStory } from '../../test/support/key-story.ts'

/** `SEED=… make property` repeats a run; `PROPERTY_MS=…` makes it longer. */
const SEED = Number(process.env.SEED ?? randomInt(2 ** 31))
const BUDGET_MS = Number(process.env.PROPERTY_MS ?? 15_000)

const name = fc.constantFrom('a', 'b', 'c')
const spec: fc.Arbitrary<Partial<ApiKeySpec>> = fc.record(
  {
    state: fc.constantFrom<ApiKeySpec['state']>('Active', 'Active', 'Suspended', 'Revoked'),
    models: fc.constantFrom<string[]>(['*'], ['llama-*', 'qwen']),
    expirationTime: fc.constantFrom('2026-01-01T00:10:00Z', '2026-01-03T00:00:00Z', '2030-01-01T00:00:00Z'),
    secret: fc.constantFrom({ retention: 'Keep', name: 'taken' } as const, { retention: 'Keep' } as const),
  },
  { requiredKeys: [] },
)
const kill = fc.record({ write: fc.nat({ max: 8 }), when: fc.constantFrom('before', 'after', 'late') })

const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ on: fc.constant('apply'), name, spec }) },
  { weight: 3, arbitrary: fc.record({ on: fc.constant('delete'), name }) },
  { weight: 3, arbitrary: fc.record({ on: fc.constantFrom('delete Secret', 'edit Secret', 'delete by force'), name }) },
  { weight: 5, arbitrary: fc.record({ on: fc.constant('kill'), kill }) },
  { weight: 2, arbitrary: fc.record({ on: fc.constantFrom('restart', 'late calls arrive', 'settle') }) },
  { weight: 4, arbitrary: fc.record({ on: fc.constantFrom('store down', 'store up', 'store wiped', 'snapshot', 'stale failover') }) },
  { weight: 2, arbitrary: fc.record({ on: fc.constantFrom('lose shard', 'damage shard'), shard: fc.nat({ max: 1 }) }) },
  { weight: 1, arbitrary: fc.record({ on: fc.constantFrom('pod silent', 'pod well') }) },
  { weight: 1, arbitrary: fc.record({ on: fc.constant('time passes'), seconds: fc.constantFrom(61, 3_600, 90_000) }) },
)

/** What becomes of the process in an outage. */
const FATES: Record<'lives' | 'restarts' | 'dies', Happening[]> = {
  lives: [],
  restarts: [{ on: 'restart' }],
  dies: [{ on: 'kill', kill: { write: 0, when: 'before' } }],
}
/** Rare in random order, and what outages are made of: something is asked for that cannot be carried out, and perhaps the process ends. */
const outage = fc
  .record({
    name,
    spec,
    seconds: fc.constantFrom(0, 61, 90_000),
    during: fc.constantFrom('delete', 'delete by force', 'apply'),
    fate: fc.constantFrom('lives', 'restarts', 'dies'),
  })
  .map(({ name: of, spec: to, seconds, during, fate }): Happening[] => [
    { on: 'apply', name: of, spec: {} },
    { on: 'store down' },
    during === 'apply' ? { on: 'apply', name: of, spec: to } : { on: during, name: of },
    { on: 'time passes', seconds },
    ...FATES[fate],
    { on: 'store up' },
  ])
const day = fc.oneof({ weight: 12, arbitrary: happening.map((one) => [one]) }, { weight: 1, arbitrary: outage })

test(
  `whatever users do and whatever befalls the operator, every promise about keys holds (SEED=${SEED})`,
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(day, { minLength: 1, maxLength: 14 }), async (days) => {
        const story = new KeyStory()
        try {
          await story.begin()
          for (const one of days.flat()) await story.happens(one)
          await story.end()
        } finally {
          story.stop()
        }
      }),
      { seed: SEED, numRuns: 10_000, interruptAfterTimeLimit: BUDGET_MS, markInterruptAsFailure: false },
    )
  },
  BUDGET_MS + 60_000,
)
