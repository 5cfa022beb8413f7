import { describe, expect, test } from 'vitest'
import type { JsonObject } from './json-body.ts'
import { anthropicUsage, laterReport, openaiUsage, rankingUsage, settledUsage, type Usage, type UsageReport } from './usage.ts'

type Reader = (answer: JsonObject) => UsageReport | undefined

/** The settled usage after these reports of one answer, whose text was estimated at 40 tokens, and its prompt at 20. */
function settled(read: Reader, ...reports: readonly object[]): Usage {
  let report: UsageReport | undefined
  for (const usage of reports) {
    const next = read({ usage })
    if (next) report = laterReport(report, next)
  }
  return settledUsage(report, { inputTokens: 20, outputTokens: 40 })
}
const exactly = (inputTokens: number, outputTokens: number, cachedInputTokens = 0): Usage => ({
  inputTokens,
  cachedInputTokens,
  outputTokens,
  isEstimated: false,
})

describe('S3 the usage that a chat server reports', () => {
  const cached = { prompt_tokens_details: { cached_tokens: 90 } }

  test.each<[string, readonly object[], Usage]>([
    ['once', [{ prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }], exactly(7, 3)],
    [
      'twice',
      [
        { prompt_tokens: 7, completion_tokens: 3 },
        { prompt_tokens: 7, completion_tokens: 3 },
      ],
      exactly(7, 3),
    ],
    ['cumulatively', [1, 2, 3].map((n) => ({ prompt_tokens: 7, completion_tokens: n })), exactly(7, 3)],
    [
      'again with more detail',
      [
        { prompt_tokens: 100, completion_tokens: 3 },
        { prompt_tokens: 100, completion_tokens: 3, ...cached },
      ],
      exactly(100, 3, 90),
    ],
    [
      'again with less detail',
      [
        { prompt_tokens: 100, completion_tokens: 3, ...cached },
        { prompt_tokens: 100, completion_tokens: 4 },
      ],
      exactly(100, 4, 90),
    ],
    ['in parts', [{ prompt_tokens: 7 }, { completion_tokens: 3 }], exactly(7, 3)],
    [
      'with 0 for a known count',
      [
        { prompt_tokens: 7, completion_tokens: 1 },
        { prompt_tokens: 0, completion_tokens: 3 },
      ],
      exactly(7, 3),
    ],
    ['as a total', [{ prompt_tokens: 7, total_tokens: 10 }], exactly(7, 3)],
    ['with more cached tokens than there are', [{ prompt_tokens: 7, completion_tokens: 3, ...cached }], exactly(7, 3, 7)],
  ])('%s is taken as it is', (_what, reports, usage) => {
    expect(settled(openaiUsage, ...reports)).toEqual(usage)
  })

  test.each<[string, readonly object[], Usage]>([
    ['never', [], { ...exactly(20, 40), isEstimated: true }],
    ['without a count', [{}], { ...exactly(20, 40), isEstimated: true }],
    ['for the prompt alone', [{ prompt_tokens: 7 }], { ...exactly(7, 40), isEstimated: true }],
    ['for the answer alone', [{ completion_tokens: 3 }], { ...exactly(20, 3), isEstimated: true }],
    ['as 0', [{ prompt_tokens: 0, completion_tokens: 0 }], { ...exactly(20, 40), isEstimated: true }],
    ['as invalid counts', [{ prompt_tokens: -1, completion_tokens: 1.5, total_tokens: '7' }], { ...exactly(20, 40), isEstimated: true }],
  ])('%s is completed by an estimate, and marked', (_what, reports, usage) => {
    expect(settled(openaiUsage, ...reports)).toEqual(usage)
  })
})

describe('S3 the usage that a Messages server reports', () => {
  test.each<[string, readonly object[], Usage]>([
    ['at the start and at the end', [{ input_tokens: 5, output_tokens: 1 }, { output_tokens: 9 }], exactly(5, 9)],
    [
      'with a cache',
      [{ input_tokens: 5, cache_read_input_tokens: 90, cache_creation_input_tokens: 3, output_tokens: 9 }],
      { ...exactly(98, 9, 90), cacheWrittenTokens: 3 },
    ],
    [
      'with a cache at the start only',
      [
        { input_tokens: 5, cache_read_input_tokens: 90, output_tokens: 1 },
        { input_tokens: 5, output_tokens: 9 },
      ],
      exactly(95, 9, 90),
    ],
    [
      'with an estimate at the start',
      [
        { input_tokens: 300, output_tokens: 0 },
        { input_tokens: 250, output_tokens: 9 },
      ],
      exactly(250, 9),
    ],
    [
      'with 0 at the start',
      [
        { input_tokens: 0, output_tokens: 0 },
        { input_tokens: 5, output_tokens: 9 },
      ],
      exactly(5, 9),
    ],
    ['with a prompt wholly from the cache', [{ input_tokens: 0, cache_read_input_tokens: 90, output_tokens: 9 }], exactly(90, 9, 90)],
  ])('%s is taken as it is', (_what, reports, usage) => {
    expect(settled(anthropicUsage, ...reports)).toEqual(usage)
  })

  test('without the answer is completed by an estimate, and marked', () => {
    expect(settled(anthropicUsage, { input_tokens: 5, output_tokens: 0 })).toEqual({ ...exactly(5, 40), isEstimated: true })
  })
})

test.each([
  ['a total alone', { total_tokens: 7 }, exactly(7, 0)],
  ['a prompt and a total', { prompt_tokens: 7, total_tokens: 7 }, exactly(7, 0)],
  ['a total of 0', { total_tokens: 0 }, { ...exactly(20, 0), isEstimated: true }],
  ['nothing', null, { ...exactly(20, 0), isEstimated: true }],
])('a ranking with %s costs its prompt, since it has no answer in tokens', (_what, usage, expected) => {
  expect(settledUsage(rankingUsage({ usage }), { inputTokens: 20 })).toEqual(expected)
})

describe('a call without any report', () => {
  test('#33736 never costs nothing', () => {
    expect(settledUsage(undefined, { inputTokens: 0, outputTokens: 0 })).toEqual({ ...exactly(1, 1), isEstimated: true })
  })

  test('may have an empty answer if its server reports one and no text was seen', () => {
    const report = openaiUsage({ usage: { prompt_tokens: 7, completion_tokens: 0 } })
    expect(settledUsage(report, { inputTokens: 20, outputTokens: 0 })).toEqual(exactly(7, 0))
  })
})
