import { describe, expect, test } from 'vitest'
import { MAX_MICROS, parseMicros } from '#contract/values/micros.ts'
import { account } from '../../../test/support/objects.ts'
import { billingOf, ledgerCsvOf } from './billing-view.ts'
import type { OperatorLedger } from './operator-usage.ts'
import type { PaymentSettings } from './payments.ts'

const NOW = Date.UTC(2026, 10, 24, 12)
const LEDGER: OperatorLedger = {
  ...{ currency: 'EUR', asOf: '2026-11-24T12:00:00.000Z', balance: '-2.000001', incomplete: [] },
  rows: [
    { time: '', type: 'Spend', id: '', reference: 'earlier or not itemised', amount: '-1.00' },
    { time: '2026-10', type: 'Spend', id: '', reference: '', amount: '-4.00' },
    { time: '2026-11-02T10:00:00Z', type: 'TopUp', id: 'stripe-1', reference: 'pi_1', amount: '10.00' },
    { time: '2026-11-02', type: 'Spend', id: '', reference: '', amount: '-2.000001' },
    { time: '2026-11-03T10:00:00Z', type: 'Refund', id: 'stripe-2', reference: '=re_1', amount: '-5.00' },
  ],
}
const facts = (ledger: OperatorLedger | undefined, payments: PaymentSettings = { provider: 'none' }) => ({
  ...{ account: account('acme', { billing: 'Prepaid' }), ledger, currency: 'EUR', payments, nowMs: NOW },
})

describe('billing', () => {
  test('has all movements with the newest first, and the balance after the newest is the balance', () => {
    const { balance, movements, isPrepaid, account: name } = billingOf(facts(LEDGER))
    expect([name, isPrepaid, balance]).toEqual(['acme', true, '-2.000001'])
    expect(movements.map((one) => [one.amount, one.balance])).toEqual([
      ['-5.00', '-2.000001'],
      ['-2.000001', '2.999999'],
      ['10.00', '5.00'],
      ['-4.00', '-5.00'],
      ['-1.00', '-1.00'],
    ])
  })

  test('counts as spent this month what the days of this UTC month have, and no refund', () => {
    expect(billingOf(facts(LEDGER)).spentThisMonth).toBe('2.000001')
    expect(billingOf(facts({ ...LEDGER, rows: [] })).spentThisMonth).toBe('0.00')
  })

  test('of an account that the operator has not accepted yet is empty', () => {
    expect(billingOf(facts(undefined))).toMatchObject({ balance: '0.00', currency: 'EUR', movements: [], asOf: '2026-11-24T12:00:00.000Z' })
    expect(ledgerCsvOf(undefined, 'EUR')).toBe('time,type,id,reference,amount,balance,currency\r\n')
  })

  test('names a line for the administrator where the person is one, and another line after each top-up', () => {
    const manual = { provider: 'manual', command: (name: string, id: string) => `credit add ${name} --id ${id}` } as const
    expect(billingOf(facts(LEDGER, manual)).payments).toEqual({
      ...{ provider: 'manual', amounts: [], command: 'credit add acme --id top-up-acme-3' },
    })
    expect(billingOf(facts(undefined, manual)).payments.command).toBe('credit add acme --id top-up-acme-1')
    expect(billingOf(facts(LEDGER, { provider: 'manual' })).payments).toEqual({ provider: 'manual', amounts: [] })
  })

  test('says which amounts may be paid, and between which bounds, and tells no secret of the payments program', () => {
    const bounds = { amounts: ['10', '25'], least: parseMicros('5') ?? MAX_MICROS, most: parseMicros('1000') ?? MAX_MICROS }
    const payments = { ...({ provider: 'stripe', url: 'http://payments', token: 'secret' } as const), ...bounds }
    expect(billingOf(facts(LEDGER, payments)).payments).toEqual({
      ...{ provider: 'stripe', amounts: ['10', '25'], least: '5.00', most: '1000.00' },
    })
  })

  test('as a CSV file has the oldest movement first, and runs as no formula', () => {
    const lines = ledgerCsvOf(LEDGER, 'EUR').split('\r\n')
    expect(lines[1]).toBe(',Spend,,earlier or not itemised,-1.00,-1.00,EUR')
    expect(lines[5]).toBe("2026-11-03T10:00:00Z,Refund,stripe-2,'=re_1,-5.00,-2.000001,EUR")
  })
})
