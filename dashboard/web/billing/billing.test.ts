/** The words of Billing for each state of the balance and each way of payment, as a browser gets them. */
import { createElement } from 'react'
import { describe, expect, it } from 'vitest'
import type { Billing, Movement } from '../../server/page-data/billing.ts'
import { htmlOf, wordsOf } from '../static-page.ts'
import { BillingPage } from './billing.tsx'

const movement = (more: Partial<Movement>): Movement => ({
  ...{ time: '2026-11-24T08:00:00Z', type: 'TopUp', id: 'x', reference: '', amount: '150.00', balance: '150.00' },
  ...more,
})
const MOVEMENTS = [
  movement({ time: '2026-11-24', type: 'Spend', amount: '-1.86', balance: '138.140000' }),
  movement({ time: '2026-11-24T08:00:00Z', type: 'Refund', amount: '-10.00', reference: 're_1', balance: '140.00' }),
  movement({ time: '2026-11-03T08:00:00Z', reference: 'pi_1' }),
]
const BILLING: Billing = {
  ...{ account: 'u-4kq7', currency: 'EUR', isPrepaid: true, balance: '138.14', spentThisMonth: '1.86', asOf: '2026-11-24T12:03:00Z' },
  ...{ incomplete: [], movements: MOVEMENTS, payments: { provider: 'stripe', amounts: ['10.00', '50.00', '100.00'] } },
}
const html = (more: Partial<Billing> = {}, path = '/billing'): string =>
  htmlOf(createElement(BillingPage), { path, data: [[['billing'], { ...BILLING, ...more }]] })
const shown = (...args: Parameters<typeof html>): string => wordsOf(html(...args))

describe('the ledger', () => {
  it('has every movement with the balance after it, and its sum is the balance above', () => {
    const text = shown()
    expect(text).toContain('Balance €138.14')
    expect(text).toContain('24 Nov Usage So far, as of 12:03 UTC −1.86 138.14')
    expect(text).toContain('24 Nov Refund re_1 −10.00 140.00')
    expect(text).toContain('3 Nov Top-up pi_1 · Receipt +150.00 150.00')
    expect(text).toContain('Sum of all movements = balance 138.14')
  })

  it('that does not add up to the balance does not say that it does', () => {
    const text = shown({ balance: '138.13' })
    expect(text).toContain('Sum of all movements 138.14')
    expect(text).not.toContain('= balance')
  })

  it('can be downloaded', () => {
    expect(html()).toMatch(
      /<a href="\/api\/billing\/ledger.csv" download="ledger.csv"[^>]*>Download CSV<span class="visually-hidden"> of the ledger</,
    )
  })

  it('without a movement says what will be there', () => {
    expect(shown({ movements: [], balance: '0.00' })).toContain('No movement yet.')
  })

  it('shows a reference with HTML as text', () => {
    expect(html({ movements: [movement({ reference: '<img src=x>' })] })).toContain('&lt;img src=x&gt;')
  })
})

describe('top up', () => {
  it('offers the amounts of the server, with one picked', () => {
    const amounts = [...html().matchAll(/<input type="radio"[^>]*>/g)].map(([input]) => [
      /value="([^"]*)"/.exec(input)?.[1],
      input.includes('checked'),
    ])
    expect(amounts).toEqual([
      ['10.00', false],
      ['50.00', true],
      ['100.00', false],
    ])
    expect(shown()).toContain('€10 €50 €100')
  })

  it('offers another amount where the server says what one payment may be', () => {
    const payments = { provider: 'stripe', amounts: ['10.00'], least: '5.00', most: '1000.00' } as const
    expect(shown({ payments })).toContain('€10 Other')
    expect(shown({ payments, balance: '-20.00' })).toContain('Other amount')
    expect(html({ payments })).not.toContain('name="amount"')
  })

  it.each([
    ['manual', 'Ask your administrator: credit is added by the people who run this installation.'],
    ['none', 'Nothing is paid here.'],
  ] as const)('with %s payments says whom to ask, and the name to give', (provider, words) => {
    const text = shown({ payments: { provider, amounts: [] } })
    expect(text).toContain(words)
    expect(text).toContain('Account u-4kq7 Copy')
    expect(html({ payments: { provider, amounts: [] } })).not.toContain('<form')
  })

  it('has the command where the person is the administrator', () => {
    const command = 'headgate credit add u-4kq7 10.00 --id t-1 --local'
    expect(shown({ payments: { provider: 'manual', amounts: [], command } })).toContain(command)
  })

  it('offers nothing to an account that does not pay in advance', () => {
    expect(html({ isPrepaid: false })).not.toContain('Top up')
    expect(shown({ isPrepaid: false })).toContain('this account does not pay in advance')
  })

  it('below zero starts where calls are answered again', () => {
    const below = [movement({ type: 'Dispute', amount: '-213.39', balance: '-63.39' }), movement({})]
    const text = shown({ balance: '-63.39', movements: below })
    expect(text).toContain('All keys are stopped: the balance is below zero Your bank took back a top-up.')
    expect(text).toContain('Balance −€63.39 Below zero since 24 November, 08:00 UTC.')
    expect(text).toContain('Amount €100 Top up')
  })
})

describe('a payment on its way', () => {
  const pending = [{ time: '2026-11-24T12:00:00Z', amount: '100.00', method: 'SEPA debit' }]

  it('is listed, and is not counted', () => {
    const text = shown({ pending })
    expect(text).toContain('€100.00 is on its way')
    expect(text).toContain('Balance €138.14 €100.00 pending, not counted yet.')
    expect(text).toContain('24 Nov Top-up SEPA debit Pending +100.00 not yet')
    expect(text).toContain('Sum of all movements = balance 138.14')
  })

  it.each([
    ['/billing?top-up=cancelled', 'Nothing was charged'],
    ['/billing?top-up=paid', 'The payment is being confirmed'],
  ])('%s says "%s"', (path, words) => {
    expect(shown({}, path)).toContain(words)
  })
})

it('an account that does not pay in advance is not alarmed by a negative balance', () => {
  const text = shown({
    isPrepaid: false,
    balance: '-97.25',
    movements: [movement({ type: 'Spend', time: '2026-11-24', amount: '-97.25', balance: '-97.25' })],
  })
  expect(text).not.toContain('All keys are stopped')
  expect(text).toContain('Balance −€97.25 Your calls do not depend on the balance')
})

it('days of which counts are lost are named', () => {
  expect(shown({ incomplete: ['2026-11-23'] })).toContain('Up to ten seconds of calls are missing on 23 November')
})
