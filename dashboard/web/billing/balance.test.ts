import { describe, expect, it } from 'vitest'
import type { Billing, Movement } from '../../server/page-data/billing.ts'
import { moneyIn } from '../micros.ts'
import { isUsedUp, leastTopUp, paceWords, sinceWords, usedUpWords } from './balance.ts'

const euro = moneyIn('EUR')
const movement = (more: Partial<Movement>): Movement => ({
  ...{ time: '2026-11-24T11:47:00Z', type: 'TopUp', id: 'x', reference: '', amount: '10.00', balance: '10.00' },
  ...more,
})
const billing = (balance: string, movements: readonly Movement[], more: Partial<Billing> = {}): Billing => ({
  ...{ account: 'u-1', currency: 'EUR', isPrepaid: true, balance, spentThisMonth: '0.00', asOf: '2026-11-24T12:00:00Z', incomplete: [] },
  ...{ movements, payments: { provider: 'stripe', amounts: ['10.00'] } },
  ...more,
})
const spend = (time: string, amount: string, balance = '1.00'): Movement => movement({ type: 'Spend', time, amount, balance })

describe('a balance', () => {
  it.each([
    ['0.01', false],
    ['0.009999', true],
    ['0.00', true],
    ['-5.00', true],
  ])('of %s stops calls: %s', (balance, isStopped) => {
    expect(isUsedUp(billing(balance, [movement({})]))).toBe(isStopped)
  })

  it('of a new account, and of one that does not pay in advance, stops nothing', () => {
    expect([isUsedUp(billing('0.00', [])), isUsedUp(billing('-5.00', [movement({})], { isPrepaid: false }))]).toEqual([false, false])
  })

  it.each([
    [-63_390_000n, 63_400_000n],
    [-63_394_999n, 63_410_000n],
    [0n, 10_000n],
    [9_999n, 10_000n],
    [10_000n, 0n],
  ])('of %i needs %i before calls are answered', (balance, least) => {
    expect(leastTopUp(balance, euro.cent)).toBe(least)
    expect(least === 0n || balance + least >= 10_000n).toBe(true)
  })
})

describe('the banner', () => {
  const dispute = movement({ type: 'Dispute', amount: '-125.00', balance: '-63.39' })
  const below = billing('-63.39', [dispute, movement({ balance: '61.61' })])

  it('says why the balance is below zero, since when, and how much is missing', () => {
    expect(usedUpWords(below, euro)).toEqual({
      title: 'All keys are stopped: the balance is below zero',
      text: 'Your bank took back a top-up. Calls answer 402 until the balance is above €0.00: top up at least €63.40.',
    })
    expect(sinceWords(below)).toBe('Below zero since 24 November, 11:47 UTC.')
  })

  it('blames the movement that crossed zero, and not later ones', () => {
    const later = spend('2026-11-25', '-1.00', '-64.39')
    expect(usedUpWords(billing('-64.39', [later, dispute, movement({ balance: '61.61' })]), euro)?.text).toMatch(/^Your bank/)
    const calls = [spend('2026-11-25', '-1.00', '-0.20'), movement({ balance: '0.80' })]
    expect(usedUpWords(billing('-0.20', calls), euro)?.text).toMatch(/^The last calls cost more than was left/)
    expect(sinceWords(billing('-0.20', calls))).toBe('Below zero since 25 November.')
  })

  it('of a balance at zero names the administrator where nobody can pay here', () => {
    expect(usedUpWords(billing('0.00', [movement({})], { payments: { provider: 'manual', amounts: [] } }), euro)).toEqual({
      title: 'All keys are stopped: the balance is used up',
      text: 'Calls answer 402 until there is credit: ask your administrator for at least €0.01.',
    })
  })

  it('is absent while calls are answered', () => {
    expect([usedUpWords(billing('5.00', [movement({})]), euro), sinceWords(billing('5.00', [movement({})]))]).toEqual([undefined, ''])
  })

  it('of an account that was always below zero does not guess an earlier time', () => {
    expect(sinceWords(billing('-1.00', [spend('', '-1.00', '-1.00')]))).toBe('')
  })
})

describe('the pace', () => {
  const words = (balance: string, ...movements: Movement[]): string => paceWords(billing(balance, movements), '2026-11-24')

  it('is that of the seven days before today', () => {
    const week = [spend('2026-11-17', '-7.00'), spend('2026-11-23', '-7.00')]
    expect(words('20.00', spend('2026-11-24', '-100.00'), ...week, spend('2026-11-16', '-100.00'), spend('2026-10', '-9.00'))).toBe(
      'About 10 days at this week’s pace.',
    )
  })

  it.each([
    ['2.00', 'About 1 day at this week’s pace.'],
    ['0.50', 'Less than a day at this week’s pace.'],
    ['5000.00', 'More than two years at this week’s pace.'],
    ['0.00', ''],
    ['-3.00', ''],
  ])('of a balance of %s is "%s"', (balance, text) => {
    expect(words(balance, spend('2026-11-23', '-14.00'))).toBe(text)
  })

  it('is not guessed without use, and not said where nobody pays in advance', () => {
    expect(words('20.00')).toBe('')
    expect(paceWords(billing('20.00', [spend('2026-11-23', '-14.00')], { isPrepaid: false }), '2026-11-24')).toBe('')
  })
})
