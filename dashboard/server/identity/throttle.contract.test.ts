/** Counts that replicas share, whose clocks differ. */
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'
import { openDatabase } from './database.ts'
import { createTables } from './tables.ts'
import { Throttle, type ThrottleRule } from './throttle.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const AHEAD_MS = 2_000
let throttles: readonly Throttle[]

/** The clock of a replica that is behind at the beginning of a request, and has caught up at its end, as after a wait for the database. */
class SlowClock extends ManualClock {
  #reads = 0

  override now(): number {
    this.#reads += 1
    return this.#reads % 2 === 1 ? NOW_MS : NOW_MS + 2 * AHEAD_MS
  }
}

beforeEach(async () => {
  const database = openDatabase({ file: join(temporaryFolder(), 'dashboard.db') }, () => undefined)
  onTestFinished(() => database.close())
  await createTables(database.db)
  throttles = [new Throttle(database.db, new ManualClock(NOW_MS + AHEAD_MS)), new Throttle(database.db, new SlowClock())]
})

async function admitted(rule: ThrottleRule, times: number): Promise<number> {
  let count = 0
  for (let n = 0; n < times; n += 1) for (const throttle of throttles) if ((await throttle.take(rule, 'maya')).isAdmitted) count += 1
  return count
}

test('ten tries are admitted in all, though one replica is behind', async () => {
  expect(await admitted({ name: 'tries', most: 10, windowMs: 60_000 }, 20)).toBe(10)
})

test('of mails with a pause between two, one is admitted at a time, though one replica is behind', async () => {
  expect(await admitted({ name: 'mails', most: 5, windowMs: 60_000, everyMs: 1_000 }, 5)).toBe(1)
})
