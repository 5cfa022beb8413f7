import { describe, expect, test } from 'vitest'
import type { AccountSpend, LedgerBalance } from '#contract/ledger/account-spend.ts'
import { NO_SPEND } from '../shards/account-book.ts'
import { believed, foldStep, hasLostSpend, isNearlyFull, mostSpent, spendIn } from './balance-plan.ts'

const spend = (openFrom: number, closedSpend: bigint, spent: Record<string, number> = {}): AccountSpend => ({
  ...{ openFrom, closedSpend },
  spent: new Map(Object.entries(spent)),
})
const read = (openFrom: number | undefined, period: number, its: Partial<LedgerBalance> = {}): LedgerBalance => ({
  ...{ openFrom, period, closedSpend: 0n, spent: new Map(), holders: new Map() },
  ...its,
})

describe('the spend in the store', () => {
  test('is that of its open periods, with the sum of the closed ones', () => {
    expect(spendIn(read(2, 3, { closedSpend: 7n, spent: new Map([['2:a', 5]]) }))).toEqual(spend(2, 7n, { '2:a': 5 }))
  })

  test('of a key that is not ready is what processes have reported: its sum is of unknown periods', () => {
    expect(spendIn(read(undefined, 3, { closedSpend: 7n, spent: new Map([['2:a', 5]]) }))).toEqual(spend(0, 0n, { '2:a': 5 }))
  })

  test.each<[string, Partial<LedgerBalance>]>([
    ['a name that no process has', { spent: new Map([['2:a b', 5]]) }],
    ['no number', { spent: new Map([['2:a', Number.NaN]]) }],
    ['a negative number', { spent: new Map([['2:a', -1]]) }],
    ['a negative sum', { closedSpend: -1n }],
  ])('with %s is damage', (_, its) => {
    expect(spendIn(read(2, 3, its))).toBeUndefined()
  })
})

test('of too many parts of the spend, which only an attacker writes, the largest ones count, and periods are closed early', () => {
  const parts = Array.from({ length: 2_100 }, (_, at) => [`2:p${at}`, at + 1] as const)
  const spend = spendIn(read(2, 3, { spent: new Map(parts) }))
  expect(Math.min(...(spend?.spent.values() ?? []))).toBe(101)
  expect([spend && isNearlyFull(spend), isNearlyFull({ ...NO_SPEND, spent: new Map(parts.slice(0, 500)) })]).toEqual([true, false])
})

test('of parts with long names, which only an attacker writes, so many of the largest ones count that the neighbors in a Secret keep their room', () => {
  const parts = Array.from({ length: 1_000 }, (_, at) => [`2:${String(at).padStart(126, 'x')}`, at + 1] as const)
  const spend = spendIn(read(2, 3, { spent: new Map(parts) }))
  expect([spend?.spent.size, Math.min(...(spend?.spent.values() ?? []))]).toEqual([512, 489])
})

describe('the books', () => {
  const mine = spend(2, 10n, { '2:a': 5 })

  test('believe what the store has, whichever of the two knows more', () => {
    expect(believed(mine, spend(2, 10n, { '2:a': 3, '3:b': 4 }), undefined)).toEqual({
      spend: spend(2, 10n, { '2:a': 5, '3:b': 4 }),
      heldBack: 0n,
    })
    expect(believed(mine, NO_SPEND, undefined)).toEqual({ spend: mine, heldBack: 0n })
  })

  test('hold back growth that the credits of the account could not pay, and believe small growth beside it', () => {
    const forged = spend(2, 10n, { '2:a': 7, '3:b': 4, '3:evil': 1_000_000 })
    expect(believed(mine, forged, mostSpent(10n))).toEqual({ spend: spend(2, 10n, { '2:a': 7, '3:b': 4 }), heldBack: 1_000_000n })
  })

  test('hold back a sum of closed periods that is too high', () => {
    expect(believed(mine, spend(3, 1_000n), mostSpent(10n))).toEqual({ spend: mine, heldBack: 985n })
  })

  test('believe spend above the credits that is durable already', () => {
    expect(believed(mine, mine, 1n)).toEqual({ spend: mine, heldBack: 0n })
  })

  test('do not believe a sum of closed periods that lacks what they know', () => {
    expect(believed(mine, spend(9, 0n), undefined)).toBeUndefined()
    expect(believed(mine, spend(3, 15n), undefined)).toEqual({ spend: spend(3, 15n), heldBack: 0n })
  })

  test('find that the store has lost spend, but not that it has yet to close a period', () => {
    expect(hasLostSpend(spend(2, 10n, { '2:a': 4 }), mine)).toBe(true)
    expect(hasLostSpend(spend(2, 9n, { '2:a': 5 }), mine)).toBe(true)
    expect(hasLostSpend(spend(1, 8n, { '1:a': 2, '2:a': 5 }), mine)).toBe(false)
    expect(hasLostSpend(spend(1, 8n, { '1:a': 1, '2:a': 5 }), mine)).toBe(true)
  })
})

describe('closing periods', () => {
  const mine = spend(2, 10n, { '2:a': 5 })

  test('begins with another period in the store, when it is time and something was spent', () => {
    expect(foldStep(mine, read(2, 3), true)).toEqual({ do: 'raise', period: 4 })
    expect(foldStep(mine, read(2, 3), false)).toBeUndefined()
    expect(foldStep(spend(2, 10n), read(2, 3), true)).toBeUndefined()
  })

  test('goes on from a read after that, whichever leader began', () => {
    expect(foldStep(mine, read(2, 4), false)).toEqual({ do: 'close', period: 3 })
    expect(foldStep(mine, read(2, 9), false)).toEqual({ do: 'close', period: 8 })
  })

  test('waits while books and store do not agree on the first open period', () => {
    expect([foldStep(mine, read(1, 4), true), foldStep(mine, read(undefined, 4), true)]).toEqual([undefined, undefined])
  })

  test('comes early for an account whose sum comes near to what numbers can hold', () => {
    expect(isNearlyFull(spend(2, 0n, { '2:a': 4e15, '2:b': 1 }))).toBe(true)
    expect(isNearlyFull(spend(2, 10n ** 20n, { '2:a': 4e15 }))).toBe(false)
  })
})
