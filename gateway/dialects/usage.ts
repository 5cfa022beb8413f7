/** The cost of an answer, as its backend reports it and as it is settled. A count is accepted only if it is a non-negative integer. */
import { asObject, type JsonObject } from './json-body.ts'

/** Tokens of one call for settlement: integers. Input and output are never both 0. */
export interface Usage {
  /** The whole prompt, including tokens read from and written to a cache. */
  readonly inputTokens: number
  /** The part of `inputTokens` that was read from a cache. */
  readonly cachedInputTokens: number
  readonly outputTokens: number
  /** Whether the backend has not reported all of it. */
  readonly isEstimated: boolean
}

const BYTES_PER_TOKEN = 4

/** Estimates the tokens of a text that is not read, by its length. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN)
}

/** The reports of a backend on one answer until now; undefined for fields that it has not reported. */
export interface UsageReport {
  readonly promptTokens?: number | undefined
  /** The prompt without tokens read from and written to a cache (Anthropic). */
  readonly freshTokens?: number | undefined
  readonly cacheReadTokens?: number | undefined
  readonly cacheWrittenTokens?: number | undefined
  readonly outputTokens?: number | undefined
}

/** Estimates in place of unreported numbers. */
type UsageEstimate = Pick<Usage, 'inputTokens' | 'outputTokens'>

/** Reads `usage` of a chat completion or of a chunk. @returns undefined if it has no counts */
export function openaiUsage({ usage }: JsonObject): UsageReport | undefined {
  const {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    prompt_tokens_details: details,
  } = asObject(usage) ?? {}
  const promptTokens = count(prompt)
  return reportOf({
    promptTokens,
    cacheReadTokens: count(asObject(details)?.cached_tokens),
    outputTokens: count(completion) ?? count(Number(count(total)) - Number(promptTokens)),
  })
}

/** Reads `usage` of a message, of `message_start` and of `message_delta`. @returns undefined if it has no counts */
export function anthropicUsage({ usage }: JsonObject): UsageReport | undefined {
  const fields = asObject(usage) ?? {}
  return reportOf({
    freshTokens: count(fields.input_tokens),
    cacheReadTokens: count(fields.cache_read_input_tokens),
    cacheWrittenTokens: count(fields.cache_creation_input_tokens),
    outputTokens: count(fields.output_tokens),
  })
}

/** Counts are cumulative, so the last one holds. Some servers repeat only some counts, and others send 0 for unknown ones. */
export function laterReport(former: UsageReport | undefined, later: UsageReport): UsageReport {
  if (former === undefined) return later
  return {
    promptTokens: laterCount(former.promptTokens, later.promptTokens),
    freshTokens: laterCount(former.freshTokens, later.freshTokens),
    cacheReadTokens: laterCount(former.cacheReadTokens, later.cacheReadTokens),
    cacheWrittenTokens: laterCount(former.cacheWrittenTokens, later.cacheWrittenTokens),
    outputTokens: laterCount(former.outputTokens, later.outputTokens),
  }
}

/** Estimates of at least 1 replace missing counts and 0: no prompt and no answer with text has 0 tokens. */
export function settledUsage(report: UsageReport | undefined, estimate: UsageEstimate): Usage {
  const input = report && inputOf(report)
  const output = report && outputOf(report, estimate)
  return {
    inputTokens: input ?? Math.max(1, estimate.inputTokens),
    cachedInputTokens: Math.min(input ?? 0, report?.cacheReadTokens ?? 0),
    outputTokens: output ?? Math.max(1, estimate.outputTokens),
    isEstimated: input === undefined || output === undefined,
  }
}

/** @returns undefined if nothing was counted */
function inputOf({ promptTokens, freshTokens = 0, cacheReadTokens = 0, cacheWrittenTokens = 0 }: UsageReport): number | undefined {
  const input = promptTokens ?? freshTokens + cacheReadTokens + cacheWrittenTokens
  return input === 0 ? undefined : input
}

/** @returns undefined if nothing was counted */
function outputOf({ outputTokens }: UsageReport, estimate: UsageEstimate): number | undefined {
  return outputTokens === 0 && estimate.outputTokens > 0 ? undefined : outputTokens
}

function reportOf(report: UsageReport): UsageReport | undefined {
  return Object.values(report).some((count) => count !== undefined) ? report : undefined
}

function laterCount(former: number | undefined, later: number | undefined): number | undefined {
  return later === undefined || later === 0 ? (former ?? later) : later
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
