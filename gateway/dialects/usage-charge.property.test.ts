import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ModelPricing } from '#contract/records/model-record.ts'
import { MAX_MICROS } from '#contract/values/micros.ts'
import { callCost, mostCallCost } from '../limits/call-price.ts'
import { believed } from '../limits/estimate.ts'
import type { JsonObject } from './json-body.ts'
import { anthropicUsage, laterReport, openaiUsage, responsesUsage, settledUsage, type Usage, type UsageReport } from './usage.ts'

const SEED = Number(process.env.USAGE_SEED ?? Date.now() % 2 ** 31)
const SETTINGS = { seed: SEED, numRuns: Number(process.env.USAGE_RUNS ?? 5_000) }
process.stdout.write(`usage: seed ${SEED}\n`)

type Reader = (answer: JsonObject) => UsageReport | undefined
const READERS: readonly Reader[] = [openaiUsage, anthropicUsage, responsesUsage]

const price = fc.oneof(fc.nat({ max: 20_000_000 }), fc.constantFrom(0, 1, MAX_MICROS))
const pricing: fc.Arbitrary<ModelPricing> = fc.record({
  ...{ inputPerMillion: price, outputPerMillion: price, cachedInputPerMillion: price },
  ...{ cacheWritePerMillion: fc.option(price, { nil: undefined }), perRequest: fc.option(price, { nil: undefined }) },
})

/** The usage of one answer, settled after these reports. */
function settled(read: Reader, usages: readonly unknown[]): Usage {
  const reports = usages.flatMap((usage) => read({ usage }) ?? [])
  const report = reports.reduce<UsageReport | undefined>((former, later) => laterReport(former, later), undefined)
  return settledUsage(report, { inputTokens: 20, outputTokens: 40 })
}

const anyCount = fc.oneof(
  fc.nat({ max: 2_000 }),
  fc.constantFrom<unknown>(0, -1, 1.5, null, '7', NaN, Infinity, Number.MAX_SAFE_INTEGER, 2 ** 60, [], {}),
)
const maybe = (value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> => fc.option(value, { nil: undefined })
const anyDetails = maybe(fc.oneof(fc.record({ cached_tokens: anyCount, cache_write_tokens: anyCount }, { requiredKeys: [] }), anyCount))
/** A usage object with any of the fields of all formats, right and wrong. */
const anyUsage = fc.record(
  {
    ...{ prompt_tokens: anyCount, completion_tokens: anyCount, total_tokens: anyCount, prompt_tokens_details: anyDetails },
    ...{ input_tokens: anyCount, output_tokens: anyCount, input_tokens_details: anyDetails },
    ...{ cache_read_input_tokens: anyCount, cache_creation_input_tokens: anyCount },
  },
  { requiredKeys: [] },
)
const anyReports = fc.record({ read: fc.constantFrom(...READERS), usages: fc.array(anyUsage, { maxLength: 3 }) })

test('whatever a server reports, the parts of a prompt add up to it, and the charge is at most what a hold of so many tokens has', () => {
  const hold = { inputMin: 0, input: 20, inputMax: 1_000, output: 40, outputMax: 500, isBounded: true }
  fc.assert(
    fc.property(anyReports, pricing, ({ read, usages }, prices) => {
      const usage = believed(settled(read, usages), hold)
      const { inputTokens, cachedInputTokens, cacheWrittenTokens = 0, outputTokens } = usage
      const fresh = inputTokens - cachedInputTokens - cacheWrittenTokens
      for (const count of [fresh, cachedInputTokens, cacheWrittenTokens, outputTokens]) {
        expect(Number.isSafeInteger(count)).toBe(true)
        expect(count).toBeGreaterThanOrEqual(0)
      }
      expect(inputTokens + outputTokens).toBeLessThanOrEqual(4 * (hold.inputMax + hold.outputMax))
      const within = { input: Math.max(hold.inputMax, inputTokens), output: Math.max(hold.outputMax, outputTokens) }
      expect(Number(callCost(usage, prices))).toBeLessThanOrEqual(Number(mostCallCost(within, prices)))
    }),
    SETTINGS,
  )
})

interface Truth {
  readonly fresh: number
  readonly read: number
  readonly written: number
  readonly output: number
}

const tokens = fc.nat({ max: 100_000 })
const truth: fc.Arbitrary<Truth> = fc
  .record({ fresh: tokens, read: fc.oneof(fc.constant(0), tokens), written: fc.oneof(fc.constant(0), tokens), output: fc.nat(100_000) })
  .map(({ output, fresh, ...rest }) => ({ fresh: fresh + Number(rest.read + rest.written === 0), output: output + 1, ...rest }))

/** How servers report the same call, in one report or in those of a stream. */
const SHAPES: ReadonlyArray<readonly [Reader, (one: Truth) => readonly object[]]> = [
  [openaiUsage, (one) => [chat(one)]],
  [openaiUsage, (one) => [{ ...chat(one), completion_tokens: 0, prompt_tokens_details: null }, chat(one)]],
  [openaiUsage, (one) => [chat(one), { ...chat(one), prompt_tokens_details: { cached_tokens: 0 } }]],
  [openaiUsage, (one) => [{ ...chat(one), ...message(one), prompt_tokens_details: null }]],
  [openaiUsage, (one) => [{ ...chat(one), ...message(one) }]],
  [anthropicUsage, (one) => [message(one)]],
  [anthropicUsage, (one) => [{ ...message(one), output_tokens: 0 }, { output_tokens: one.output }]],
  [anthropicUsage, (one) => [{ input_tokens: 0, output_tokens: 0 }, message(one)]],
  [anthropicUsage, (one) => [{ input_tokens: promptOf(one), output_tokens: 0 }, message(one)]],
  [anthropicUsage, (one) => [message(one), { ...message(one), cache_read_input_tokens: 0, cache_creation_input_tokens: 0 }]],
  [anthropicUsage, (one) => [{ ...chat(one), ...message(one) }]],
  [anthropicUsage, (one) => [{ ...message(one), output_tokens: 1 }, chat(one)]],
  [responsesUsage, (one) => [response(one)]],
  [responsesUsage, (one) => [{ ...chat(one), ...response(one) }]],
]

const promptOf = ({ fresh, read, written }: Truth): number => fresh + read + written
const details = ({ read, written }: Truth): object => ({ cached_tokens: read, cache_write_tokens: written })
function chat(one: Truth): object {
  return { prompt_tokens: promptOf(one), completion_tokens: one.output, prompt_tokens_details: details(one) }
}
function message({ fresh, read, written, output }: Truth): object {
  return { input_tokens: fresh, cache_read_input_tokens: read, cache_creation_input_tokens: written, output_tokens: output }
}
function response(one: Truth): object {
  return { input_tokens: promptOf(one), output_tokens: one.output, input_tokens_details: details(one) }
}

test('each token is charged exactly once, in every format, plain and streamed', () => {
  fc.assert(
    fc.property(truth, fc.constantFrom(...SHAPES), (one, [read, reports]) => {
      const { cacheWrittenTokens = 0, ...usage } = settled(read, reports(one))
      expect({ ...usage, cacheWrittenTokens }).toEqual({
        inputTokens: promptOf(one),
        cachedInputTokens: one.read,
        cacheWrittenTokens: one.written,
        outputTokens: one.output,
        isEstimated: false,
      })
    }),
    SETTINGS,
  )
})
