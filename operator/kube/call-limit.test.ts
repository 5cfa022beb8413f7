import { expect, test } from 'vitest'
import { settle } from '../../test/support/manual-clock.ts'
import { CallLimit } from './call-limit.ts'

test('no more calls than the limit run at once, and one place is left for urgent ones', async () => {
  const limit = new CallLimit(3)
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const call = (name: string, urgent = false): Promise<void> =>
    limit.run(urgent, () => {
      started.push(name)
      return new Promise((resolve) => ends.set(name, resolve))
    })
  const all = [call('a'), call('b'), call('c'), call('d'), call('lease', true), call('lease 2', true)]
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
  await expect(limit.run(false, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  await expect(limit.run(false, () => Promise.resolve('next'))).resolves.toBe('next')
})
