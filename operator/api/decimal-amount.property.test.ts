import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fromMicros, toMicros } from './decimal-amount.ts'

test('any amount of micro-units survives being written and read, to the last digit', () => {
  fc.assert(
    fc.property(fc.nat({ max: 999_999_999_999_999 }), (micros) => {
      expect(toMicros(fromMicros(micros))).toBe(micros)
    }),
  )
})

test('any decimal string means what exact arithmetic says', () => {
  const whole = fc.nat({ max: 999_999_999 })
  const digits = fc.option(fc.stringMatching(/^[0-9]{1,6}$/), { nil: undefined })
  fc.assert(
    fc.property(whole, digits, (units, fraction) => {
      const text = fraction === undefined ? String(units) : `${units}.${fraction}`
      expect(BigInt(toMicros(text))).toBe(BigInt(units) * 1_000_000n + BigInt((fraction ?? '').padEnd(6, '0')))
    }),
  )
})
