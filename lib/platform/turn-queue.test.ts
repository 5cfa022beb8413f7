import { expect, test } from 'vitest'
import { TurnQueue } from './turn-queue.ts'

function queueOf(items: readonly (readonly [item: string, ...owners: string[]])[]): TurnQueue<string> {
  const queue = new TurnQueue<string>()
  for (const [item, ...owners] of items) queue.push(item, owners)
  return queue
}

function drained(queue: TurnQueue<string>, mayTake?: (owner: string) => boolean): string {
  let text = ''
  for (let item = queue.take(mayTake); item !== undefined; item = queue.take(mayTake)) text += item
  return text
}

test('owners take turns, and the items of one owner keep their order', () => {
  const queue = queueOf(['1', '2', '3', '4', '5', '6'].map((item) => [item, 'greedy'] as const))
  queue.push('a', ['modest'])
  queue.push('b', ['modest'])
  expect([drained(queue), queue.isEmpty]).toEqual(['1a2b3456', true])
})

test('owners within an owner share its turns', () => {
  const queue = queueOf([
    ['1', 'greedy', 'x'],
    ['2', 'greedy', 'x'],
    ['3', 'greedy', 'y'],
    ['4', 'greedy', 'y'],
    ['a', 'modest', 'z'],
    ['b', 'modest', 'z'],
  ])
  expect(drained(queue)).toBe('1a3b24')
})

test('an owner that may not have its turn keeps its place', () => {
  const queue = queueOf([
    ['1', 'resting'],
    ['a', 'modest'],
    ['b', 'modest'],
  ])
  expect([queue.take((owner) => owner !== 'resting'), drained(queue)]).toEqual(['a', '1b'])
})
