import { describe, expect, it } from 'vitest'
import { decimalOf, microsOf, moneyIn, sumOf } from './micros.ts'

describe('an amount of the server', () => {
  it.each([
    ['0', 0n, '0.000000'],
    ['25.00', 25_000_000n, '25.000000'],
    ['-63.39', -63_390_000n, '-63.390000'],
    ['0.000125', 125n, '0.000125'],
    ['-0.000001', -1n, '-0.000001'],
    ['123456789012345678.9', 123_456_789_012_345_678_900_000n, '123456789012345678.900000'],
  ])('%s is exact, there and back', (text, micros, back) => {
    expect([microsOf(text), decimalOf(micros)]).toEqual([micros, back])
  })

  it.each(['', '1e3', '+1', '1.0000001', 'NaN', '1,5', ' 1', '.5'])('%j is refused: no wrong sum is shown', (text) => {
    expect(() => microsOf(text)).toThrow(RangeError)
  })

  it('sums without the error of a float', () => {
    expect(sumOf(['0.1', '0.2', '-0.3'].map(microsOf))).toBe(0n)
    expect(sumOf([])).toBe(0n)
  })
})

describe('money for people', () => {
  const euro = moneyIn('EUR')

  it.each([
    ['61.61', '€61.61', '61.61', '+61.61'],
    ['-63.39', '−€63.39', '−63.39', '−63.39'],
    ['0', '€0.00', '0.00', '0.00'],
    ['1234567.891', '€1,234,567.89', '1,234,567.89', '+1,234,567.89'],
    ['0.009999', '< €0.01', '< 0.01', '< 0.01'],
    ['-0.000012', '> −€0.01', '> −0.01', '> −0.01'],
    ['0.01', '€0.01', '0.01', '+0.01'],
  ])('%s is %s, in a column %s, as a change %s', (amount, text, cell, change) => {
    const micros = microsOf(amount)
    expect([euro.text(micros), euro.cell(micros), euro.change(micros)]).toEqual([text, cell, change])
  })

  it.each([
    ['10', '€10'],
    ['7.5', '€7.50'],
    ['0.0004', '€0.0004'],
    ['0', '€0'],
  ])('%s on the scale of a chart is %s', (amount, text) => {
    expect(euro.exact(microsOf(amount))).toBe(text)
  })

  it('has the decimals of its currency, also where the code stands for a symbol', () => {
    const amount = microsOf('1234.5')
    expect([moneyIn('JPY').cell(amount), moneyIn('KWD').cell(amount), moneyIn('CHF').cell(-amount)]).toEqual([
      '1,235',
      '1,234.500',
      '−1,234.50',
    ])
    expect([moneyIn('JPY').cent, moneyIn('EUR').cent, moneyIn('KWD').cent]).toEqual([1_000_000n, 10_000n, 1000n])
  })
})
