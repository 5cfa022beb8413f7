import { expect, test } from 'vitest'
import { Capacity } from './capacity.ts'
import { type Level, LEVELS } from './level.ts'

/** Starts runs of a level as long as they are allowed. @returns how many started */
function fill(capacity: Capacity, level: Level, waiting: readonly Level[] = [level]): number {
  let started = 0
  while (capacity.free((each) => (waiting.includes(each) ? 1 : 0)).includes(level)) {
    capacity.started(level, 'some')
    started += 1
  }
  return started
}

test('eight slots stay free for urgent items, with any other load', () => {
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

test('an endless stream of urgent items leaves four workers to changes and new objects, two of them to new objects', () => {
  const capacity = new Capacity(24)
  const waiting: readonly Level[] = ['urgent', 'change', 'create']
  expect(fill(capacity, 'urgent', waiting)).toBe(28)
  expect(fill(capacity, 'change', waiting)).toBe(2)
  expect(fill(capacity, 'create', waiting)).toBe(2)
  expect(fill(capacity, 'urgent', waiting)).toBe(0)
})

test('levels that never end leave one worker to the background', () => {
  const waiting: readonly Level[] = ['urgent', 'change', 'create', 'background']
  const urgent = new Capacity(24)
  expect(fill(urgent, 'urgent', ['urgent', 'background'])).toBe(31)
  expect(fill(urgent, 'background', ['urgent', 'background'])).toBe(1)
  const all = new Capacity(24)
  expect(waiting.map((level) => fill(all, level, waiting))).toEqual([27, 2, 2, 1])
  const creating = new Capacity(24)
  expect(fill(creating, 'create', ['create', 'background'])).toBe(23)
})

test('urgent items use the slots of other levels as soon as no other item waits', () => {
  const capacity = new Capacity(24)
  fill(capacity, 'urgent', ['urgent', 'create'])
  expect(fill(capacity, 'urgent')).toBe(4)
})

test('an endless stream of changes leaves two workers to new objects', () => {
  const capacity = new Capacity(24)
  expect(fill(capacity, 'change', ['change', 'create'])).toBe(22)
  expect(fill(capacity, 'create', ['change', 'create'])).toBe(2)
})

test('urgent items use their own slots first', () => {
  const capacity = new Capacity(24)
  for (let index = 0; index < 8; index += 1) capacity.started('urgent', 'some')
  expect(fill(capacity, 'change')).toBe(24)
})

test('the background uses eight slots while others wait or run, and all when it is alone', () => {
  const waiting = new Capacity(24)
  expect(fill(waiting, 'background', ['background', 'create'])).toBe(8)
  const running = new Capacity(24)
  running.started('change', 'some')
  expect(fill(running, 'background')).toBe(8)
  running.ended('change', 'some')
  expect(fill(running, 'background')).toBe(16)
})

/** Starts runs of one tenant as long as the bound of a tenant allows. @returns how many started */
function fillAs(capacity: Capacity, tenant: string, level: Level, waiting: readonly Level[] = LEVELS): number {
  let started = 0
  for (; !capacity.isFull(tenant, level, (each) => (waiting.includes(each) ? 1 : 0)); started += 1) capacity.started(level, tenant)
  return started
}

test('one tenant takes two thirds of the slots of a level, and more tenants leave some too', () => {
  const filled = (level: Level, tenants: readonly string[]): readonly number[] => {
    const capacity = new Capacity(24)
    return tenants.map((tenant) => fillAs(capacity, tenant, level))
  }
  expect(filled('create', ['a', 'b'])).toEqual([16, 6])
  expect(filled('background', ['a', 'b'])).toEqual([6, 2])
  const urgent = new Capacity(24)
  expect([fillAs(urgent, 'a', 'create'), fillAs(urgent, 'a', 'urgent'), fillAs(urgent, 'b', 'urgent')]).toEqual([16, 6, 7])
})

test('one tenant takes two thirds of all slots for the background while nothing else waits or runs', () => {
  const capacity = new Capacity(24)
  expect(['a', 'b'].map((tenant) => fillAs(capacity, tenant, 'background', ['background']))).toEqual([16, 6])
  capacity.started('change', 'c')
  expect(fillAs(capacity, 'd', 'background', ['background'])).toBe(0)
})

test('the runs of a tenant that ended count no more', () => {
  const capacity = new Capacity(24)
  fillAs(capacity, 'a', 'background')
  capacity.ended('background', 'a')
  expect(capacity.isFull('a', 'background', () => 1)).toBe(false)
  expect(fillAs(capacity, 'a', 'background')).toBe(1)
})
