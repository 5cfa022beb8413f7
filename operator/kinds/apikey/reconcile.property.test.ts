import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'vitest'
import type { ApiKeySpec } from '#api/apikey.ts'
import { type Happening, KeyStory } from '../../../test/support/key-story.ts'

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
  { weight: 2, arbitrary: fc.record({ on: fc.constant('apply twice'), name, spec, then: spec }) },
  { weight: 3, arbitrary: fc.record({ on: fc.constantFrom('delete Secret', 'edit Secret', 'delete by force'), name }) },
  { weight: 1, arbitrary: fc.record({ on: fc.constant('newer entry'), name }) },
  { weight: 5, arbitrary: fc.record({ on: fc.constant('kill'), kill }) },
  { weight: 2, arbitrary: fc.record({ on: fc.constantFrom('restart', 'late calls arrive', 'settle') }) },
  { weight: 4, arbitrary: fc.record({ on: fc.constantFrom('store down', 'store up', 'store wiped', 'snapshot', 'stale failover') }) },
  { weight: 2, arbitrary: fc.record({ on: fc.constantFrom('lose shard', 'damage shard'), shard: fc.nat({ max: 1 }) }) },
  { weight: 3, arbitrary: fc.record({ on: fc.constantFrom('watch cut off', 'watch back', 'events doubled', 'answers lost') }) },
  { weight: 2, arbitrary: fc.record({ on: fc.constantFrom('pod silent', 'pod well', 'quota full', 'quota raised') }) },
  { weight: 1, arbitrary: fc.record({ on: fc.constant('time passes'), seconds: fc.constantFrom(61, 3_600, 90_000) }) },
)

/** Fates of the process in an outage. */
const FATES: Record<'lives' | 'restarts' | 'dies', Happening[]> = {
  lives: [],
  restarts: [{ on: 'restart' }],
  dies: [{ on: 'kill', kill: { write: 0, when: 'before' } }],
}
/** A sequence that is rare in random order: a change during an outage of Redis, and perhaps the end of the process. */
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
/** A change while a standby's watch is cut off, and the takeover, which must not undo the change. */
const takeOver = fc
  .record({ name, spec, during: fc.constantFrom('delete', 'delete by force', 'apply') })
  .map(({ name: of, spec: to, during }): Happening[] => [
    { on: 'apply', name: of, spec: {} },
    { on: 'watch cut off' },
    during === 'apply' ? { on: 'apply', name: of, spec: to } : { on: during, name: of },
    { on: 'restart' },
    { on: 'watch back' },
  ])
/** The loss of a part of the keyring while Redis is away, so that only the records there still have some keys. */
const lossInAnOutage = fc
  .record({
    name,
    shard: fc.nat({ max: 1 }),
    seconds: fc.constantFrom(0, 61),
    during: fc.constantFrom('delete Secret', 'delete by force', 'apply'),
    spec,
  })
  .map(({ name: of, shard, seconds, during, spec: to }): Happening[] => [
    { on: 'apply', name: of, spec: {} },
    { on: 'store down' },
    { on: 'lose shard', shard },
    during === 'apply' ? { on: 'apply', name: of, spec: to } : { on: during, name: of },
    { on: 'kill', kill: { write: 9, when: 'before' } },
    { on: 'time passes', seconds },
    { on: 'store up' },
  ])
const day = fc.oneof(
  { weight: 12, arbitrary: happening.map((one) => [one]) },
  { weight: 1, arbitrary: outage },
  { weight: 1, arbitrary: takeOver },
  { weight: 1, arbitrary: lossInAnOutage },
)
const stories = fc.array(day, { minLength: 1, maxLength: 14 })

/** Stories that run however slow the machine is; more follow until the time is over. */
const AT_LEAST = 20

/** Stories that once broke a promise. */
const FORMER: Readonly<Record<string, readonly Happening[]>> = {
  'a standby that has missed a deletion takes over': [
    { on: 'apply', name: 'a', spec: {} },
    { on: 'watch cut off' },
    { on: 'delete', name: 'a' },
    { on: 'restart' },
    { on: 'watch back' },
  ],
  'a standby that has missed an ApiKey takes over, and the ApiKey is then deleted by force': [
    { on: 'watch cut off' },
    { on: 'apply', name: 'a', spec: {} },
    { on: 'restart' },
    { on: 'delete by force', name: 'a' },
    { on: 'settle' },
  ],
  'a key is suspended and deleted by force around two take-overs': [
    { on: 'watch cut off' },
    { on: 'apply', name: 'a', spec: {} },
    { on: 'apply', name: 'a', spec: { state: 'Suspended' } },
    { on: 'restart' },
    { on: 'apply', name: 'a', spec: {} },
    { on: 'watch cut off' },
    { on: 'delete by force', name: 'a' },
    { on: 'restart' },
    { on: 'watch back' },
  ],
  'a shard with an entry of a newer version is lost': [
    { on: 'apply', name: 'a', spec: {} },
    { on: 'newer entry', name: 'a' },
    { on: 'lose shard', shard: 0 },
    { on: 'lose shard', shard: 1 },
    { on: 'kill', kill: { write: 0, when: 'before' } },
  ],
  'a standby that has missed an ApiKey takes over after the loss of its entry': [
    { on: 'watch cut off' },
    { on: 'apply', name: 'a', spec: {} },
    { on: 'lose shard', shard: 0 },
    { on: 'lose shard', shard: 1 },
    { on: 'kill', kill: { write: 0, when: 'before' } },
    { on: 'apply twice', name: 'a', spec: {}, then: {} },
  ],
  'a standby that has missed an ApiKey takes over after the loss of its entry, and the Secret of the key is then deleted': [
    { on: 'watch cut off' },
    { on: 'apply', name: 'a', spec: {} },
    { on: 'lose shard', shard: 1 },
    { on: 'kill', kill: { write: 0, when: 'before' } },
    { on: 'delete Secret', name: 'a' },
  ],
  'a commit of a dead process arrives after its successor has read the keyring': [
    { on: 'apply', name: 'c', spec: {} },
    { on: 'kill', kill: { write: 3, when: 'late' } },
    { on: 'watch cut off' },
    { on: 'apply', name: 'a', spec: {} },
    { on: 'apply', name: 'a', spec: { state: 'Revoked' } },
    { on: 'store down' },
  ],
  'a dead process writes a lost shard, and the Secret of its key was deleted': [
    { on: 'pod silent' },
    { on: 'kill', kill: { write: 2, when: 'late' } },
    { on: 'apply', name: 'a', spec: {} },
    { on: 'lose shard', shard: 0 },
    { on: 'delete Secret', name: 'a' },
  ],
  'a lost entry is restored by a write whose answer is lost, and its Secret was deleted': [
    { on: 'apply', name: 'a', spec: {} },
    { on: 'answers lost' },
    { on: 'delete Secret', name: 'a' },
    { on: 'lose shard', shard: 1 },
    { on: 'kill', kill: { write: 0, when: 'before' } },
  ],
  'a process starts without Redis after the loss of an entry, and the Secret of the key was deleted': [
    { on: 'apply', name: 'a', spec: {} },
    { on: 'delete Secret', name: 'a' },
    { on: 'store down' },
    { on: 'lose shard', shard: 1 },
    { on: 'kill', kill: { write: 0, when: 'before' } },
  ],
  'a standby that has missed an ApiKey takes over without Redis after the loss of its entry, and its Secret was deleted': [
    { on: 'watch cut off' },
    { on: 'apply', name: 'a', spec: {} },
    { on: 'delete Secret', name: 'a' },
    { on: 'store down' },
    { on: 'lose shard', shard: 1 },
    { on: 'restart' },
    { on: 'store up' },
  ],
  'a process starts without Redis after the loss of an entry, and the key is then suspended, or deleted by force': [
    { on: 'apply', name: 'a', spec: {} },
    { on: 'apply', name: 'b', spec: {} },
    { on: 'delete Secret', name: 'a' },
    { on: 'delete Secret', name: 'b' },
    { on: 'store down' },
    { on: 'lose shard', shard: 0 },
    { on: 'lose shard', shard: 1 },
    { on: 'kill', kill: { write: 9, when: 'before' } },
    { on: 'apply', name: 'a', spec: { state: 'Suspended' } },
    { on: 'delete by force', name: 'b' },
    { on: 'store up' },
    { on: 'snapshot' },
    { on: 'stale failover' },
  ],
  'a restored entry cannot be written, and its Secret was deleted': [
    { on: 'apply', name: 'a', spec: {} },
    { on: 'delete Secret', name: 'a' },
    { on: 'damage shard', shard: 1 },
    { on: 'answers lost' },
    { on: 'kill', kill: { write: 1, when: 'late' } },
  ],
  'a value that no status names yet loses its entry and its Secret while Redis is away, and another value follows': [
    { on: 'kill', kill: { write: 6, when: 'before' } },
    { on: 'watch cut off' },
    { on: 'apply', name: 'a', spec: {} },
    { on: 'store down' },
    { on: 'lose shard', shard: 1 },
    { on: 'delete Secret', name: 'a' },
    { on: 'kill', kill: { write: 9, when: 'before' } },
    { on: 'store up' },
  ],
  'a newer version replaces the entry of a key that changes, beside a key that is deleted': [
    { on: 'apply', name: 'a', spec: {} },
    { on: 'apply', name: 'b', spec: {} },
    { on: 'apply', name: 'c', spec: {} },
    { on: 'newer entry', name: 'a' },
    { on: 'apply', name: 'a', spec: { models: ['qwen'] } },
    { on: 'delete', name: 'b' },
    { on: 'delete', name: 'c' },
  ],
  'a shard of deleted keys is damaged': [
    { on: 'apply', name: 'a', spec: {} },
    { on: 'store down' },
    { on: 'delete', name: 'a' },
    { on: 'store up' },
    { on: 'damage shard', shard: 0 },
    { on: 'damage shard', shard: 1 },
    { on: 'restart' },
  ],
}

async function play(happenings: readonly Happening[]): Promise<void> {
  const story = new KeyStory()
  try {
    await story.begin()
    for (const one of happenings) await story.happens(one)
    await story.end()
  } finally {
    await story.stop()
  }
}

test(
  `after any actions of users and any failures of the operator, every promise about keys holds (SEED=${SEED})`,
  async () => {
    const endsAt = performance.now() + BUDGET_MS
    let count = 0
    const property = fc.asyncProperty(stories, async (days) => {
      count += 1
      if (count <= AT_LEAST || performance.now() < endsAt) await play(days.flat())
    })
    await fc.assert(property, { seed: SEED, numRuns: 2_000 })
  },
  BUDGET_MS + 300_000,
)

test.each(Object.entries(FORMER))('every promise holds when %s', async (_what, happenings) => {
  await play(happenings)
})

test.each([1, 2, 3])('every promise holds in the stories of seed %i, which are the same in every run', async (seed) => {
  await fc.assert(
    fc.asyncProperty(stories, (days) => play(days.flat())),
    { seed, numRuns: 5 },
  )
})
