import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { StepFailures } from './step-failures.ts'

function failuresWith(random = 0.5): { failures: StepFailures; clock: ManualClock } {
  const clock = new ManualClock()
  return { failures: new StepFailures({ clock, random: () => random }), clock }
}

test('a step that fails repeatedly waits 1 s, 2 s, 4 s, and at most five minutes', () => {
  const { failures } = failuresWith()
  const waits = Array.from({ length: 30 }, () => failures.add('a', 'write', false))
  expect(waits.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000])
  expect(waits.at(-1)).toBe(300_000)
})

test.each([
  [0, 800],
  [0.999_999, 1_200],
])('each wait is spread by a fifth, so that a thousand objects do not try together: %d', (random, waitMs) => {
  expect(failuresWith(random).failures.add('a', 'write', false)).toBe(waitMs)
})

test('the wait runs out by itself', async () => {
  const { failures, clock } = failuresWith()
  failures.add('a', 'write', false)
  expect(failures.waitMs('a', 'write')).toBe(1_000)
  await clock.advance(400)
  expect(failures.waitMs('a', 'write')).toBe(600)
  await clock.advance(10_000)
  expect(failures.waitMs('a', 'write')).toBe(0)
})

test('other steps and other objects do not wait for a failed step', () => {
  const { failures } = failuresWith()
  failures.add('a', 'write', false)
  expect(failures.waitMs('a', 'read')).toBe(0)
  expect(failures.waitMs('b', 'write')).toBe(0)
})

test('a conflict waits only for the next event of the watch, at most five times in a row', () => {
  const { failures } = failuresWith()
  expect(Array.from({ length: 7 }, () => failures.add('a', 'write', true))).toEqual([20, 20, 20, 20, 20, 1_000, 2_000])
})

test('after a success the count starts again at zero', () => {
  const { failures } = failuresWith()
  failures.add('a', 'write', false)
  failures.add('a', 'write', false)
  failures.succeeded('a', 'write')
  expect(failures.waitMs('a', 'write')).toBe(0)
  expect(failures.add('a', 'write', false)).toBe(1_000)
})

test('the success of one step does not end the wait of another', () => {
  const { failures } = failuresWith()
  failures.add('a', 'write', false)
  failures.succeeded('a', 'read')
  expect(failures.waitMs('a', 'write')).toBe(1_000)
})

test('a deleted object leaves nothing behind', () => {
  const { failures } = failuresWith()
  failures.add('a', 'write', false)
  failures.forget('a')
  expect(failures.waitMs('a', 'write')).toBe(0)
  expect(failures.add('a', 'write', false)).toBe(1_000)
})
