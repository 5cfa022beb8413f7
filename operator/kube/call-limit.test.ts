import { expect, test } from 'vitest'
import { settle } from '../../test/support/manual-clock.ts'
import { CallLimit, type CallPriority } from './call-limit.ts'

test('no more calls than the limit run at once, and one place is left for urgent ones', async () => {
  const limit = new CallLimit(3)
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const call = (name: string, priority: CallPriority = 'normal'): Promise<void> =>
    limit.run(priority, () => {
      started.push(name)
      return new Promise((resolve) => ends.set(name, resolve))
    })
  const all = [call('a'), call('b'), call('c'), call('d'), call('lease', 'urgent'), call('lease 2', 'urgent')]
  await settle()
  expect(started).toEqual(['a', 'b', 'lease'])
  ends.get('lease')?.()
  await settle()
  expect(started).toEqual(['a', 'b', 'lease', 'lease 2'])
  ends.get('a')?.()
  await settle()
  expect(started).toEqual(['a', 'b', 'lease', 'lease 2']) // one normal place only while an urgent call runs
  ends.get('lease 2')?.()
  await settle()
  expect(started).toEqual(['a', 'b', 'lease', 'lease 2', 'c'])
  ends.get('b')?.()
  await settle()
  ends.get('c')?.()
  ends.get('d')?.()
  await Promise.all(all)
})

test('a call that fails frees its place', async () => {
  const limit = new CallLimit(2)
  await expect(limit.run('normal', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  await expect(limit.run('normal', () => Promise.resolve('next'))).resolves.toBe('next')
})

test('background calls wait for all others, and never take all places', async () => {
  const limit = new CallLimit(12)
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const call = (name: string, priority: CallPriority): Promise<void> =>
    limit.run(priority, () => {
      started.push(name)
      return new Promise((resolve) => ends.set(name, resolve))
    })
  const statuses = Array.from({ length: 8 }, (_, i) => call(`status ${i}`, 'background'))
  await settle()
  expect(started).toHaveLength(6)
  const writes = Array.from({ length: 6 }, (_, i) => call(`write ${i}`, 'normal'))
  await settle()
  expect(started.slice(6)).toEqual(['write 0', 'write 1', 'write 2', 'write 3', 'write 4'])
  ends.get('status 0')?.()
  await settle()
  expect(started.at(-1)).toBe('write 5')
  for (let round = 0; round < 3; round++) {
    for (const end of ends.values()) end()
    await settle()
  }
  await Promise.all([...statuses, ...writes])
})
