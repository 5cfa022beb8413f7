import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AccountSpend } from '#contract/ledger/account-spend.ts'
import {
  type AccountBook,
  closePeriods,
  isSameSpend,
  lacksSpend,
  mergeBooks,
  mergeSpend,
  readBook,
  totalSpent,
  writeBook,
} from './account-book.ts'

const TEXT =
  '{"v":1,"needs":["balances"],"name":"acme","owner":"uid-1","k":2,"T":3,"base":"9007199254740993","c":{"3:p1":25,"4:p-2_x":9007199254740991}}'
const BARE = '{"v":1,"name":"acme","owner":"uid-1","k":0}'

const spend = (openFrom: number, closedSpend: bigint, spent: Record<string, number> = {}): AccountSpend => ({
  openFrom,
  closedSpend,
  spent: new Map(Object.entries(spent)),
})
const book = (owner: string, changes: number, its: AccountSpend): AccountBook => ({ name: 'acme', owner, changes, ...its })

describe('the text of books', () => {
  test('is read back byte for byte, also beyond 2^53', () => {
    const read = readBook(TEXT)
    expect(read).toEqual(book('uid-1', 2, spend(3, 9_007_199_254_740_993n, { '3:p1': 25, '4:p-2_x': 9_007_199_254_740_991 })))
    expect(writeBook(read)).toBe(TEXT)
  })

  test('of an account that has spent nothing is that of a former build', () => {
    expect(readBook(BARE)).toEqual(book('uid-1', 0, spend(0, 0n)))
    expect(writeBook(readBook(BARE))).toBe(BARE)
  })

  test.each([
    ['{"v":1,"name":"acme","owner":"u","k":0,"T":-1}'],
    ['{"v":1,"name":"acme","owner":"u","k":0,"base":"-1"}'],
    ['{"v":1,"name":"acme","owner":"u","k":0,"base":"01"}'],
    ['{"v":1,"name":"acme","owner":"u","k":0,"base":1}'],
    ['{"v":1,"name":"acme","owner":"u","k":0,"c":{"1:p":0}}'],
    ['{"v":1,"name":"acme","owner":"u","k":0,"c":{"1:p":1.5}}'],
    ['{"v":1,"name":"acme","owner":"u","k":0,"c":{"p":1}}'],
    ['{"v":1,"name":"acme","owner":"u","k":0,"c":{"01:p":1}}'],
    ['{"v":1,"owner":"u","k":0}'],
  ])('%s is damage', (text) => {
    expect(() => readBook(text)).toThrow()
  })

  test('is never written with spend that no build could read', () => {
    expect(() => writeBook(book('u', 0, spend(1, 0n, { '1:a line\nbreak': 1 })))).toThrow()
    expect(() => writeBook(book('u', 0, spend(1, -1n)))).toThrow()
  })
})

describe('the books of two leaders', () => {
  test('have the later owner, and the highest amount of each period and process', () => {
    const mine = book('uid-1', 1, spend(3, 100n, { '3:a': 5, '4:a': 1 }))
    const theirs = book('uid-2', 2, spend(3, 100n, { '3:a': 4, '3:b': 7 }))
    const merged = book('uid-2', 2, spend(3, 100n, { '3:a': 5, '3:b': 7, '4:a': 1 }))
    expect([mergeBooks(mine, theirs), mergeBooks(theirs, mine)]).toEqual([merged, merged])
  })

  test('have the later sum of closed periods, without entries that are in it', () => {
    const older = spend(3, 100n, { '3:a': 5, '4:a': 2 })
    const newer = spend(4, 105n, { '4:a': 1 })
    expect([mergeSpend(older, newer), mergeSpend(newer, older)]).toEqual([spend(4, 105n, { '4:a': 2 }), spend(4, 105n, { '4:a': 2 })])
  })

  test('have the larger of two sums of the same periods', () => {
    expect(mergeSpend(spend(4, 105n), spend(4, 106n))).toEqual(spend(4, 106n))
  })
})

describe('any spend', () => {
  const spends = fc.record({
    openFrom: fc.nat({ max: 3 }),
    closedSpend: fc.bigInt({ min: 0n, max: 20n }),
    spent: fc
      .dictionary(fc.constantFrom('0:a', '1:a', '1:b', '2:a', '3:b'), fc.integer({ min: 1, max: 9 }), { noNullPrototype: true })
      .map((parts) => new Map(Object.entries(parts))),
  })
  const clean = (one: AccountSpend): AccountSpend => mergeSpend(one, one)

  test('is merged in any order, and twice as well as once', () => {
    fc.assert(
      fc.property(spends, spends, spends, (a, b, c) => {
        expect(mergeSpend(a, b)).toEqual(mergeSpend(b, a))
        expect(mergeSpend(mergeSpend(a, b), c)).toEqual(mergeSpend(a, mergeSpend(b, c)))
        expect(mergeSpend(mergeSpend(a, b), b)).toEqual(mergeSpend(a, b))
      }),
    )
  })

  test('lacks nothing of itself, and something of a merge that changes it', () => {
    fc.assert(
      fc.property(spends, spends, (a, b) => {
        expect(lacksSpend(a, a)).toBe(false)
        expect(lacksSpend(a, b)).toBe(!isSameSpend(mergeSpend(a, b), clean(a)))
      }),
    )
  })

  test('is as large after old periods were closed', () => {
    fc.assert(
      fc.property(spends, fc.nat({ max: 4 }), (one, before) => {
        const closed = closePeriods(clean(one), before)
        expect(totalSpent(closed)).toBe(totalSpent(clean(one)))
        expect([...closed.spent.keys()].every((key) => Number(key.split(':')[0]) >= closed.openFrom)).toBe(true)
      }),
    )
  })
})
