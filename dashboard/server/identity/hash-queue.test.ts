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

test('admits as many requests as it has places, before they come to their hash', async () => {
  const queue = new HashQueue({ running: 1, waiting: 1 })
  const held = Promise.withResolvers<void>()
  const admitted = [queue.admit(() => held.promise), queue.admit(() => held.promise)]
  await expect(queue.admit(() => held.promise)).rejects.toThrow(HashQueueFull)
  held.resolve()
  await Promise.all(admitted)
  expect(await queue.admit(async () => 'admitted')).toBe('admitted')
})
