/**
 * Estimates the tokens of a request before it runs: from the size of its prompt, from its declarations, and from earlier requests to the
 * same model. The call is settled afterwards with the real number; these estimates only decide how much the call holds until then.
 */
import type { ModelRequest } from '../dialects/dialect.ts'
import type { CountEstimate, PromptSize } from '../dialects/prompt-size.ts'
import type { Usage } from '../dialects/usage.ts'

/** Tokens of one request; integers above 0. */
export interface TokenEstimate {
  /** Tokens that the prompt has for certain; may be 0. */
  readonly inputMin: number
  /** Tokens of the prompt, by experience. */
  readonly input: number
  /** Upper bound of the prompt: no tokenizer finds more. */
  readonly inputMax: number
  /** Tokens of the answer, by experience; at most `outputMax`. */
  readonly output: number
  /** Upper bound of the answer: the cap of the request, else that of the model. */
  readonly outputMax: number
  /** Whether the request or its model has a cap. Without one, `outputMax` is a guess. */
  readonly isBounded: boolean
}

/** Bounds of a model; null or absent if its record has none. */
interface ModelBounds {
  readonly contextTokens?: number | null | undefined
  readonly maxOutputTokens?: number | null | undefined
}

export interface EstimateSource {
  readonly asked: Pick<ModelRequest, 'maxOutputTokens' | 'choices'>
  readonly size: PromptSize
  readonly bounds: ModelBounds
  readonly ratio: Pick<LearnedRatio, 'ratio'>
  readonly learned: Pick<LearnedOutput, 'p90'>
}

/** Upper bound of the tokens of a request, whatever it declares, so that sums stay exact. */
const MAX_TOKENS = 10 ** 9
/** A server that reports more than this multiple of the most that a call may use is not believed. */
const MAX_REPORTED = 4
/** Tokens that are believed for a call without any cap, of its own or of its model. */
const UNBOUNDED_OUTPUT = 1_000_000
/** No tokenizer finds fewer tokens of text than the estimate divided by this number (decision 21). */
const MAX_OVERESTIMATED = 3.2
/** No tokenizer of today finds more tokens of text than the estimate divided by this number: measured 0.79 for Korean (decision 21). */
const MIN_ESTIMATED = 0.78
/** One prompt may have so many times the tokens that the average of its model lets expect. */
const COUNT_MARGIN = 1.1
/** Some templates, such as those of Llama, indent the schemas of tools: measured up to 1.35 times the tokens, and deep schemas have more. */
const TOOL_MARGIN = 0.3
/** Tokens that a template adds to any prompt: a date, a default system text. Measured up to 36, by the templates of Llama 3.1 and Qwen 2.5. */
const TEMPLATE_TOKENS = 40
/** Tokens of the words with which a template offers tools: measured up to 103, by the same templates. */
const TOOLS_TEMPLATE_TOKENS = 110
/** Output tokens for a model without experience and bounds. */
const DEFAULT_OUTPUT = 4_096
/** Tokens of a conversation that the server has stored, for a model whose record has no `contextTokens`. */
const UNBOUNDED_HISTORY = 131_072

/** Estimates one request with a few multiplications: everything that depends on the body alone is in `size`. */
export function estimateTokens({ asked, size, bounds, ratio, learned }: EstimateSource): TokenEstimate {
  const inputMax = Math.min(MAX_TOKENS, Math.max(size.maxTokens, historyMax(size, bounds)))
  const input = Math.min(inputMax, Math.ceil(size.tokens * ratio.ratio))
  const inputMin = Math.floor((size.tokens - size.mediaTokens) / MAX_OVERESTIMATED)
  if (asked.choices === 0) return { inputMin, input, inputMax, output: 0, outputMax: 0, isBounded: true }
  const declared = declaredOutput(asked)
  const outputMax = declared ?? bounded(asked.choices * modelOutput(bounds, inputMin))
  const isBounded = declared !== undefined || Boolean(bounds.maxOutputTokens ?? bounds.contextTokens)
  return { inputMin, input, inputMax, output: Math.min(outputMax, asked.choices * learned.p90), outputMax, isBounded }
}

/**
 * The tokens of a prompt for a client that counts them before it calls: clients shorten a conversation by this number, so the number should not be
 * below the truth. Prose is estimated at up to 1.5 times the truth, and digits at up to 2.4 times, so their number stays within 3.2 times. The
 * experience with a model only raises it: an average below 1 comes from prose, and says nothing of a text in Korean.
 */
export function countedPrompt(
  { tokens, mediaTokens, maxTokens, toolTokens = 0 }: PromptSize,
  { ratio }: Pick<LearnedRatio, 'ratio'>,
): CountEstimate {
  const factor = Math.max(1 / MIN_ESTIMATED, COUNT_MARGIN * ratio)
  const offer = toolTokens > 0 ? TOOLS_TEMPLATE_TOKENS : 0
  const most = Math.ceil(maxTokens + TOOL_MARGIN * toolTokens) + offer // indentation and words of the template have no trace in the body
  return {
    tokens: Math.min(most, Math.ceil((tokens + TOOL_MARGIN * toolTokens) * factor) + TEMPLATE_TOKENS + offer),
    mediaTokens: Math.ceil(mediaTokens * factor),
  }
}

/**
 * Bounds the reported usage of a call, so that no answer of one server uses up a month, or makes a sum inexact.
 * @returns the same usage, or an estimate in place of a report beyond the bound
 */
export function believed(usage: Usage, { inputMax, outputMax, isBounded }: TokenEstimate): Usage {
  const most = Math.max(MAX_REPORTED * (inputMax + outputMax), isBounded ? 0 : UNBOUNDED_OUTPUT)
  const inputTokens = Math.min(usage.inputTokens, most)
  const outputTokens = Math.min(usage.outputTokens, most - inputTokens)
  if (inputTokens === usage.inputTokens && outputTokens === usage.outputTokens) return usage
  const cachedInputTokens = Math.min(usage.cachedInputTokens, inputTokens)
  const cacheWrittenTokens = usage.cacheWrittenTokens && Math.min(usage.cacheWrittenTokens, inputTokens - cachedInputTokens)
  return { inputTokens, outputTokens, cachedInputTokens, cacheWrittenTokens, isEstimated: true }
}

/** The largest cap counts, because servers differ in the cap that they obey. @returns undefined without any cap */
export function declaredOutput({ maxOutputTokens, choices }: Pick<ModelRequest, 'maxOutputTokens' | 'choices'>): number | undefined {
  return maxOutputTokens === undefined ? undefined : bounded(maxOutputTokens * choices)
}

/** Maximum tokens of a prompt to which the server adds an earlier conversation. */
function historyMax({ hasHistory = false }: PromptSize, { contextTokens }: ModelBounds): number {
  return hasHistory ? (contextTokens ?? UNBOUNDED_HISTORY) : 0
}

/** Maximum number of output tokens of one choice of a request without a cap. */
function modelOutput({ contextTokens, maxOutputTokens }: ModelBounds, inputMin: number): number {
  return maxOutputTokens ?? (contextTokens ? Math.max(1, contextTokens - inputMin) : DEFAULT_OUTPUT)
}

function bounded(tokens: number): number {
  return Math.max(1, Math.min(MAX_TOKENS, tokens))
}

/** Factor by which one more request reduces former experience. */
const DECAY = 0.95
/** Weight of the initial ratio 1, tokens. */
const FIRST_WEIGHT = 1_000
const MIN_RATIO = 0.5
const MAX_RATIO = 4

/**
 * How many times more tokens the tokenizer of one model finds than `promptSize`: a moving average weighted by the size of a prompt, so that
 * the template around a short prompt does not distort the estimate of a long one.
 */
export class LearnedRatio {
  #sized = FIRST_WEIGHT
  #actual = FIRST_WEIGHT

  /** The ratio: 0.5 to 4, at first 1. */
  get ratio(): number {
    return this.#actual / this.#sized
  }

  /** @param actual tokens as reported, not estimated */
  learn(size: Pick<PromptSize, 'tokens'>, actual: number): void {
    const { tokens } = size
    const counted = Math.min(tokens * MAX_RATIO, Math.max(tokens * MIN_RATIO, actual)) // no single answer moves the average beyond its bounds
    this.#sized = this.#sized * DECAY + tokens
    this.#actual = this.#actual * DECAY + counted
  }
}

const FIRST_OUTPUT = 1_024
const MIN_OUTPUT = 64
/** Logarithmic steps: large ones at first, so that a few answers suffice. */
const FIRST_STEP = 6
const LAST_STEP = 0.2
const PERCENTILE = 0.9

/** The 90th percentile of one answer of one key on one model, in two numbers: it rises nine times as fast as it falls. */
export class LearnedOutput {
  #tokens = FIRST_OUTPUT
  #answers = 0

  /** The percentile in tokens, an integer of at least 64; at first 1,024. */
  get p90(): number {
    return Math.max(MIN_OUTPUT, Math.round(this.#tokens))
  }

  learn(tokens: number): void {
    this.#answers++
    const step = Math.max(LAST_STEP, FIRST_STEP / this.#answers)
    const isMore = tokens > this.#tokens
    const moved = this.#tokens * Math.exp(isMore ? step * PERCENTILE : step * (PERCENTILE - 1))
    this.#tokens = isMore ? Math.min(tokens, moved) : Math.max(tokens, 1, moved)
  }
}
