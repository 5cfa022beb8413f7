import { describe, expect, test } from 'vitest'
import { DeadHolds, FoldTimes, UnreadyKeys } from './balance-times.ts'

const HOUR = 3_600_000

describe('a key that grants nothing', () => {
  test('waits for 6 s, so that every process that holds something has reported', () => {
    const keys = new UnreadyKeys()
    keys.seen('acme', undefined, 1_000)
    keys.seen('acme', 0n, 3_000)
    expect([keys.isOver('acme', 6_999), keys.isOver('acme', 7_000), keys.isOver('beta', 9_000)]).toEqual([false, true, false])
  })

  test('of books that this process has just begun does not wait, and waits if it is lost later', () => {
    const keys = new UnreadyKeys()
    keys.opened('acme')
    expect(keys.isOver('acme', 0)).toBe(true)
    keys.begun('acme')
    keys.seen('acme', undefined, 1_000)
    expect(keys.isOver('acme', 2_000)).toBe(false)
  })

  test.each([
    ['vanishes', undefined],
    ['has less', 4n],
  ])('waits again if it %s once more', (_, reported) => {
    const keys = new UnreadyKeys()
    keys.seen('acme', 5n, 0)
    keys.seen('acme', reported, 5_000)
    keys.seen('acme', 5n, 6_000)
    expect([keys.isOver('acme', 10_999), keys.isOver('acme', 11_000)]).toEqual([false, true])
  })

  test('waits again after the store did not answer', () => {
    const keys = new UnreadyKeys()
    keys.seen('acme', undefined, 0)
    keys.restart()
    expect(keys.isOver('acme', 60_000)).toBe(false)
    keys.seen('acme', undefined, 60_000)
    expect([keys.isOver('acme', 65_999), keys.isOver('acme', 66_000)]).toEqual([false, true])
  })
})

describe('the periods of an account', () => {
  test('change two hours after the last change at the earliest, and after a process has first seen them', () => {
    const folds = new FoldTimes()
    expect(folds.isDue('acme', 9 * HOUR, false)).toBe(false)
    folds.seen('acme', { openFrom: 0, period: 1 }, 9 * HOUR)
    folds.seen('acme', { openFrom: 0, period: 1 }, 10 * HOUR)
    expect([folds.isDue('acme', 11 * HOUR - 1, false), folds.isDue('acme', 11 * HOUR, false)]).toEqual([false, true])
  })

  test.each([[{ openFrom: 0, period: 2 }], [{ openFrom: 1, period: 2 }]])(
    'that another leader has changed to %o do not change again soon',
    (now) => {
      const folds = new FoldTimes()
      folds.seen('acme', { openFrom: 0, period: 1 }, 0)
      folds.seen('acme', now, 2 * HOUR)
      expect([folds.isDue('acme', 2 * HOUR, false), folds.isDue('acme', 4 * HOUR, false)]).toEqual([false, true])
    },
  )

  test('change after a quarter of an hour if they are nearly full', () => {
    const folds = new FoldTimes()
    folds.seen('acme', { openFrom: 0, period: 1 }, 0)
    expect([folds.isDue('acme', 899_999, true), folds.isDue('acme', 900_000, true)]).toEqual([false, true])
  })
})

describe('the hold of a process without a heartbeat', () => {
  const hold = (held: number): ReadonlyArray<[string, number]> => [['p1', held]]

  test('is dropped once it has not changed for 10 s', () => {
    const holds = new DeadHolds()
    expect([0, 9_999, 10_000].map((nowMs) => holds.lasting('acme', hold(5), nowMs))).toEqual([[], [], hold(5)])
  })

  test('stays for 10 s more if it changes: the process works again, and its heartbeat is on its way', () => {
    const holds = new DeadHolds()
    holds.lasting('acme', hold(5), 0)
    expect([9_000, 18_999, 19_000].map((nowMs) => holds.lasting('acme', hold(6), nowMs))).toEqual([[], [], hold(6)])
  })

  test('of which a heartbeat was read meanwhile counts from its next silence', () => {
    const holds = new DeadHolds()
    holds.lasting('acme', hold(5), 0)
    holds.lasting('acme', [], 5_000)
    expect([10_000, 19_999, 20_000].map((nowMs) => holds.lasting('acme', hold(5), nowMs))).toEqual([[], [], hold(5)])
    expect(holds.lasting('beta', hold(5), 20_000)).toEqual([])
  })
})
