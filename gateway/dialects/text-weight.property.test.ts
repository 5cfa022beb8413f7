import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TextWeight } from './text-weight.ts'

/** `SEED=… make property` repeats a run; `WEIGHT_RUNS=…` makes it longer. */
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const RUNS = Number(process.env.WEIGHT_RUNS ?? 3_000)

const PARTS = /[A-Za-z0-9+/=_-]+|[\t-\r ]+|[\0-\x7f]|[^\0-\x7f]/gu

/** Hundredths of a token by the rules, part by part. */
function plainWeight(text: string): number {
  return (text.match(PARTS) ?? []).reduce((sum, part) => sum + partWeight(part), 0)
}

function partWeight(part: string): number {
  if (/^[A-Za-z0-9+/=_-]/.test(part)) return runWeight(part)
  if (/^[\t-\r ]/.test(part)) return part.length > 1 ? 100 : 0
  const bytes = Buffer.byteLength(part)
  if (bytes === 1) return 75
  return bytes === 4 ? 300 : 36 * bytes
}

function runWeight(run: string): number {
  const digits = run.replace(/\D/g, '').length
  const joiners = run.replace(/[A-Za-z0-9]/g, '').length
  if (run.length > 40 && (joiners === 0 || digits * 16 >= run.length)) return Math.ceil(run.length * (100 / 1.4))
  const words = run.match(/[A-Za-z]+/g) ?? []
  return 100 * digits + 75 * joiners + words.reduce((sum, word) => sum + 100 * Math.ceil(word.length / 5), 0)
}

const from = (characters: string, maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...Array.from(characters)), maxLength, size: 'max' })
const text = fc
  .array(
    fc.oneof(
      from('abcXYZ', 12),
      from('ab12', 90),
      from('abcdefghijklmnopqrstu7-_/+=', 90),
      from(' \t\n\r', 5),
      from('.,;{}"()\u0000\u007f', 4),
      from('é漢\u00a0\u2028😀\ud83d\udc00', 4),
      fc.string({ unit: 'binary', maxLength: 8 }),
    ),
    { maxLength: 40, size: 'max' },
  )
  .map((parts) => parts.join(''))

function tokens(text: string, times: number): number {
  const weight = new TextWeight()
  for (let count = 0; count < times; count++) weight.add(text)
  return weight.tokens
}

test('the weight of any text is the sum of the weights of its parts', () => {
  fc.assert(
    fc.property(text, (one) => {
      expect(tokens(one, 100), 'hundredths').toBe(plainWeight(one))
    }),
    { seed: SEED, numRuns: RUNS },
  )
})

test('the weight of a long text is the sum of the weights of its parts, wherever its runs are', () => {
  const long = fc.tuple(text, fc.integer({ min: 22_000, max: 70_000 })).map(([one, length]) => `${one}.`.repeat(length).slice(0, length))
  fc.assert(
    fc.property(long, (one) => {
      expect(tokens(one, 1)).toBe(Math.ceil(plainWeight(one) / 100))
    }),
    { seed: SEED, numRuns: Math.ceil(RUNS / 100) },
  )
})
