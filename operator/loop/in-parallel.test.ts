import { expect, test } from 'vitest'
import { settle } from '../../test/support/manual-clock.ts'
import { inParallel } from './in-parallel.ts'

test('results have the order of the items', async () => {
  const ends: Array<() => void> = []
  const running = inParallel(['a', 'b', 'c'], 3, async (item) => {
    await new Promise<void>((resolve) => ends.unshift(resolve))
    return item.toUpperCase()
  })
  await settle()
  for (const end of ends) end()
  expect(await running).toEqual(['A', 'B', 'C'])
})

test('at most `limit` items run at once, and the next starts as soon as one ends', async () => {
  const ends: Array<() => void> = []
  let most = 0
  let now = 0
  const running = inParallel([1, 2, 3, 4, 5], 2, async (item) => {
    now += 1
    most = Math.max(most, now)
    await new Promise<void>((resolve) => ends.push(resolve))
    now -= 1
    return item
  })
  for (let begun = 0; begun < 5; begun += 1) {
    await settle()
    expect(now).toBe(Math.min(2, 5 - begun))
    ends.shift()?.()
  }
  expect(await running).toEqual([1, 2, 3, 4, 5])
  expect(most).toBe(2)
})

test('a failure does not stop the others, and its error is thrown after all have ended', async () => {
  const done: number[] = []
  const running = inParallel([1, 2, 3, 4, 5], 2, async (item) => {
    if (item % 2 === 1) throw new Error(`no ${item}`)
    await settle()
    done.push(item)
  })
  await expect(running).rejects.toThrow('no 1')
  expect(done).toEqual([2, 4])
})
