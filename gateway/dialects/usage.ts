/** The cost of an answer, as its backend reports it and as it is settled. A count is accepted only if it is a non-negative integer. */
import { asObject, type JsonObject } from './json-body.ts'

/** Tokens of one call for settlement: integers. Input and output are never both 0. */
export interface Usage {
  /** The whole prompt, including tokens read from and written to a cache. */
  readonly inputTokens: number
  /** The part of `inputTokens` that was read from a cache. */
  readonly cachedInputTokens: number
  /** Another part of `inputTokens`: written to a cache. Absent if the backend reports none. */
  readonly cacheWrittenTokens?: number | undefined
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
  /** The whole prompt, including tokens read from and written to a cache. It decides if a server reports `freshTokens` too. */
  readonly promptTokens?: number | undefined
  /** The prompt without tokens read from and written to a cache (Anthropic). */
  readonly freshTokens?: number | undefined
  readonly cacheReadTokens?: number | undefined
  readonly cacheWrittenTokens?: number | undefined
  readonly outputTokens?: number | undefined
}

/** Reads `usage` of a chat completion or of a chunk. @returns undefined if it has no counts */
export function openaiUsage({ usage }: JsonObject): UsageReport | undefined {
  const fields = asObject(usage) ?? {}
  return wholePromptUsage(fields, { prompt: fields.prompt_tokens, details: fields.prompt_tokens_details, answer: fields.completion_tokens })
}

/** Reads `usage` of a ranking. It has no answer in tokens, so a total alone is the prompt. @returns undefined if it has no counts */
export function rankingUsage({ usage }: JsonObject): UsageReport | undefined {
  const fields = asObject(usage) ?? {}
  const { prompt_tokens: prompt = fields.total_tokens, prompt_tokens_details: details } = fields
  return wholePromptUsage(fields, { prompt, details, answer: 0 })
}

/** Reads `usage` of a response, and of the events of a stream, which contain the response. @returns undefined if it has no counts */
export function responsesUsage(answer: JsonObject): UsageReport | undefined {
  const fields = asObject((asObject(answer.response) ?? answer).usage) ?? {}
  return wholePromptUsage(fields, { prompt: fields.input_tokens, details: fields.input_tokens_details, answer: fields.output_tokens })
}

/** Reads `usage` of a message, of `message_start` and of `message_delta`. @returns undefined if it has no counts */
export function anthropicUsage({ usage }: JsonObject): UsageReport | undefined {
  const fields = asObject(usage) ?? {}
  const {
    prompt_tokens: prompt,
    prompt_tokens_details: details,
    completion_tokens: completion,
    output_tokens: answer = completion,
  } = fields
  if (count(prompt)) return wholePromptUsage(fields, { prompt, details, answer }) // a server that reports in both formats
  return reportOf({
    freshTokens: count(fields.input_tokens),
    cacheReadTokens: count(fields.cache_read_input_tokens),
    cacheWrittenTokens: count(fields.cache_creation_input_tokens),
    outputTokens: count(answer),
  })
}

/** Values of the fields that differ between the two formats of OpenAI. */
interface WholePromptFields {
  readonly prompt: unknown
  readonly details: unknown
  readonly answer: unknown
}

/** OpenAI counts the tokens of a cache in the details and within the prompt. Some servers report them by the names of Anthropic. */
function wholePromptUsage(fields: JsonObject, { prompt, details, answer }: WholePromptFields): UsageReport | undefined {
  const [promptTokens, outputTokens, total] = [count(prompt), count(answer), count(fields.total_tokens)]
  const { cached_tokens: read, cache_write_tokens: written } = asObject(details) ?? {}
  return reportOf({
    promptTokens: promptTokens ?? count(Number(total) - Number(outputTokens)),
    cacheReadTokens: count(read) || count(fields.cache_read_input_tokens),
    cacheWrittenTokens: count(written) || count(fields.cache_creation_input_tokens),
    outputTokens: outputTokens ?? count(Number(total) - Number(promptTokens)),
  })
}

/** Counts are cumulative, so the last one holds. Some servers repeat only some counts, and others send 0 for unknown ones. */
export function laterReport(former: UsageReport | undefined, later: UsageReport): UsageReport {
  if (former === undefined) return later
  return {
    promptTokens: laterCount(former.promptTokens, later.promptTokens),
    freshTokens: hasOnlyCached(later) ? 0 : laterCount(former.freshTokens, later.freshTokens),
    cacheReadTokens: laterCount(former.cacheReadTokens, later.cacheReadTokens),
    cacheWrittenTokens: laterCount(former.cacheWrittenTokens, later.cacheWrittenTokens),
    outputTokens: laterCount(former.outputTokens, later.outputTokens),
  }
}

/**
 * Estimates of at least 1 replace missing counts and 0: no prompt and no answer with text has 0 tokens. Each token of the prompt is in one
 * part, even if a server reports larger parts than the prompt.
 * @param estimate without output for an answer that has no tokens: a report of some is then the server's mistake
 */
export function settledUsage(report: UsageReport = {}, estimate: { readonly inputTokens: number; readonly outputTokens?: number }): Usage {
  const { cacheReadTokens: read = 0, cacheWrittenTokens: written = 0 } = report
  const input = inputOf(report)
  const output = estimate.outputTokens === undefined ? 0 : outputOf(report, estimate.outputTokens)
  const inputTokens = input ?? Math.max(1, estimate.inputTokens, read + written)
  const cachedInputTokens = Math.min(inputTokens, read)
  return {
    inputTokens,
    cachedInputTokens,
    ...(written > 0 && { cacheWrittenTokens: Math.min(inputTokens - cachedInputTokens, written) }),
    outputTokens: output ?? Math.max(1, estimate.outputTokens ?? 0),
    isEstimated: input === undefined || output === undefined,
  }
}

/**
 * The usage of all answers and prompts, by a report on one of them: an estimate. Without it, a request for many answers would cost as much as
 * one for a single answer.
 * @param inputTokens estimate of all prompts together
 */
export function usageOfAll(
  usage: Usage,
  { choices = 1, prompts = 1 }: { readonly choices?: number; readonly prompts?: number },
  inputTokens: number,
): Usage {
  if (usage.isEstimated || choices <= 1) return usage
  const input = prompts > 1 ? Math.max(usage.inputTokens, inputTokens) : usage.inputTokens
  return { ...usage, inputTokens: input, outputTokens: usage.outputTokens * choices, isEstimated: true }
}

/** @returns undefined if nothing was counted, or only what concerns a cache */
function inputOf({ promptTokens, freshTokens, cacheReadTokens = 0, cacheWrittenTokens = 0 }: UsageReport): number | undefined {
  const input = promptTokens ?? (freshTokens === undefined ? 0 : freshTokens + cacheReadTokens + cacheWrittenTokens)
  return input === 0 ? undefined : input
}

/** @returns undefined if nothing was counted */
function outputOf({ outputTokens }: UsageReport, estimate: number): number | undefined {
  return outputTokens === 0 && estimate > 0 ? undefined : outputTokens
}

function reportOf(report: UsageReport): UsageReport | undefined {
  return Object.values(report).some((count) => count !== undefined) ? report : undefined
}

/** Whether a server that reports an error reports work, too. */
export function reportsWork(report: UsageReport = {}): boolean {
  return Object.values(report).some((count) => count !== undefined && count > 0)
}

/** Whether a report says that the whole prompt has to do with a cache. Its 0 is then a count, and replaces an earlier estimate. */
function hasOnlyCached({ freshTokens, cacheReadTokens, cacheWrittenTokens }: UsageReport): boolean {
  return freshTokens === 0 && Boolean(cacheReadTokens || cacheWrittenTokens)
}

function laterCount(former: number | undefined, later: number | undefined): number | undefined {
  return later === undefined || later === 0 ? (former ?? later) : later
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** Largest number of bytes of one token: tokens have four bytes on average, and few have more than this. */
const MAX_BYTES_OF_ONE_TOKEN = 8

/** The cost of an unfinished stream: the usage that its backend reports, and the text that it has sent, in case there is no report. */
export class UsageTally {
  readonly #text: DeltaText
  #report: UsageReport | undefined = undefined
  #events = 0
  #bytes = 0

  constructor(textKey: TextKey) {
    this.#text = new DeltaText(textKey)
  }

  /** Counts the text of an event. @param event decoded as Latin-1 */
  addEvent(event: string): void {
    const bytes = this.#text.bytesOf(event)
    if (bytes === 0) return
    this.#events++
    this.#bytes += bytes
  }

  addReport(report: UsageReport): void {
    this.#report = laterReport(this.#report, report)
  }

  /** @param inputTokens estimate of the prompt, in case the backend does not report it */
  settled(inputTokens: number): Usage {
    return settledUsage(this.#report, { inputTokens, outputTokens: this.outputTokens })
  }

  /** Servers send each token in an event, unless they are late or make several at once; then events are longer. */
  get outputTokens(): number {
    const isOneByOne = this.#bytes <= this.#events * MAX_BYTES_OF_ONE_TOKEN
    return isOneByOne ? this.#events : Math.max(this.#events, tokensOfBytes(this.#bytes))
  }
}

/** The key of the model's text in an event: of an object or a string. Texts escape their quotes, so only a key can match. */
export type TextKey = '"delta":' | '"text":'
/** String values of a delta that are not text of the model. */
const SILENT_KEYS: readonly string[] = ['type"', 'role"', 'id"', 'signature"', 'stop_reason"', 'stop_sequence"']

const QUOTE = 34
const COLON = 58
const BACKSLASH = 92
const LETTER_U = 117
const OPENING_BRACE = 123
const CLOSING_BRACE = 125

/** Measures text without parsing. One object per stream: results that are allocated for each event would cost more. */
export class DeltaText {
  readonly #key: TextKey
  #event = ''
  #at = 0

  constructor(key: TextKey) {
    this.#key = key
  }

  /** Bytes of texts, reasoning and arguments over all choices of an event. @param event as Latin-1: one unit per byte */
  bytesOf(event: string): number {
    let bytes = 0
    this.#event = event
    for (this.#at = event.indexOf(this.#key); this.#at >= 0; this.#at = event.indexOf(this.#key, this.#at)) {
      this.#at += this.#key.length
      bytes += this.#strings()
    }
    this.#event = ''
    return bytes
  }

  /** Adds up the string values, up to the end of the object that begins here or a little further. */
  #strings(): number {
    const event = this.#event
    let [bytes, depth] = [0, 0]
    let isSilent = false
    for (; this.#at < event.length; this.#at++) {
      const code = event.charCodeAt(this.#at)
      if (code === OPENING_BRACE) depth++
      else if (code === CLOSING_BRACE && --depth <= 0) return bytes
      if (code !== QUOTE) continue
      const start = this.#at + 1
      this.#at = endOfText(event, start)
      if (isKey(event, this.#at)) isSilent = SILENT_KEYS.some((key) => event.startsWith(key, start))
      else if (!isSilent) bytes += textBytes(event, start, this.#at)
      if (depth === 0) return bytes // the value is a string itself
    }
    return bytes
  }
}

/** @returns index of the closing quote; the end of the event without one */
function endOfText(event: string, from: number): number {
  for (let at = event.indexOf('"', from); at >= 0; at = event.indexOf('"', at + 1)) {
    let slashes = 0
    while (event.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return at
  }
  return event.length
}

function isKey(event: string, end: number): boolean {
  let at = end + 1
  while (event.charCodeAt(at) === 32) at++
  return event.charCodeAt(at) === COLON
}

/** Counts an escape as the bytes of its character. */
function textBytes(event: string, start: number, end: number): number {
  let bytes = end - start
  for (let at = start; at < end; at++) {
    if (event.charCodeAt(at) !== BACKSLASH) continue
    at++
    bytes -= event.charCodeAt(at) === LETTER_U ? 3 : 1 // \u20ac has six units for three bytes
  }
  return bytes
}
