import { describe, expect, it } from 'vitest'
import type { Movement, PaymentProvider } from '../../server/page-data/billing.ts'
import { ledgerRows, ledgerSum } from './ledger-rows.ts'

const movement = (more: Partial<Movement>): Movement => ({
  ...{ time: '2026-11-24T10:00:00Z', type: 'TopUp', id: 'stripe-1', reference: '', amount: '10.00', balance: '10.00' },
  ...more,
})
const spend = (time: string, amount = '-1.00'): Movement => movement({ type: 'Spend', time, amount, id: '' })
const words = (...movements: Movement[]) =>
  ledgerRows({ movements, asOf: '2026-11-24T12:03:40Z', payments: { provider: 'stripe', amounts: [] } }).map(({ date, title, note }) => [
    date,
    title,
    note,
  ])

describe('a movement', () => {
  it.each<[Movement, string, string]>([
    [movement({ reference: 'pi_7' }), 'Top-up', 'pi_7'],
    [movement({ type: 'Grant', reference: 'Welcome credit' }), 'Credit granted', 'Welcome credit'],
    [movement({ type: 'Refund', amount: '-5.00' }), 'Refund', ''],
    [movement({ type: 'Dispute', amount: '-5.00' }), 'Dispute opened by the bank', ''],
    [movement({ type: 'Dispute', amount: '5.00' }), 'Dispute decided for you', ''],
    [movement({ type: 'Adjustment' }), 'Adjustment', ''],
  ])('%j says what it was', (each, title, note) => {
    expect(words(each)).toEqual([['24 Nov', title, note]])
  })

  it.each<[PaymentProvider, Movement, string | undefined]>([
    ['stripe', movement({ reference: 'pi_7' }), '/receipts/pi_7'],
    ['stripe', movement({ reference: 'Bank transfer of 3 November' }), undefined],
    ['stripe', movement({ type: 'Refund', reference: 're_7' }), undefined],
    ['manual', movement({ reference: 'pi_7' }), undefined],
  ])('has a receipt where the payment provider took it: %s %j', (provider, each, receipt) => {
    const [row] = ledgerRows({ movements: [each], asOf: '2026-11-24T12:03:40Z', payments: { provider, amounts: [] } })
    expect(row?.receipt).toBe(receipt)
  })

  it('of last year says the year', () => {
    expect(words(movement({ time: '2025-12-31T23:00:00Z' }))[0]?.[0]).toBe('31 Dec 2025')
  })
})

describe('usage', () => {
  it('of today says until when it is counted, that of other days does not', () => {
    expect(words(spend('2026-11-24'), spend('2026-11-23'))).toEqual([
      ['24 Nov', 'Usage', 'So far, as of 12:03 UTC'],
      ['23 Nov', 'Usage', ''],
    ])
  })

  it('of a month names the month, or the days of which no row is its own', () => {
    expect(words(spend('2026-10-24'), spend('2026-10'), spend('2026-09'), spend('2025-12'))).toEqual([
      ['24 Oct', 'Usage', ''],
      ['Oct', 'Usage, 1–23 October', ''],
      ['Sep', 'Usage in September', ''],
      ['Dec 2025', 'Usage in December 2025', ''],
    ])
  })

  it('of the first day of a month alone is that day', () => {
    expect(words(spend('2026-10-02'), spend('2026-10'))[1]?.[1]).toBe('Usage, 1 October')
  })

  it('that is not itemised has no date', () => {
    expect(words(spend(''))).toEqual([['', 'Usage, earlier or not itemised', '']])
  })
})

it('the amounts and balances are exact, and the sum is that of all amounts', () => {
  const movements = [spend('2026-11-24', '-0.000012'), movement({})]
  expect(ledgerRows({ movements, asOf: '2026-11-24T12:00:00Z', payments: { provider: 'stripe', amounts: [] } })[0]).toMatchObject({
    amount: -12n,
    balance: 10_000_000n,
  })
  expect(ledgerSum(movements)).toBe(9_999_988n)
})
