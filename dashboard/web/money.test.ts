import { expect, it } from 'vitest'
import { money, shortMoney, whole } from './money.ts'

it.each([
  ['18.4', 'EUR', '€18.40'],
  ['0', 'EUR', '€0.00'],
  ['-5', 'EUR', '−€5.00'],
  ['1234567.891234', 'USD', '$1,234,567.89'],
  ['1500', 'JPY', '¥1,500'],
  ['18.4', undefined, '18.40'],
])('%s %s is written %s', (amount, currency, text) => {
  expect(money(amount, currency)).toBe(text)
})

it.each([
  ['0.000001', 'EUR', '< €0.01'],
  ['0.009999', 'EUR', '< €0.01'],
  ['-0.004', 'EUR', '> −€0.01'],
  ['0.4', 'JPY', '< ¥1'],
  ['0.01', 'EUR', '€0.01'],
])('%s %s is neither shown as nothing nor rounded up: %s', (amount, currency, text) => {
  expect(money(amount, currency)).toBe(text)
})

it('an amount with more digits than a float holds is written exactly', () => {
  expect(money('90071992547409.93', 'EUR')).toBe('€90,071,992,547,409.93')
})

it('a round amount is short, and any other has its cents', () => {
  expect([shortMoney('25.00', 'EUR'), shortMoney('25.5', 'EUR')]).toEqual(['€25', '€25.50'])
})

it('tokens are written in groups, also beyond the whole numbers of a float', () => {
  expect([whole(40_000), whole('999999999999999999')]).toEqual(['40,000', '999,999,999,999,999,999'])
})

it('a text that is not an amount stands as it is', () => {
  expect([money('?', 'EUR'), whole('many')]).toEqual(['?', 'many'])
})
