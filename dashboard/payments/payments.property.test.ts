/**
 * Random lives of payments: people pay, pay later, cancel and come back, the merchant refunds, banks dispute, and events come never, once or three
 * times, late, in another order, and forged. The payments program is killed at any call, and started again. In the end the Credits say what the book of
 * the provider says.
 */
import { expect, test } from 'vitest'
import { PaymentsSchedule } from '../../test/support/payments-schedule.ts'

const SCHEDULES = 300

test(`${SCHEDULES} random lives of payments, with kills at any call: the Credits are what the provider has`, async () => {
  let kills = 0
  for (let seed = 1; seed <= SCHEDULES; seed += 1) {
    using schedule = new PaymentsSchedule(seed)
    await schedule.run().catch((error: unknown) => {
      throw new Error(`schedule ${seed}:\n${schedule.text}\n${String(error)}`, { cause: error })
    })
    kills += schedule.life.kills
  }
  expect(kills).toBeGreaterThan(SCHEDULES / 2)
})
