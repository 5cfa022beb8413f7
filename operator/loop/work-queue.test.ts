import { expect, test } from 'vitest'
import { ManualClock, settle } from '../../test/support/manual-clock.ts'
import { WorkQueue, type WorkQueueMetrics } from './work-queue.ts'

function queueWithLog(): { queue: WorkQueue; clock: ManualClock; log: string[] } {
  const clock = new ManualClock()
  const log: string[] = []
  const metrics: WorkQueueMetrics = {
    depth: () => undefined,
    added: () => log.push('added'),
    retried: () => log.push('retried'),
    waited: (seconds) => log.push(`waited ${seconds}`),
    worked: (seconds) => log.push(`worked ${seconds}`),
  }
  return { queue: new WorkQueue(clock, metrics), clock, log }
}

async function takeAll(queue: WorkQueue): Promise<string[]> {
  const keys: string[] = []
  while (queue.depth > 0) keys.push((await queue.take()) ?? 'closed')
  return keys
}

test('a key added several times while it waits is handed out once', async () => {
  const { queue, log } = queueWithLog()
  for (let time = 0; time < 5; time += 1) queue.add('a')
  expect(await takeAll(queue)).toEqual(['a'])
  expect(log.filter((line) => line === 'added')).toHaveLength(1)
})

test('a key added while it is worked on is handed out again, but only after that work', async () => {
  const { queue } = queueWithLog()
  queue.add('a')
  await queue.take()
  queue.add('a')
  queue.add('a')
  expect(queue.depth).toBe(0)
  queue.done('a')
  expect(await takeAll(queue)).toEqual(['a'])
  queue.done('a')
  expect(queue.depth).toBe(0)
})

test('changes go before resyncs, and a change lifts a waiting resync of its key', async () => {
  const { queue } = queueWithLog()
  queue.add('old 1', 'resync')
  queue.add('old 2', 'resync')
  queue.add('new')
  queue.add('old 2', 'change')
  expect(await takeAll(queue)).toEqual(['new', 'old 2', 'old 1'])
})

test('of several delayed wishes for a key the earliest counts', async () => {
  const { queue, clock } = queueWithLog()
  queue.addAfter('a', 5_000)
  queue.addAfter('a', 1_000)
  queue.addAfter('a', 9_000)
  await clock.advance(999)
  expect(queue.depth).toBe(0)
  await clock.advance(1)
  expect(await takeAll(queue)).toEqual(['a'])
  queue.done('a')
  await clock.advance(60_000)
  expect(queue.depth).toBe(0)
})

test('a worker that waits gets the next key at once', async () => {
  const { queue } = queueWithLog()
  const first = queue.take()
  const second = queue.take()
  queue.add('a')
  queue.add('b')
  expect(await Promise.all([first, second])).toEqual(['a', 'b'])
})

test('waiting and working times are measured, and unfinished work is visible', async () => {
  const { queue, clock, log } = queueWithLog()
  queue.add('a')
  await clock.advance(2_000)
  await queue.take()
  await clock.advance(3_000)
  expect(queue.unfinished()).toEqual({ totalSeconds: 3, longestSeconds: 3 })
  queue.done('a')
  expect(log).toEqual(['added', 'waited 2', 'worked 3'])
})

test('closing ends the workers, drops what waits, and idle waits for what is under way', async () => {
  const { queue, clock } = queueWithLog()
  queue.add('a')
  queue.addAfter('later', 10)
  await queue.take()
  const waiting = queue.take()
  queue.close()
  expect(await waiting).toBeUndefined()
  let idle = false
  void queue.idle().then(() => (idle = true))
  await clock.advance(100)
  expect(idle).toBe(false)
  queue.add('b')
  queue.done('a')
  await settle()
  expect(idle).toBe(true)
  expect(queue.depth).toBe(0)
  expect(clock.pending).toBe(0)
})
