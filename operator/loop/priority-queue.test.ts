import { expect, test } from 'vitest'
import type { Item } from './item.ts'
import type { Level } from './level.ts'
import { PriorityQueue } from './priority-queue.ts'

const item = (name: string, namespace = 'shop', kind = 'ApiKey'): Item => ({ kind, ref: { namespace, name } })

function queueOf(...adds: ReadonlyArray<readonly [Item, Level]>): PriorityQueue {
  const queue = new PriorityQueue()
  for (const [each, level] of adds) queue.add(each, level, 0)
  return queue
}

function takeAll(queue: PriorityQueue): string[] {
  const names: string[] = []
  for (let next = queue.shift(); next; next = queue.shift()) names.push(next.item.ref.name)
  return names
}

test('an urgent item passes everything, then changes, new objects and the background follow', () => {
  const queue = queueOf([item('d'), 'background'], [item('c'), 'create'], [item('b'), 'change'], [item('a'), 'urgent'])
  expect(takeAll(queue)).toEqual(['a', 'b', 'c', 'd'])
})

test('a tenant with one change is second, however many another tenant has', () => {
  const queue = new PriorityQueue()
  for (let index = 0; index < 5_000; index += 1) queue.add(item(`many-${index}`, 'storm'), 'change', 0)
  queue.add(item('one', 'quiet'), 'change', 0)
  expect([queue.shift(), queue.shift(), queue.shift()].map((next) => next?.item.ref.name)).toEqual(['many-0', 'one', 'many-1'])
})

test('within a namespace the oldest comes first, across kinds', () => {
  const queue = queueOf([item('a'), 'change'], [item('b', 'shop', 'ServedModel'), 'change'], [item('c'), 'change'])
  expect(takeAll(queue)).toEqual(['a', 'b', 'c'])
})

test('an item that waits moves up and never down, and runs once', () => {
  const queue = queueOf([item('a'), 'background'], [item('b'), 'change'], [item('a'), 'urgent'], [item('b'), 'background'])
  expect([queue.depth('urgent'), queue.depth('change'), queue.depth('background')]).toEqual([1, 1, 0])
  expect(takeAll(queue)).toEqual(['a', 'b'])
})

test('moving up does not shorten the wait that is measured', () => {
  const queue = new PriorityQueue()
  expect(queue.add(item('a'), 'background', 10)).toBe(true)
  expect(queue.add(item('a'), 'urgent', 90)).toBe(false)
  expect(queue.shift()).toMatchObject({ level: 'urgent', sinceMs: 10 })
})

test('levels that may not start now are passed over and keep their items', () => {
  const queue = queueOf([item('a'), 'change'], [item('b'), 'urgent'])
  expect(queue.shift(['urgent'])?.item.ref.name).toBe('b')
  expect(queue.shift(['urgent'])).toBeUndefined()
  expect(queue.depth('change')).toBe(1)
})

test('the backlog of a namespace counts its own items and no background work, at whatever level they leave', () => {
  const queue = queueOf([item('a'), 'background'], [item('b'), 'create'], [item('c'), 'change'], [item('d', 'other'), 'create'])
  expect([queue.backlogOf('shop'), queue.backlogOf('other'), queue.backlogOf('nobody')]).toEqual([2, 1, 0])
  queue.add(item('a'), 'urgent', 0)
  expect(queue.backlogOf('shop')).toBe(3)
  queue.delete(item('b'))
  queue.shift()
  expect(queue.backlogOf('shop')).toBe(1)
  takeAll(queue)
  expect([queue.backlogOf('shop'), queue.backlogOf('other')]).toEqual([0, 0])
})

test('a tenant that is full keeps its items for later, and the others take their turns', () => {
  const ofShop = [item('a'), item('b')].map((one) => [one, 'background'] as const)
  const queue = queueOf(...ofShop, [item('c', 'other'), 'background'])
  const isFull = (tenant: string): boolean => tenant === 'shop'
  expect([queue.shift(['background'], isFull), queue.shift(['background'], isFull)].map((next) => next?.item.ref.name)).toEqual([
    'c',
    undefined,
  ])
  expect(takeAll(queue)).toEqual(['a', 'b'])
})

test('a level whose tenants are all full does not stop the levels below', () => {
  const queue = queueOf([item('a'), 'change'], [item('b', 'other'), 'create'])
  expect(queue.shift(undefined, (tenant) => tenant === 'shop')?.item.ref.name).toBe('b')
  expect(takeAll(queue)).toEqual(['a'])
})

test('a deleted item does not come, and one that was added again does', () => {
  const queue = queueOf([item('a'), 'change'], [item('b'), 'change'])
  queue.delete(item('a'))
  queue.delete(item('b'))
  queue.add(item('b'), 'change', 0)
  expect(takeAll(queue)).toEqual(['b'])
})

test('eight times as many items cost about eight times as much, not sixty-four times', () => {
  const cpuMs = (count: number): number => {
    const before = process.cpuUsage()
    const queue = new PriorityQueue()
    for (let index = 0; index < count; index += 1) queue.add(item(`i-${index}`), 'create', 0)
    expect(takeAll(queue)).toHaveLength(count)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
  const least = (count: number): number => Math.min(...[1, 2, 3].map(() => cpuMs(count))) // without a collection of garbage
  least(2_500) // warms up
  expect(least(20_000) / least(2_500)).toBeLessThan(30)
}, 20_000)
