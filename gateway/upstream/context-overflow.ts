import type { JsonObject } from '../dialects/json-body.ts'
import type { ErrorParams } from '../errors.ts'

/** Groups: `max` is the size of the context, `tokens` that of the prompt. The first match decides; each has its line in the test. */
const TEXTS: readonly RegExp[] = [
  // OpenAI, vLLM
  /maximum context length (?:is|of) (?<max>\d+)(?: tokens)?(?:[^]{0,80}?(?:requested|resulted in|has|have|contains?|total of)(?: about| at least)? (?<tokens>\d+)(?: input)? tokens)?/i,
  /prompt \((?:total )?length (?<tokens>\d+)\) is longer than the maximum model length of (?<max>\d+)/i,
  // SGLang
  /input \((?<tokens>\d+) tokens\) is longer than the model's context length \((?<max>\d+) tokens\)/i,
  // llama.cpp
  /request \((?<tokens>\d+) tokens\) exceeds the available context size \((?<max>\d+) tokens\)/i,
  /exceeds? the available context size/i,
  // TGI
  /`?inputs`? must have less than (?<max>\d+) tokens\. Given: (?<tokens>\d+)/i,
  /`?inputs`? tokens \+ `?max_new_tokens`? must be <= (?<max>\d+)\. Given: (?<tokens>\d+)/i,
  // Anthropic
  /prompt is too long(?:: (?<tokens>\d+) tokens > (?<max>\d+) maximum)?/i,
  // Ollama and others
  /(?:input|prompt) (?:length )?(?:exceeds?|exceeded|too long)[^]{0,40}?context (?:length|window|size)/i,
  /exceed(?:s|ed|ing)? (?:the |its |the model's )?(?:max(?:imum)? )?context (?:length|window|size)/i,
]

const TYPES: ReadonlySet<unknown> = new Set(['exceed_context_size_error', 'context_length_exceeded'])

/** @param fields `code` and `type` may name the overflow, `n_prompt_tokens` and `n_ctx` (llama.cpp) have the numbers */
export function contextOverflow(text: string, fields: JsonObject): Pick<ErrorParams, 'tokens' | 'maxTokens'> | undefined {
  let match: RegExpExecArray | null = null
  for (const pattern of TEXTS) match ??= pattern.exec(text)
  if (match === null && !TYPES.has(fields.code) && !TYPES.has(fields.type)) return undefined
  const { tokens, max }: Readonly<Record<string, string>> = match?.groups ?? {}
  return { tokens: count(fields.n_prompt_tokens ?? tokens), maxTokens: count(fields.n_ctx ?? max) }
}

function count(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : undefined
}
