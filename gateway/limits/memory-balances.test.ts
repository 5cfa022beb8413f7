import fc from 'fast-check'
import { expect, test } from 'vitest'
import { callOf } from '../../test/contract/ledger-store.suite.ts'
import type { BalanceRequest } from '#contract/ledger/ledger-call.ts'
import { halvesOf } from '#contract/values/signed-micros.ts'
import { MemoryBalances } from './memory-balances.ts'

/** Sums near zero, near 2^53, near a multiple of 10^15, and of 28 digits. */
const sums = fc
  .record({
    base: fc.constantFrom(0n, 10n ** 15n, 2n ** 53n, 7n * 10n ** 15n, 10n ** 27n),
    more: fc.bigInt({ min: -(2n ** 54n), max: 2n ** 54n }),
    few: fc.bigInt({ min: -5n, max: 5n }),
    isNear: fc.boolean(),
  })
  .map(({ base, more, few, isNear }) => base + (isNear ? few : more))
const amounts = fc.oneof(fc.nat({ max: 10 }), fc.integer({ min: 0, max: 10 ** 15 - 1 }))

const decided = fc.record({
  closedSpend: sums.map((sum) => (sum < 0n ? -sum : sum)),
  /** Credits minus closed spend. */
  difference: sums,
  spent: amounts,
  held: amounts,
  need: amounts.map((amount) => Math.max(1, amount)),
})

test('the decision over sums in two numbers is that over exact integers', () => {
  const seen = new Map<string, number>()
  const property = fc.property(decided, ({ closedSpend, difference, spent, held, need }) => {
    const balances = new MemoryBalances()
    balances.merge('s', { openFrom: 0, closedSpend, spent: new Map([['1:p2', spent]]) }, true)
    const request: BalanceRequest = { credits: halvesOf(closedSpend + difference), period: 1, held, spent: [], need, ask: need, want: 0 }
    const balance = balances.report(callOf({ balance: request }))
    const unspent = difference - BigInt(spent)
    const short = unspent - BigInt(held) >= need ? 'No' : unspent <= 0n ? 'Exhausted' : unspent < need ? 'TooSmall' : 'Held'
    expect(balance?.shortage(request)).toBe(short)
    const reply = balance?.grant('p1', request, { isShort: short !== 'No', live: 1 })
    expect(reply?.grant).toBe(short === 'No' ? need : 0)
    seen.set(short, (seen.get(short) ?? 0) + 1)
  })
  fc.assert(property, { numRuns: 3_000 })
  expect(seen.size).toBe(4)
})

test('merges of random books, in any order and twice, give one balance', () => {
  const books = fc.record({
    openFrom: fc.nat({ max: 3 }),
    closedSpend: fc.bigInt({ min: 0n, max: 2n ** 60n }),
    spent: fc
      .array(fc.tuple(fc.nat({ max: 4 }), fc.constantFrom('p1', 'p2'), fc.nat({ max: 9 })), { maxLength: 6 })
      .map((rows) => new Map(rows.map(([period, process, amount]) => [`${period}:${process}`, amount]))),
  })
  const property = fc.property(fc.array(books, { minLength: 1, maxLength: 5 }), fc.infiniteStream(fc.nat()), (all, order) => {
    const merged = (some: typeof all) => {
      const balances = new MemoryBalances()
      for (const one of some) balances.merge('s', one, true)
      return balances.read('s')
    }
    const shuffled = [...all, ...all].map((one) => ({ one, at: order.next().value })).toSorted((a, b) => a.at - b.at)
    expect(merged(shuffled.map(({ one }) => one))).toEqual(merged(all))
  })
  fc.assert(property, { numRuns: 500 })
})
