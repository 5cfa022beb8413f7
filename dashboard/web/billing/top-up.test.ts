import { describe, expect, it } from 'vitest'
import type { Billing, Movement } from '../../server/page-data/billing.ts'
import { moneyIn } from '../micros.ts'
import { amountError, isWaiting, missingAfter, offerOf, OTHER, paymentNotice, returnOf } from './top-up.ts'

const euro = moneyIn('EUR')
const AMOUNTS = ['10.00', '25.00', '50.00', '100.00']
const BOUNDS = { least: 5_000_000n, most: 1_000_000_000n }
const offer = (balance: string, isPrepaid = true) =>
  offerOf({ isPrepaid, balance, payments: { provider: 'stripe', amounts: AMOUNTS } }, euro.cent)

describe('the amounts', () => {
  it('are all that the server offers', () => {
    expect(offer('5.00')).toEqual({ amounts: AMOUNTS, usual: '50.00', isTooSmall: false, bounds: undefined })
  })

  it('start, below zero, where calls are answered again, and the least of them is picked', () => {
    expect(offer('-24.99')).toMatchObject({ amounts: ['25.00', '50.00', '100.00'], usual: '25.00', isTooSmall: false })
    expect(offer('-25.00').amounts).toEqual(['50.00', '100.00'])
  })

  it('are all offered where none is enough, and the page says so', () => {
    expect(offer('-500.00')).toMatchObject({ amounts: AMOUNTS, usual: '100.00', isTooSmall: true })
  })

  it('give way to one that the person types, where none of them is enough and a typed one can be', () => {
    const typed = (balance: string) =>
      offerOf({ isPrepaid: true, balance, payments: { provider: 'stripe', amounts: AMOUNTS, least: '5.00', most: '1000.00' } }, euro.cent)
    expect(typed('5.00')).toMatchObject({ usual: '50.00', bounds: BOUNDS })
    expect(typed('-500.00')).toEqual({ amounts: AMOUNTS, usual: OTHER, isTooSmall: false, bounds: BOUNDS })
    expect(typed('-1000.00')).toMatchObject({ usual: '100.00', isTooSmall: true })
  })

  it('do not depend on the balance where nobody pays in advance', () => {
    expect(offer('-24.99', false).amounts).toEqual(AMOUNTS)
  })

  it('may be none', () => {
    expect(offerOf({ isPrepaid: true, balance: '0.00', payments: { provider: 'manual', amounts: [] } }, euro.cent)).toEqual({
      ...{ amounts: [], usual: '', isTooSmall: false, bounds: undefined },
    })
  })
})

describe('an amount that the person types', () => {
  it.each(['5', '5.00', ' 42.50 ', '1,000.00', '1000', '5.010000'])('%j may be paid', (text) => {
    expect(amountError(text, BOUNDS, euro)).toBeUndefined()
  })

  it.each([
    ...['', 'ten', '25,00', '-25', '1e3', '25.005', '0x19', '€25'].map((text) => [text, 'Write an amount like 25.00.']),
    ...['0', '4.99', '1000.01', '99999999'].map((text) => [text, 'Choose an amount from €5 to €1,000.']),
  ])('%j is not sent, and the page says: %s', (text, words) => {
    expect(amountError(text, BOUNDS, euro)).toBe(words)
  })

  it('has no cents where the currency has none', () => {
    const yen = moneyIn('JPY')
    expect(amountError('500.50', BOUNDS, yen)).toBe('Write an amount like 2500.')
    expect(amountError('500', BOUNDS, yen)).toBeUndefined()
  })

  it('that is not enough says what is missing, to the cent', () => {
    const left = (text: string, isPrepaid = true) => missingAfter(text, { isPrepaid, balance: '-63.39' }, euro.cent)
    expect([left('10'), left('63.39'), left('63.40'), left('ten'), left('10', false)]).toEqual([53_400_000n, 10_000n, 0n, 0n, 0n])
  })
})

describe('back from the payment provider', () => {
  const topUp: Movement = { time: '2026-11-24T11:58:00Z', type: 'TopUp', id: 'x', reference: 'pi_1', amount: '50.00', balance: '50.00' }
  const billing = (more: Partial<Billing> = {}) => ({ movements: [], asOf: '2026-11-24T12:00:00Z', ...more })
  const pending = [{ time: '2026-11-24T11:59:00Z', amount: '100.00', method: 'SEPA debit' }]

  const paid = { outcome: 'paid', session: 'cs_1' } as const
  const cancelled = { outcome: 'cancelled', session: '' } as const
  type State = Parameters<typeof isWaiting>[2]
  const notice = (each: ReturnType<typeof billing>, returned: typeof paid | typeof cancelled | undefined, state?: State) =>
    paymentNotice(each, { returned, state, money: euro })

  it.each([
    ['?top-up=paid&session=cs_1', paid],
    ['?top-up=cancelled', cancelled],
    ['?top-up=free', undefined],
    ['', undefined],
  ])('%s means %j', (search, outcome) => {
    expect(returnOf(search)).toEqual(outcome)
  })

  it('without paying, nothing was charged, and nothing is waited for', () => {
    expect(notice(billing(), cancelled)?.title).toBe('Nothing was charged')
    expect(isWaiting(billing(), cancelled, undefined)).toBe(false)
  })

  it('the page waits until the amount is in the balance, and then names the amount', () => {
    for (const state of [undefined, 'open', 'paid'] as const) {
      expect([notice(billing(), paid, state)?.title, isWaiting(billing(), paid, state)]).toEqual(['The payment is being confirmed', true])
    }
    const credited = billing({ movements: [topUp] })
    expect(notice(credited, paid, 'paid')).toMatchObject({ look: 'ok', title: '€50.00 is in the balance' })
    expect(isWaiting(credited, paid, 'paid')).toBe(false)
  })

  it('an older top-up is not taken for this one', () => {
    expect(isWaiting(billing({ movements: [{ ...topUp, time: '2026-11-24T11:00:00Z' }] }), paid, undefined)).toBe(true)
  })

  it.each([
    ['failed', 'danger', 'The payment failed'],
    ['expired', 'info', 'Nothing was charged'],
  ] as const)('a payment that has %s is said to have added nothing, and is not waited for', (state, look, title) => {
    expect(notice(billing(), paid, state)).toMatchObject({ look, title })
    expect(isWaiting(billing(), paid, state)).toBe(false)
  })

  it('a payment that takes days is named, and is not said to be in the balance', () => {
    expect(notice(billing(), paid, 'processing')?.title).toBe('The payment is on its way')
    expect(notice(billing({ pending }), paid)?.title).toBe('€100.00 is on its way')
    expect(notice(billing({ pending: [...pending, ...pending] }), undefined)?.title).toBe('€200.00 in 2 payments is on its way')
    expect(isWaiting(billing({ pending }), undefined, undefined)).toBe(true)
  })

  it('nothing is said to a person who comes from elsewhere', () => {
    expect(notice(billing({ movements: [topUp] }), undefined)).toBeUndefined()
  })
})
