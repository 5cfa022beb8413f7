/** What a call costs by the prices of its model, and the most that it can cost. */
import type { Usage } from '../dialects/usage.ts'
import type { ModelPricing } from '#contract/records/model-record.ts'
import { costOf, type Micros, microsOf, type PricedTokens } from '#contract/values/micros.ts'

/** A price per call is that of a million tokens per million tokens. So one sum has all parts, and is rounded once. */
const ONE_CALL = 1_000_000

/**
 * The cost of the work of a server. Each token of the prompt has one of three prices: read from a cache, written to it, or neither.
 * @returns undefined without prices
 */
export function callCost(usage: Usage, pricing: ModelPricing | undefined): Micros | undefined {
  if (pricing === undefined) return undefined
  const { inputTokens, cachedInputTokens: read, cacheWrittenTokens: written = 0, outputTokens } = usage
  const { inputPerMillion, cachedInputPerMillion, cacheWritePerMillion = inputPerMillion, outputPerMillion } = pricing
  return costOf(
    part(inputTokens - read - written, inputPerMillion),
    part(read, cachedInputPerMillion),
    part(written, cacheWritePerMillion),
    part(outputTokens, outputPerMillion),
    ofOneCall(pricing),
  )
}

interface MostTokens {
  readonly input: number
  readonly output: number
}

/**
 * An upper bound of `callCost` for all calls with at most so many tokens: nobody knows before the call which part of its prompt a server
 * reads from a cache, or writes to it.
 * @returns undefined without prices
 */
export function mostCallCost({ input, output }: MostTokens, pricing: ModelPricing | undefined): Micros | undefined {
  if (pricing === undefined) return undefined
  const { inputPerMillion, cachedInputPerMillion, cacheWritePerMillion = 0, outputPerMillion } = pricing
  const highest = Math.max(inputPerMillion, cachedInputPerMillion, cacheWritePerMillion)
  return costOf(part(input, highest), part(output, outputPerMillion), ofOneCall(pricing))
}

function ofOneCall({ perRequest = 0 }: ModelPricing): PricedTokens {
  return part(ONE_CALL, perRequest)
}

/** @throws TypeError for a price that the decoder of records refuses */
function part(tokens: number, price: number): PricedTokens {
  const perMillion = microsOf(price)
  if (perMillion === undefined) throw new TypeError('a price is not an integer of micro-units')
  return { tokens, perMillion }
}
