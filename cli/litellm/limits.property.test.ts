import fc from 'fast-check'
import { expect, test } from 'vitest'
import { amountOf, countOf } from './limits.ts'

test('an amount is never more than the number in the file, and less than a millionth below it', () => {
  const number = fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 9n - 1n }), fc.bigInt({ min: 0n, max: 10n ** 12n - 1n }))
  fc.assert(
    fc.property(number, fc.integer({ min: -3, max: 3 }), ([whole, decimals], exponent) => {
      const digits = `${whole}${String(decimals).padStart(12, '0')}`
      const text = `${digits}e${exponent - 12}`
      const exact = BigInt(digits) * 10n ** BigInt(3 + exponent) // in 1e-15
      const amount = amountOf(text)
      const [units = '', rest = ''] = (amount?.text ?? '').split('.')
      const written = BigInt(units + rest.padEnd(6, '0')) * 10n ** 9n
      expect(written).toBeLessThanOrEqual(exact)
      if (amount?.change !== 'lowered to the largest amount') expect(exact - written).toBeLessThan(10n ** 9n)
      expect(amount?.change === undefined).toBe(exact === written)
    }),
  )
})

test('every float that Python or JSON can write is read', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e8, noNaN: true }), (value) => {
      expect(Math.abs(Number(amountOf(String(value))?.text) - value)).toBeLessThanOrEqual(1e-6 + value * 1e-15)
    }),
  )
})

test('a count is exact, or not accepted', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0 }), (count) => {
      expect([countOf(String(count)), countOf(`${count}.0`), countOf(`${count}.5`), countOf(`-${count + 1}`)]).toEqual([
        count,
        count,
        undefined,
        undefined,
      ])
    }),
  )
})
