import fc from 'fast-check'
import { expect, test } from 'vitest'
import { costOf, formatMicros, MAX_MICROS, type Micros, microsOf, parseMicros } from './micros.ts'

const SEED = Number(process.env.MICROS_SEED ?? Date.now() % 2 ** 31)
const RUNS = Number(process.env.MICROS_RUNS ?? 5_000)
const SETTINGS = { seed: SEED, numRuns: RUNS }

const micros = fc.oneof(fc.nat({ max: 1_000_000 }), fc.nat({ max: MAX_MICROS }), fc.constantFrom(0, 1, MAX_MICROS)).map((n) => n as Micros)
const tokens = fc.oneof(fc.nat({ max: 1_000_000 }), fc.nat({ max: Number.MAX_SAFE_INTEGER }))
/** Products on both sides of 2^53, where doubles begin to round. */
const atTheEdge = fc
  .record({ perMillion: fc.integer({ min: 1, max: 1_000_000 }), off: fc.integer({ min: -3, max: 3 }) })
  .map(({ perMillion, off }) => ({
    tokens: Math.floor(Number.MAX_SAFE_INTEGER / perMillion) + (perMillion > 1 ? off : -3),
    perMillion: perMillion as Micros,
  }))
const parts = fc.array(fc.oneof(fc.record({ tokens, perMillion: micros }), atTheEdge), { minLength: 1, maxLength: 4 })
process.stdout.write(`micros: seed ${SEED}, ${RUNS} runs\n`)

/** An amount as a fraction: numerator and power of ten, read digit by digit. */
function rational(text: string): { readonly top: bigint; readonly bottom: bigint } {
  const [whole = '', decimals = ''] = text.split('.')
  return { top: BigInt(whole + decimals), bottom: 10n ** BigInt(decimals.length) }
}

test('any amount survives being written and read, and is the same rational', () => {
  fc.assert(
    fc.property(micros, (amount) => {
      const text = formatMicros(amount)
      expect(parseMicros(text)).toBe(amount)
      const { top, bottom } = rational(text)
      expect(top * 1_000_000n).toBe(BigInt(amount) * bottom)
    }),
    SETTINGS,
  )
})

test('an amount is read as exactly the written decimal, whatever its digits', () => {
  const decimal = fc.stringMatching(/^(0|[1-9]\d{0,8})(\.\d{1,6})?$/)
  fc.assert(
    fc.property(decimal, (text) => {
      const { top, bottom } = rational(text)
      expect(BigInt(parseMicros(text) ?? -1) * bottom).toBe(top * 1_000_000n)
    }),
    SETTINGS,
  )
})

test('a cost is never rounded down, and by less than one micro-unit up', () => {
  fc.assert(
    fc.property(parts, (all) => {
      const exact = all.reduce((sum, part) => sum + BigInt(part.tokens) * BigInt(part.perMillion), 0n) // in 10^-12 units
      const cost = costOf(...all)
      expect(microsOf(cost)).toBe(cost)
      const rest = BigInt(cost) * 1_000_000n - exact
      expect(rest >= 0n || cost === MAX_MICROS, `${rest}`).toBe(true)
      expect(rest).toBeLessThan(1_000_000n)
    }),
    SETTINGS,
  )
})
