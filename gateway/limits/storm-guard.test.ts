import { expect, test } from 'vitest'
import { StormGuard } from './call-limits.ts'

test('twenty refusals of one key within ten seconds are a storm, and fewer are not', () => {
  const guard = new StormGuard()
  for (let i = 0; i < 19; i += 1) guard.refused('a', i * 100)
  for (let i = 0; i < 20; i += 1) guard.refused('slow', i * 530)
  expect([guard.isStorm('a', 1_900), guard.isStorm('slow', 10_070), guard.isStorm('b', 0)]).toEqual([false, false, false])
  guard.refused('a', 1_900)
  expect(guard.isStorm('a', 1_900)).toBe(true)
})

test('a storm ends when fewer than twenty refusals lie within ten seconds', () => {
  const guard = new StormGuard()
  for (let i = 0; i < 20; i += 1) guard.refused('a', 0)
  expect([guard.isStorm('a', 9_999), guard.isStorm('a', 10_000)]).toEqual([true, false])
  guard.refused('a', 10_001)
  expect(guard.isStorm('a', 10_001)).toBe(false)
})

test('at most ten thousand keys are watched', () => {
  const guard = new StormGuard()
  for (let i = 0; i < 20; i += 1) guard.refused('first', 0)
  for (let i = 0; i < 10_000; i += 1) guard.refused(`key-${i}`, 0)
  expect(guard.isStorm('first', 0)).toBe(false)
})
