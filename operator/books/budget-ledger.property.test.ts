import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'vitest'
import { type SpendHappening, SpendStory } from '../../test/support/spend-story.ts'

/** `SEED=… make property` repeats a run; `PROPERTY_MS=…` makes it longer. */
const SEED = Number(process.env.SEED ?? randomInt(2 ** 31))
const BUDGET_MS = Number(process.env.PROPERTY_MS ?? 15_000)
/** Stories that run however slow the machine is; more follow until the time is over. */
const AT_LEAST = 20

const name = fc.constantFrom('a', 'b')
const happening: fc.Arbitrary<SpendHappening> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ on: fc.constant('spend'), name, amount: fc.integer({ min: 1, max: 400 }) }) },
  { weight: 6, arbitrary: fc.record({ on: fc.constant('time passes'), seconds: fc.constantFrom(1, 2, 5, 12, 70) }) },
  { weight: 2, arbitrary: fc.record({ on: fc.constantFrom('forge', 'damage', 'delete', 'edit'), name }) },
  { weight: 4, arbitrary: fc.record({ on: fc.constantFrom('wipe', 'functions lost', 'restart', 'store down', 'store up') }) },
  { weight: 2, arbitrary: fc.record({ on: fc.constant('kill'), write: fc.nat({ max: 4 }), when: fc.constantFrom('before', 'after') }) },
)

async function play(happenings: readonly SpendHappening[]): Promise<void> {
  const story = new SpendStory()
  try {
    await story.begin()
    for (const one of happenings) await story.happens(one)
    await story.end()
  } finally {
    await story.stop()
  }
}

const stories = fc.array(happening, { minLength: 1, maxLength: 16 })

test(
  `after any failures of Redis and the operator, no durable spend is lost and none counts twice (SEED=${SEED})`,
  async () => {
    const endsAt = performance.now() + BUDGET_MS
    let count = 0
    const property = fc.asyncProperty(stories, async (happenings) => {
      count += 1
      if (count <= AT_LEAST || performance.now() < endsAt) await play(happenings)
    })
    await fc.assert(property, { seed: SEED, numRuns: 2_000 })
  },
  BUDGET_MS + 300_000,
)

test.each([1, 2, 3])('the same holds in the stories of seed %i, which are the same in every run', async (seed) => {
  await fc.assert(fc.asyncProperty(stories, play), { seed, numRuns: 5 })
})
