import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'vitest'
import assert from 'node:assert/strict'
import { foldDay, KEPT_DAYS } from './usage-days.ts'
import { readUsageEntry, usageDaysOf, type UsageEntry } from './usage-entry.ts'

/** `SEED=… make property` repeats a run. */
const SEED = Number(process.env.SEED ?? randomInt(2 ** 31))
const RUNS = 300
const DAYS = 80
const UID = 'u'

const count = fc.maxSafeNat()
const row = fc.record({ requests: count, input: count, output: count, cached: count, cost: count, estimated: count, unpriced: count })
const models = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'other'), row)
/** The usage of a day in Redis, the number of reads, and whether the operator restarts before the write of the first read. */
const day = fc.record({ rows: models, reads: fc.nat({ max: 3 }), crashes: fc.boolean() })
const story = fc.array(day, { minLength: DAYS, maxLength: DAYS })

test(`the last ${KEPT_DAYS} days count once, after any number of reads and restarts of the operator (SEED=${SEED})`, () => {
  const property = fc.property(story, (days) => {
    const expected = new Map<number, unknown>()
    let durable: UsageEntry | undefined
    for (const [day, { rows, reads, crashes }] of days.entries()) {
      const counters = Object.entries(rows).map(([model, one]) => ({ model, ...one }))
      const lost = crashes ? 1 : 0 // the first read has no effect
      for (let read = lost; read < reads; read += 1) durable = foldDay(durable, { uid: UID, day, counters }).entry
      if (reads > lost && counters.length > 0) expected.set(day, counters)
      durable = durable && readUsageEntry(durable.text)
    }
    const last = foldDay(durable, { uid: UID, day: DAYS, counters: [] }).entry
    const kept = [...expected].filter(([day]) => day > DAYS - KEPT_DAYS)
    assert.deepEqual(last ? [...usageDaysOf(last)] : [], kept)
  })
  fc.assert(property, { seed: SEED, numRuns: RUNS })
})
