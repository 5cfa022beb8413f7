import { expect, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { RefusedSources } from './refused-sources.ts'

test('a client stays refused at one route until the time is over', () => {
  const clock = new ManualClock()
  const refused = new RefusedSources(clock)
  refused.add('203.0.113.7', 'POST /sign-in/email', 10)
  const left = (address: string, route: string): number => refused.secondsLeft(address, route)
  expect([left('203.0.113.7', 'POST /sign-in/email'), left('203.0.113.8', 'POST /sign-in/email')]).toEqual([10, 0])
  expect(left('203.0.113.7', 'POST /sign-up/email')).toBe(0)
  clock.skip(9_500)
  expect(left('203.0.113.7', 'POST /sign-in/email')).toBe(1)
  clock.skip(500)
  expect(left('203.0.113.7', 'POST /sign-in/email')).toBe(0)
})

test('of very many clients the oldest are forgotten, so that the memory is bounded', () => {
  const refused = new RefusedSources(new ManualClock())
  for (let n = 0; n <= 10_000; n += 1) refused.add(`client-${n}`, 'POST /sign-in/email', 10)
  expect([refused.secondsLeft('client-0', 'POST /sign-in/email'), refused.secondsLeft('client-10000', 'POST /sign-in/email')]).toEqual([
    0, 10,
  ])
})
