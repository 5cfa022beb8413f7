/** What a backend says that an answer has cost. A count is taken only if it is a whole number that is not negative. */
import { asObject, type JsonObject } from './json-body.ts'

/** Tokens of one answer; a field is absent where the backend did not say. */
export interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
}

/** Reads `usage` of a chat completion or of its last chunk. */
export function openaiUsage({ usage }: JsonObject): Usage | undefined {
  const { prompt_tokens: input, completion_tokens: output } = asObject(usage) ?? {}
  return usageOf(count(input), count(output))
}

/** Reads `usage` of a message, of `message_start` and of `message_delta`. Tokens written to and read from the prompt cache are input, too. */
export function anthropicUsage({ usage }: JsonObject): Usage | undefined {
  const {
    input_tokens: input,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: output,
  } = asObject(usage) ?? {}
  const fresh = count(input)
  return usageOf(fresh === undefined ? undefined : fresh + (count(written) ?? 0) + (count(read) ?? 0), count(output))
}

/** Usage of a stream so far, with what a later event says. */
export function laterUsage(former: Usage | undefined, later: Usage | undefined): Usage | undefined {
  return later === undefined ? former : { ...former, ...later }
}

function usageOf(inputTokens: number | undefined, outputTokens: number | undefined): Usage | undefined {
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  return { ...(inputTokens === undefined ? {} : { inputTokens }), ...(outputTokens === undefined ? {} : { outputTokens }) }
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
