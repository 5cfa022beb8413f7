import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Usage } from '../dialects/usage.ts'
import type { ModelPricing } from '#contract/records/model-record.ts'
import { MAX_MICROS } from '#contract/values/micros.ts'
import { callCost, mostCallCost } from './call-price.ts'

const SEED = Number(process.env.PRICES_SEED ?? Date.now() % 2 ** 31)
const SETTINGS = { seed: SEED, numRuns: Number(process.env.PRICES_RUNS ?? 5_000) }
process.stdout.write(`prices of calls: seed ${SEED}\n`)

const price = fc.oneof(fc.nat({ max: 20_000_000 }), fc.nat({ max: MAX_MICROS }), fc.constantFrom(0, 1, MAX_MICROS))
const optionalPrice = fc.option(price, { nil: undefined })
const pricing: fc.Arbitrary<ModelPricing> = fc.record({
  ...{ inputPerMillion: price, outputPerMillion: price, cachedInputPerMillion: price },
  ...{ cacheWritePerMillion: optionalPrice, perRequest: optionalPrice },
})
const tokens = fc.oneof(fc.nat({ max: 300_000 }), fc.nat({ max: 10 ** 9 }))
const call = fc.record({ prices: pricing, fresh: tokens, read: tokens, written: tokens, output: tokens })
const unused = fc.record({ input: tokens, output: tokens })
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never

function usageOf({ fresh, read, written, output }: Call): Usage {
  return {
    inputTokens: fresh + read + written,
    cachedInputTokens: read,
    cacheWrittenTokens: written,
    outputTokens: output,
    isEstimated: false,
  }
}

test('a call within the tokens of its hold never costs more than it holds, whatever part of its prompt came from a cache or went to it', () => {
  fc.assert(
    fc.property(call, unused, (one, left) => {
      const { inputTokens, outputTokens } = usageOf(one)
      const most = mostCallCost({ input: inputTokens + left.input, output: outputTokens + left.output }, one.prices)
      expect(callCost(usageOf(one), one.prices)).toBeLessThanOrEqual(Number(most))
    }),
    SETTINGS,
  )
})

test('a call costs the exact sum of all its parts, each token once, rounded up once to a micro-unit', () => {
  fc.assert(
    fc.property(call, (one) => {
      const { prices, fresh, read, written, output } = one
      const { inputPerMillion, cachedInputPerMillion, cacheWritePerMillion = inputPerMillion, outputPerMillion, perRequest = 0 } = prices
      const parts = [
        [fresh, inputPerMillion],
        [read, cachedInputPerMillion],
        [written, cacheWritePerMillion],
        [output, outputPerMillion],
        [1_000_000, perRequest],
      ] as const
      const exact = parts.reduce((sum, [count, perMillion]) => sum + BigInt(count) * BigInt(perMillion), 0n)
      const rounded = (exact + 999_999n) / 1_000_000n
      const expected = rounded > BigInt(MAX_MICROS) ? MAX_MICROS : Number(rounded)
      expect(callCost(usageOf(one), prices)).toBe(expected)
    }),
    SETTINGS,
  )
})
