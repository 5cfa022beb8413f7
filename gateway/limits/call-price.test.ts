import { describe, expect, test } from 'vitest'
import type { Usage } from '../dialects/usage.ts'
import type { ModelPricing } from '#contract/records/model-record.ts'
import { MAX_MICROS } from '#contract/values/micros.ts'
import { callCost, mostCallCost } from './call-price.ts'

const PRICES: ModelPricing = {
  inputPerMillion: 3_000_000,
  outputPerMillion: 15_000_000,
  cachedInputPerMillion: 300_000,
  cacheWritePerMillion: 3_750_000,
  perRequest: 2_000,
}
const FREE: ModelPricing = { inputPerMillion: 0, outputPerMillion: 0, cachedInputPerMillion: 0 }
const used = (change: Partial<Usage> = {}): Usage => ({
  ...{ inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, isEstimated: false, ...change },
})

describe('the cost of a call', () => {
  test('has each token of the prompt once: at the price of the cache, of writing to it, or of neither', () => {
    const usage = used({ inputTokens: 1_000, cachedInputTokens: 600, cacheWrittenTokens: 300, outputTokens: 10 })
    expect(callCost(usage, PRICES)).toBe(3 * 100 + 0.3 * 600 + 3.75 * 300 + 15 * 10 + 2_000)
  })

  test('without a price for writing to a cache, is that of other tokens', () => {
    const { cacheWritePerMillion: _, ...prices } = PRICES
    expect(callCost(used({ inputTokens: 1_000, cacheWrittenTokens: 1_000 }), prices)).toBe(5_000)
  })

  test('is the exact sum of its parts, and is rounded up once', () => {
    const third = { inputPerMillion: 250_000, outputPerMillion: 250_000, cachedInputPerMillion: 250_000, cacheWritePerMillion: 250_000 }
    const one = used({ inputTokens: 3, cachedInputTokens: 1, cacheWrittenTokens: 1, outputTokens: 1 })
    expect(callCost(one, third)).toBe(1)
    expect(callCost(used({ ...one, outputTokens: 2 }), { ...third, perRequest: 7 })).toBe(7 + 2)
  })

  test('is the price of the call alone where tokens cost nothing', () => {
    expect(callCost(used({ inputTokens: 5, outputTokens: 5 }), { ...FREE, perRequest: 2_000 })).toBe(2_000)
    expect(callCost(used(), { ...FREE, perRequest: MAX_MICROS })).toBe(MAX_MICROS)
  })

  test('is unknown without prices', () => {
    expect([callCost(used({ inputTokens: 5 }), undefined), mostCallCost({ input: 5, output: 5 }, undefined)]).toEqual([
      undefined,
      undefined,
    ])
  })
})
