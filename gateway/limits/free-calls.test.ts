import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { FreeCalls } from './free-calls.ts'

test('a key has so many free calls in any minute, and is told when the next one passes', async () => {
  const clock = new ManualClock(0)
  const calls = new FreeCalls(3, clock)
  expect(calls.take('key')).toBe(0)
  await clock.advance(10_000)
  expect([calls.take('key'), calls.take('key'), calls.take('key')]).toEqual([0, 0, 50_000])
  await clock.advance(49_999)
  expect(calls.take('key')).toBe(1)
  await clock.advance(1)
  expect([calls.take('key'), calls.take('key')]).toEqual([0, 10_000])
})

test('the free calls of one key take none from another', () => {
  const calls = new FreeCalls(1, new ManualClock(0))
  expect([calls.take('one'), calls.take('one'), calls.take('other')]).toEqual([0, 60_000, 0])
})

test('a storm of keys is forgotten from its oldest on, so that memory stays bounded', () => {
  const calls = new FreeCalls(1, new ManualClock(0))
  for (let at = 0; at <= 10_000; at += 1) calls.take(`key-${at}`)
  expect([calls.take('key-1'), calls.take('key-0')]).toEqual([60_000, 0])
})
