import { describe, expect, test } from 'vitest'
import { CreditIndex } from './credit-index.ts'

describe('what accounts have been credited', () => {
  test('is the sum of their Credits, refunds included', () => {
    const index = new CreditIndex()
    index.put('a', 'acme', 10)
    index.put('b', 'acme', -3)
    index.put('c', 'beta', 5)
    expect([index.sumOf('acme'), index.grossOf('acme'), index.sumOf('beta'), index.sumOf('nobody')]).toEqual([7n, 10n, 5n, 0n])
    expect([index.has('a'), index.has('d')]).toEqual([true, false])
  })

  test('follows a Credit that turns out to have another amount, or to be of another account', () => {
    const index = new CreditIndex()
    expect(index.put('a', 'acme', 10)).toEqual(new Set(['acme']))
    expect(index.put('a', 'acme', 10)).toEqual(new Set())
    expect(index.put('a', 'acme', 4)).toEqual(new Set(['acme']))
    expect(index.put('a', 'beta', 4)).toEqual(new Set(['acme', 'beta']))
    expect([index.sumOf('acme'), index.sumOf('beta')]).toEqual([0n, 4n])
  })

  test('is exact beyond 2^53, and for any number of Credits', () => {
    const index = new CreditIndex()
    const most = 999_999_999_999_999
    for (let n = 0; n < 5_000; n += 1) index.put(`credit-${n}`, `account-${n % 7}`, most)
    expect(index.sumOf('account-0')).toBe(BigInt(most) * 715n)
  })
})
