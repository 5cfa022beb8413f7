import { expect, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { Refused } from '../http/refused.ts'
import { ChangeRate } from './change-rate.ts'

class World {
  readonly clock = new ManualClock()
  readonly rate = new ChangeRate(this.clock)
  made = 0
  readonly refused: Refused[] = []

  /** Asks for changes at once. */
  async ask(account: string, count: number): Promise<void> {
    for (let at = 0; at < count; at += 1)
      this.rate.take(account).then(
        () => (this.made += 1),
        (error: unknown) => error instanceof Refused && this.refused.push(error),
      )
    await this.settled()
  }

  async settled(): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
  }
}

test('an account may make ten changes at once; further ones wait, five a second, and what is more than ten of them is refused', async () => {
  const world = new World()
  await world.ask('busy', 100)
  expect([world.made, world.refused.length]).toEqual([10, 80])
  await world.clock.advance(1_000)
  await world.settled()
  expect(world.made).toBe(15)
  await world.clock.advance(1_000)
  await world.settled()
  expect(world.made).toBe(20)
  await world.clock.advance(3_600_000)
  await world.ask('busy', 10)
  expect(world.made).toBe(30)
})

test('a refusal is 429 and says how long to wait', async () => {
  const world = new World()
  await world.ask('busy', 21)
  expect(world.refused).toMatchObject([{ code: 'too-many-requests', details: { retryAfter: 1 } }])
})

test('no account waits for another one', async () => {
  const world = new World()
  await world.ask('busy', 100)
  await world.ask('other', 10)
  expect(world.made).toBe(20)
})

test('accounts that have rested are forgotten, and busy ones are not', async () => {
  const world = new World()
  for (let at = 0; at < 9_999; at += 1) await world.rate.take(`rested-${at}`)
  await world.clock.advance(1_000)
  await world.ask('busy', 20)
  await world.ask('new', 1)
  await world.ask('newer', 1)
  await world.ask('busy', 1)
  expect(world.refused).toHaveLength(1)
})
