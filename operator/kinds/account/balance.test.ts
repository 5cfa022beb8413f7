import { describe, expect, test } from 'vitest'
import type { AccountStatus } from '#api/account.ts'
import { formatSumAmount } from '#contract/values/signed-micros.ts'
import { account } from '../../../test/support/objects.ts'
import {
  BALANCE_NOTES,
  type BalanceFacts,
  type BalanceReading,
  balanceStatus,
  crossingOf,
  isExhausted,
  lacksBalance,
  urgencyOf,
} from './balance.ts'

const NOW = Date.UTC(2026, 0, 14)
const UNIT = 1_000_000n

function reading(balance: bigint, credits = 25n * UNIT): BalanceReading {
  return { balance, credits, spent: credits - balance, atMs: NOW }
}

/** @param shown what the status shows; undefined: a new Account */
function facts(shown?: BalanceReading, billing: 'Prepaid' | 'Unmetered' = 'Prepaid', lowBalance?: bigint): BalanceFacts {
  const base: BalanceFacts = { account: account('acme', { billing }), currency: 'EUR', lowBalance }
  if (shown === undefined) return base
  const money = balanceStatus(base, shown)
  const condition = { observedGeneration: 1, lastTransitionTime: '2026-01-14T00:00:00Z', message: '' }
  const status: AccountStatus = {
    ...money,
    conditions: [
      { type: 'Ready', status: 'True', reason: 'Ready', ...condition },
      ...(isExhausted(base, money)
        ? [{ type: 'BalanceExhausted', status: 'True' as const, reason: 'BalanceExhausted', ...condition }]
        : []),
    ],
  }
  return { ...base, account: { ...base.account, status } }
}

const crossing = (before: bigint | undefined, after: bigint, lowBalance?: bigint): string | undefined => {
  const present = facts(before === undefined ? undefined : reading(before), 'Prepaid', lowBalance)
  return crossingOf(present, balanceStatus(present, reading(after)))
}

describe('the balance in a status', () => {
  test('is shown with its currency and time, and with what was spent', () => {
    expect(balanceStatus(facts(), reading(-1_500_000n))).toEqual({
      balance: { amount: '-1.50', currency: 'EUR', asOf: '2026-01-14T00:00:00Z' },
      spent: '26.50',
    })
  })

  test('is not shown for an account that pays nothing in advance and never had a Credit', () => {
    expect(balanceStatus(facts(undefined, 'Unmetered'), reading(-UNIT, 0n))).toEqual({ spent: '1.00' })
    expect(balanceStatus(facts(undefined, 'Unmetered'), reading(UNIT))).toHaveProperty('balance.amount', '1.00')
  })

  test('stays as it is without a reading', () => {
    const { account: present } = facts(reading(UNIT))
    const { balance, spent } = present.status ?? {}
    expect(balanceStatus({ ...facts(), account: present }, undefined)).toEqual({ balance, spent })
    expect(balanceStatus(facts(), undefined)).toEqual({})
  })

  test.each([
    [10_000n, false],
    [9_999n, true],
    [0n, true],
    [-UNIT, true],
  ])('of %s micro-units counts as used up: %s', (balance, isUsedUp) => {
    expect(isExhausted(facts(), balanceStatus(facts(), reading(balance)))).toBe(isUsedUp)
  })

  test('never counts as used up for an account that pays nothing in advance', () => {
    expect(isExhausted(facts(undefined, 'Unmetered'), balanceStatus(facts(undefined, 'Unmetered'), reading(-UNIT)))).toBe(false)
  })
})

describe('an Event', () => {
  test('is written for each crossing, and for no other change', () => {
    expect([crossing(UNIT, 0n), crossing(0n, UNIT), crossing(UNIT, 2n * UNIT), crossing(-UNIT, 0n)]).toEqual([
      'BalanceExhausted',
      'BalanceRestored',
      undefined,
      undefined,
    ])
  })

  test('is written when a balance becomes low, and not when it was restored from there', () => {
    const low = 5n * UNIT
    expect([crossing(5n * UNIT, low - 1n, low), crossing(4n * UNIT, 3n * UNIT, low), crossing(4n * UNIT, 6n * UNIT, low)]).toEqual([
      'BalanceLow',
      undefined,
      undefined,
    ])
    expect([crossing(0n, 4n * UNIT, low), crossing(4n * UNIT, 0n, low), crossing(6n * UNIT, 0n, low)]).toEqual([
      'BalanceRestored',
      'BalanceExhausted',
      'BalanceExhausted',
    ])
  })

  test('is not written for a new account, which begins without a balance', () => {
    expect(crossing(undefined, 0n)).toBeUndefined()
  })

  test('is written for an account that works and has spent more than it has, once it pays in advance', () => {
    const present = facts(reading(-UNIT, 0n), 'Unmetered')
    const prepaid = { ...present, account: { ...present.account, spec: { ...present.account.spec, billing: 'Prepaid' as const } } }
    expect(crossingOf(prepaid, balanceStatus(prepaid, reading(-UNIT, 0n)))).toBe('BalanceExhausted')
    expect(crossingOf(present, balanceStatus(present, reading(-UNIT, 0n)))).toBeUndefined()
  })

  test('has no amount in its note', () => {
    for (const note of Object.values(BALANCE_NOTES)) expect(note.replace('402', '')).not.toMatch(/\d/)
  })
})

describe('a reading', () => {
  test('is in the status at once after a crossing or a Credit, and where the status has none', () => {
    const shown = reading(UNIT)
    expect(urgencyOf(facts(shown), reading(0n), shown)).toBe('AtOnce')
    expect(urgencyOf(facts(shown), reading(2n * UNIT, 26n * UNIT), shown)).toBe('AtOnce')
    expect(urgencyOf(facts(), reading(UNIT), undefined)).toBe('AtOnce')
  })

  test('is in the status later after ordinary spend, and never if it changes nothing', () => {
    const shown = reading(2n * UNIT)
    expect(urgencyOf(facts(shown), reading(UNIT), shown)).toBe('Later')
    expect(urgencyOf(facts(shown), { ...shown, atMs: NOW + 60_000 }, undefined)).toBe('Never')
  })

  test('is wanted by a status without spend, and by one of a prepaid account without a balance', () => {
    expect([lacksBalance(facts().account), lacksBalance(facts(reading(UNIT)).account)]).toEqual([true, false])
    expect(lacksBalance(facts(reading(0n, 0n), 'Unmetered').account)).toBe(false)
  })
})

test.each([0n, 1n, -1n, 10_000n, -123_456_789n, 10n ** 24n])('the state of a shown amount is that of the amount: %s', (balance) => {
  const present = facts(undefined, 'Prepaid', balance + 1n)
  const shown = balanceStatus(present, reading(balance))
  expect(shown.balance?.amount).toBe(formatSumAmount(balance))
  const expected = balance < 10_000n ? 'BalanceExhausted' : 'BalanceLow'
  expect(crossingOf(facts(reading(10n ** 25n), 'Prepaid', balance + 1n), shown)).toBe(expected)
})
