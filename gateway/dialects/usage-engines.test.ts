/**
 * What each model server reports of its cache, in each format, plain and streamed, and what a call then costs. The shapes are those of vLLM
 * 0.23, SGLang 0.5, llama.cpp, Ollama 0.14, OpenAI, Anthropic, and of proxies in front of them.
 */
import { describe, expect, test } from 'vitest'
import type { ModelPricing } from '#contract/records/model-record.ts'
import { callCost } from '../limits/call-price.ts'
import { chatCompletions } from './chat-completions.ts'
import { messages } from './messages.ts'
import type { JsonObject } from './json-body.ts'
import { parseSseEvent } from './sse.ts'
import { laterReport, responsesUsage, settledUsage, type UsageReport } from './usage.ts'

/** Prices in millionths of the currency per token: 3 fresh, 0.3 cached, 3.75 written, 15 of the answer; and 2,000 per call. */
const PRICES: ModelPricing = {
  ...{ inputPerMillion: 3_000_000, cachedInputPerMillion: 300_000, cacheWritePerMillion: 3_750_000, outputPerMillion: 15_000_000 },
  perRequest: 2_000,
}
/** In case a server reports nothing. */
const ESTIMATE = { inputTokens: 20, outputTokens: 40 }

/** Tokens by price, and the cost of the call, in millionths. */
type Charged = readonly [fresh: number, cached: number, written: number, output: number, cost: number]

function charged(report: UsageReport | undefined): Charged {
  const usage = settledUsage(report, ESTIMATE)
  const { inputTokens, cachedInputTokens: cached, cacheWrittenTokens: written = 0, outputTokens } = usage
  return [inputTokens - cached - written, cached, written, outputTokens, Number(callCost(usage, PRICES))]
}

const json = (data: object): Buffer => Buffer.from(`data: ${JSON.stringify(data)}\n\n`)
const named = (type: string, data: object): Buffer => Buffer.from(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
const reportsOf = (events: readonly Buffer[], read: (event: Buffer) => UsageReport | undefined): UsageReport | undefined =>
  events.flatMap((event) => read(event) ?? []).reduce<UsageReport | undefined>((former, later) => laterReport(former, later), undefined)

type Format = 'chat' | 'messages' | 'responses'

/** The report of a plain answer. */
const PLAIN: Readonly<Record<Format, (usage: unknown) => UsageReport | undefined>> = {
  chat: (usage) => chatCompletions.events.usageIn({ id: 'c', choices: [], usage }),
  messages: (usage) => messages.events.usageIn({ id: 'm', content: [], usage }),
  responses: (usage) => responsesUsage({ id: 'r', object: 'response', output: [], usage }),
}

/** The report of a stream with these usages: of a message, the first is in its start. */
const STREAMED: Readonly<Record<Format, (usages: readonly unknown[]) => UsageReport | undefined>> = {
  chat: (usages) => {
    const chunks = usages.map((usage) => json({ id: 'c', object: 'chat.completion.chunk', choices: [], usage }))
    return reportsOf(chunks, (event) => chatCompletions.events.usageOf(event)?.report)
  },
  messages: ([first, ...later]) => {
    const rest = later.length === 0 ? [first] : later // only the end reports the whole answer
    const start = named('message_start', { message: { id: 'm', content: [], usage: first } })
    const deltas = rest.map((usage) => named('message_delta', { delta: { stop_reason: 'end_turn' }, usage }))
    return reportsOf([start, ...deltas], (event) => messages.events.usageOf(event)?.report)
  },
  responses: (usages) => {
    const started = ['response.created', 'response.in_progress'].map((type) => named(type, { response: { id: 'r', usage: null } }))
    const ended = usages.map((usage) => named('response.completed', { response: { id: 'r', usage } }))
    return reportsOf([...started, ...ended], (event) => responsesUsage(JSON.parse(parseSseEvent(event).data ?? '') as JsonObject))
  },
}

type Row = readonly [engine: string, format: Format, what: string, usages: readonly unknown[], charged: Charged]

const NOT_CACHED: Charged = [1_000, 0, 0, 50, 3_000 + 750 + 2_000]
const CACHED: Charged = [400, 600, 0, 50, 1_200 + 180 + 750 + 2_000]
const WRITTEN: Charged = [200, 600, 200, 50, 600 + 180 + 750 + 750 + 2_000]
const ALL_CACHED: Charged = [0, 1_000, 0, 50, 300 + 750 + 2_000]

const chat = { prompt_tokens: 1_000, completion_tokens: 50, total_tokens: 1_050 }
const response = { input_tokens: 1_000, output_tokens: 50, total_tokens: 1_050 }
const message = { input_tokens: 400, cache_read_input_tokens: 600, output_tokens: 50 }
const cached = (tokens: unknown) => ({ prompt_tokens_details: { cached_tokens: tokens } })
const cachedInput = (tokens: unknown) => ({ input_tokens_details: { cached_tokens: tokens } })

const CHAT: readonly Row[] = [
  ['vLLM', 'chat', 'without --enable-prompt-tokens-details', [{ ...chat, prompt_tokens_details: null }], NOT_CACHED],
  ['vLLM', 'chat', 'with --enable-prompt-tokens-details', [{ ...chat, ...cached(600) }], CACHED],
  ['vLLM', 'chat', 'on each chunk, and last with details', [{ ...chat, completion_tokens: 1 }, chat, { ...chat, ...cached(600) }], CACHED],
  ['vLLM', 'chat', 'last without details', [{ ...chat, ...cached(600) }, chat], CACHED],
  ['SGLang', 'chat', 'without --enable-cache-report', [{ ...chat, reasoning_tokens: 0, prompt_tokens_details: null }], NOT_CACHED],
  ['SGLang', 'chat', 'with --enable-cache-report', [{ ...chat, reasoning_tokens: 20, ...cached(600) }], CACHED],
  ['llama.cpp', 'chat', 'always', [{ ...chat, ...cached(600) }], CACHED],
  ['Ollama', 'chat', 'without details', [chat], NOT_CACHED],
  ['OpenAI', 'chat', 'with writes', [{ ...chat, prompt_tokens_details: { cached_tokens: 600, cache_write_tokens: 200 } }], WRITTEN],
  ['a proxy', 'chat', 'in both formats', [{ ...chat, ...cached(600), cache_read_input_tokens: 600 }], CACHED],
  [
    ...(['a proxy', 'chat', 'with 0 in one of both formats'] as const),
    [{ ...chat, ...cached(0), cache_read_input_tokens: 600, cache_creation_input_tokens: 200 }],
    WRITTEN,
  ],
  [
    'a proxy',
    'chat',
    'in both formats, with another input_tokens',
    [{ ...chat, ...cached(600), input_tokens: 400, output_tokens: 50 }],
    CACHED,
  ],
  ['any', 'chat', 'more cached tokens than prompt', [{ ...chat, ...cached(4_000) }], ALL_CACHED],
  [
    ...(['any', 'chat', 'more cached and written tokens than prompt'] as const),
    [{ ...chat, prompt_tokens_details: { cached_tokens: 600, cache_write_tokens: 4_000 } }],
    [0, 600, 400, 50, 180 + 1_500 + 750 + 2_000],
  ],
  ['any', 'chat', 'a negative count of cached tokens', [{ ...chat, ...cached(-600) }], NOT_CACHED],
  ['any', 'chat', 'half a cached token', [{ ...chat, ...cached(600.5) }], NOT_CACHED],
  ['any', 'chat', 'a text of cached tokens', [{ ...chat, ...cached('600') }], NOT_CACHED],
  ['any', 'chat', 'null cached tokens', [{ ...chat, ...cached(null) }], NOT_CACHED],
  ['any', 'chat', 'details that are a list', [{ ...chat, prompt_tokens_details: [{ cached_tokens: 600 }] }], NOT_CACHED],
  ['any', 'chat', 'a total and the answer', [{ completion_tokens: 50, total_tokens: 1_050, ...cached(600) }], CACHED],
  ['any', 'chat', 'cached tokens of an unknown prompt', [{ completion_tokens: 50, ...cached(600) }], [0, 600, 0, 50, 180 + 750 + 2_000]],
  ['any', 'chat', 'nothing', [{}], [20, 0, 0, 40, 60 + 600 + 2_000]],
]

const MESSAGES: readonly Row[] = [
  ['llama.cpp', 'messages', 'the cache at the start', [{ ...message, output_tokens: 0 }, { output_tokens: 50 }], CACHED],
  [
    'Ollama',
    'messages',
    'no cache',
    [
      { input_tokens: 1_000, output_tokens: 0 },
      { input_tokens: 1_000, output_tokens: 50 },
    ],
    NOT_CACHED,
  ],
  [
    ...(['vLLM', 'messages', 'the whole prompt at the start, and its cached part at the end'] as const),
    [
      { input_tokens: 1_000, output_tokens: 0 },
      { ...message, cache_creation_input_tokens: 0 },
    ],
    CACHED,
  ],
  [
    ...(['vLLM', 'messages', 'the whole prompt at the start, which came from the cache'] as const),
    [
      { input_tokens: 1_000, output_tokens: 0 },
      { input_tokens: 0, cache_read_input_tokens: 1_000, cache_creation_input_tokens: 0, output_tokens: 50 },
    ],
    ALL_CACHED,
  ],
  [...(['SGLang', 'messages', '0 at the start, all counts at the end'] as const), [{ input_tokens: 0, output_tokens: 0 }, message], CACHED],
  [
    ...(['SGLang', 'messages', 'more cached tokens than prompt'] as const),
    [{ input_tokens: 0, cache_read_input_tokens: 1_000, output_tokens: 50 }],
    ALL_CACHED,
  ],
  [
    ...(['Anthropic', 'messages', 'all counts at the start, and again at the end'] as const),
    [
      { input_tokens: 200, cache_read_input_tokens: 600, cache_creation_input_tokens: 200, output_tokens: 1 },
      { input_tokens: 200, cache_read_input_tokens: 600, cache_creation_input_tokens: 200, output_tokens: 50 },
    ],
    WRITTEN,
  ],
  [
    ...(['Anthropic', 'messages', 'writes by their lifetime too'] as const),
    [
      {
        ...{ input_tokens: 200, cache_read_input_tokens: 600, cache_creation_input_tokens: 200, output_tokens: 1 },
        cache_creation: { ephemeral_5m_input_tokens: 150, ephemeral_1h_input_tokens: 50 },
      },
      { output_tokens: 50 },
    ],
    WRITTEN,
  ],
  [
    ...(['a proxy', 'messages', '0 for the cache at the end'] as const),
    [
      { ...message, output_tokens: 1 },
      { input_tokens: 400, cache_read_input_tokens: 0, output_tokens: 50 },
    ],
    CACHED,
  ],
  [
    ...(['a proxy', 'messages', 'in both formats, the whole prompt in both'] as const),
    [{ ...chat, ...cached(600), input_tokens: 1_000, cache_read_input_tokens: 600, output_tokens: 50 }],
    CACHED,
  ],
  ['a proxy', 'messages', 'in both formats', [{ ...message, ...chat, ...cached(600) }], CACHED],
  [
    ...(['a proxy', 'messages', 'the whole prompt at the start, and the format of chat at the end'] as const),
    [
      { input_tokens: 1_000, output_tokens: 0 },
      { ...chat, ...cached(600) },
    ],
    CACHED,
  ],
  ['a proxy', 'messages', 'in the format of chat', [{ ...chat, ...cached(600) }], CACHED],
  [
    'any',
    'messages',
    'null for the cache',
    [{ ...response, cache_read_input_tokens: null, cache_creation_input_tokens: null }],
    NOT_CACHED,
  ],
  ['any', 'messages', 'a negative count of the cache', [{ ...response, cache_read_input_tokens: -600 }], NOT_CACHED],
  ['any', 'messages', 'half a token', [{ input_tokens: 1_000, cache_read_input_tokens: 0.5, output_tokens: 50 }], NOT_CACHED],
  [
    ...(['any', 'messages', 'cached tokens of an unknown prompt'] as const),
    [{ cache_read_input_tokens: 600, output_tokens: 50 }],
    [0, 600, 0, 50, 180 + 750 + 2_000],
  ],
]

const RESPONSES: readonly Row[] = [
  [
    'vLLM',
    'responses',
    'within input_tokens',
    [{ ...response, ...cachedInput(600), output_tokens_details: { reasoning_tokens: 9 } }],
    CACHED,
  ],
  ['SGLang', 'responses', 'without details', [{ ...response, input_tokens_details: null }], NOT_CACHED],
  ['llama.cpp', 'responses', 'within input_tokens', [{ ...response, ...cachedInput(600) }], CACHED],
  ['OpenAI', 'responses', 'with writes', [{ ...response, input_tokens_details: { cached_tokens: 600, cache_write_tokens: 200 } }], WRITTEN],
  ['a proxy', 'responses', 'in both formats', [{ ...response, ...chat, ...cachedInput(600), ...cached(600) }], CACHED],
  ['a proxy', 'responses', 'in the format of messages too', [{ ...response, ...cachedInput(600), cache_read_input_tokens: 600 }], CACHED],
  ['any', 'responses', 'more cached tokens than prompt', [{ ...response, ...cachedInput(4_000) }], ALL_CACHED],
  ['any', 'responses', 'a negative count of cached tokens', [{ ...response, ...cachedInput(-1) }], NOT_CACHED],
  ['any', 'responses', 'a total and the answer', [{ output_tokens: 50, total_tokens: 1_050, ...cachedInput(600) }], CACHED],
  ['any', 'responses', 'nothing', [null], [20, 0, 0, 40, 60 + 600 + 2_000]],
]

const ROWS = [...CHAT, ...MESSAGES, ...RESPONSES]

describe('each token of a call is charged once, at its price, by what a server reports', () => {
  test.each(ROWS)('%s in a stream of %s: %s', (...[, format, , usages, expected]) => {
    expect(charged(STREAMED[format](usages))).toEqual(expected)
  })

  test.each(ROWS.filter(([, , , usages]) => usages.length === 1))(
    '%s in a plain answer of %s: %s',
    (...[, format, , [usage], expected]) => {
      expect(charged(PLAIN[format](usage))).toEqual(expected)
    },
  )

  test.each([
    ['llama.cpp', message],
    ['vLLM', { ...message, cache_creation_input_tokens: 0 }],
    ['SGLang', message],
  ])('%s in a plain answer of messages: the cache beside the rest of the prompt', (_engine, usage) => {
    expect(charged(PLAIN.messages(usage))).toEqual(CACHED)
  })

  test('each kind of server is in the table, in each format that it speaks, plain and streamed', () => {
    const formats = (engine: string): readonly string[] => [...new Set(ROWS.flatMap(([name, format]) => (name === engine ? [format] : [])))]
    for (const engine of ['vLLM', 'SGLang', 'llama.cpp']) expect(formats(engine), engine).toEqual(['chat', 'messages', 'responses'])
    expect(formats('Ollama')).toEqual(['chat', 'messages'])
  })
})
