import { expect, test } from 'vitest'
import { Capacity } from './capacity.ts'
import type { Level } from './level.ts'

/** Starts runs of a level as long as they are allowed. @returns how many started */
function fill(capacity: Capacity, level: Level, waiting: readonly Level[] = [level]): number {
  let started = 0
  while (capacity.free((each) => (waiting.includes(each) ? 1 : 0)).includes(level)) {
    capacity.started(level)
    started += 1
  }
  return started
}

test('eight slots are left to urgent items, whatever else runs', () => {
  const capacity = new Capacity(24)
  expect(fill(capacity, 'create')).toBe(24)
  expect(fill(capacity, 'urgent')).toBe(8)
  expect(capacity.running).toBe(32)
})

test('urgent items may use every slot', () => {
  const capacity = new Capacity(24)
  expect(fill(capacity, 'urgent')).toBe(32)
  expect(fill(capacity, 'change')).toBe(0)
})

test('urgent items use their own slots first', () => {
  const capacity = new Capacity(24)
  for (let index = 0; index < 8; index += 1) capacity.started('urgent')
  expect(fill(capacity, 'change')).toBe(24)
})

test('the background uses eight slots while others wait or run, and all when it is alone', () => {
  const waiting = new Capacity(24)
  expect(fill(waiting, 'background', ['background', 'create'])).toBe(8)
  const running = new Capacity(24)
  running.started('change')
  expect(fill(running, 'background')).toBe(8)
  running.ended('change')
  expect(fill(running, 'background')).toBe(16)
})
