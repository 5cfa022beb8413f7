import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { StepFailures } from './step-failures.ts'

function failuresOf(): StepFailures {
  return new StepFailures({ clock: new ManualClock(), random: () => 0.5 })
}

test('other steps and other objects do not wait for a failed step', () => {
  const failures = failuresOf()
  expect(failures.add('a', 'write', false)).toBe(1_000)
  expect([failures.waitMs('a', 'write'), failures.waitMs('a', 'read'), failures.waitMs('b', 'write')]).toEqual([1_000, 0, 0])
})

test('a conflict waits only for the next event of the watch, at most five times in a row', () => {
  const failures = failuresOf()
  expect(Array.from({ length: 7 }, () => failures.add('a', 'write', true))).toEqual([20, 20, 20, 20, 20, 1_000, 2_000])
})

test('after a success the count starts again at zero, and another step still waits', () => {
  const failures = failuresOf()
  for (const step of ['write', 'write', 'read']) failures.add('a', step, false)
  failures.succeeded('a', 'write')
  expect([failures.waitMs('a', 'write'), failures.waitMs('a', 'read')]).toEqual([0, 1_000])
  expect(failures.add('a', 'write', false)).toBe(1_000)
})

test('a deleted object leaves nothing behind', () => {
  const failures = failuresOf()
  failures.add('a', 'write', false)
  failures.forget('a')
  expect(failures.waitMs('a', 'write')).toBe(0)
  expect(failures.add('a', 'write', false)).toBe(1_000)
})
