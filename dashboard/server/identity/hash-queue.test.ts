import { expect, test } from 'vitest'
import { HashQueue, HashQueueFull } from './hash-queue.ts'

test('runs two at once, lets fifty wait in order, and refuses the next one without running it', async () => {
  const queue = new HashQueue({ running: 2, waiting: 50 })
  const started: number[] = []
  const ends: (() => void)[] = []
  const task = (n: number) => (): Promise<void> => {
    started.push(n)
    return new Promise((resolve) => ends.push(resolve))
  }
  const all = Array.from({ length: 52 }, (_, n) => queue.run(task(n)))
  await expect(queue.run(task(52))).rejects.toThrow(HashQueueFull)
  expect([started, queue.waiting]).toEqual([[0, 1], 50])
  for (let n = 0; n < 52; n += 1) {
    expect(started.length).toBeLessThanOrEqual(n + 2)
    ends[n]?.()
    await all[n]
    await Promise.resolve()
  }
  expect([started, queue.waiting]).toEqual([Array.from({ length: 52 }, (_, n) => n), 0])
})

test('a task that fails gives its turn to the next one', async () => {
  const queue = new HashQueue({ running: 1, waiting: 1 })
  const failing = queue.run(() => Promise.reject(new Error('no')))
  const next = queue.run(async () => 'done')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('done')
  expect(await queue.run(async () => 'again')).toBe('again')
})

test('admits as many requests as it has places, before they come to their hash, and begins two for each hash that may run', async () => {
  const queue = new HashQueue({ running: 1, waiting: 2 })
  const held = Promise.withResolvers<void>()
  let begun = 0
  const request = (): Promise<void> => {
    begun += 1
    return held.promise
  }
  const admitted = [queue.admit(request), queue.admit(request), queue.admit(request)]
  await expect(queue.admit(request)).rejects.toThrow(HashQueueFull)
  expect([begun, queue.waiting]).toEqual([2, 1])
  held.resolve()
  await Promise.all(admitted)
  expect([begun, queue.waiting]).toEqual([3, 0])
  expect(await queue.admit(async () => 'admitted')).toBe('admitted')
})

test('full doors keep out no hash of a person who is signed in', async () => {
  const queue = new HashQueue({ running: 1, waiting: 1 })
  const held = Promise.withResolvers<void>()
  const admitted = [queue.admit(() => held.promise), queue.admit(() => held.promise)]
  expect(await queue.run(async () => 'confirmed')).toBe('confirmed')
  held.resolve()
  await Promise.all(admitted)
})
