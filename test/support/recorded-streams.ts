/**
 * Streams of chat completions in the forms of the model servers: the fields, comments and ends by which the servers differ. Each has reasoning,
 * text and calls, or a stop sequence, and what a client must rebuild from it.
 */
import type { Engine } from '#contract/values/call-routes.ts'

/** What a message says, however it was cut. */
export interface Said {
  readonly thinking: string
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly name: string; readonly input: unknown }>
  readonly stopReason: string
  readonly stopSequence: string | null
  readonly usage: Readonly<Record<string, number>>
}

export interface RecordedStream {
  readonly name: string
  readonly engine: Engine
  /** Whole events with their boundaries. */
  readonly events: readonly string[]
  readonly said: Said
}

export const STOP_SEQUENCE = 'END'

type Fields = Readonly<Record<string, unknown>>

const data = (value: Fields): string => `data: ${JSON.stringify(value)}\n\n`
const DONE = 'data: [DONE]\n\n'
const piece = (index: number, args: string, more: Fields = {}): Fields => ({ index, ...more, function: { arguments: args } })
const opening = (index: number, id: string, name: string, args?: string): Fields => ({
  ...{ index, id, type: 'function' },
  function: { name, ...(args !== undefined && { arguments: args }) },
})

interface ChunkOptions {
  /** Fields of the chunk besides its choice. */
  readonly head: Fields
  /** Fields of the choice besides its delta. */
  readonly choice?: Fields
}

/** @returns the chunks of one server */
function chunks({ head, choice = {} }: ChunkOptions) {
  const common = { object: 'chat.completion.chunk', created: 1, model: 'up', ...head }
  const chunk = (delta: Fields, finish: string | null = null, more: Fields = {}): string =>
    data({ ...common, choices: [{ index: 0, delta, finish_reason: finish, ...choice, ...more }] })
  return {
    chunk,
    finishWithUsage: (reason: string, usage: Fields): string =>
      data({ ...common, choices: [{ index: 0, delta: { content: '' }, finish_reason: reason, ...choice }], usage }),
    usage: (usage: Fields, more: Fields = {}): string => data({ ...common, choices: [], usage, ...more }),
  }
}

const READS = [
  { name: 'read', input: { path: 'ä.txt' } },
  { name: 'list', input: {} },
]
const THOUGHT = 'Two files – both “näher”.'
const TEXT = 'Reading 文件 🙂 now.'
const TOOL_USE = { thinking: THOUGHT, text: TEXT, calls: READS, stopReason: 'tool_use', stopSequence: null }
const STOPPED = { thinking: '', text: 'one, two', calls: [], stopReason: 'stop_sequence', stopSequence: STOP_SEQUENCE }

function vllm(): RecordedStream[] {
  const { chunk, usage, finishWithUsage } = chunks({
    head: { id: 'chatcmpl-7c', service_tier: null },
    choice: { logprobs: null, token_ids: null },
  })
  const counts = { prompt_tokens: 30, total_tokens: 50, completion_tokens: 20 }
  return [
    {
      name: 'vLLM, parallel calls whose names come without arguments',
      engine: 'VLLM',
      events: [
        chunk({ role: 'assistant', content: '' }),
        ...['Two files', ' – both “n', 'äher”.'].map((reasoning) => chunk({ reasoning })),
        ...['Reading 文', '件 🙂', ' now.'].map((content) => chunk({ content })),
        chunk({ tool_calls: [opening(0, 'chatcmpl-tool-a', 'read')] }),
        ...['{"pa', 'th": "ä', '.txt', '"}'].map((args) => chunk({ tool_calls: [piece(0, args)] })),
        chunk({ tool_calls: [opening(1, 'chatcmpl-tool-b', 'list')] }),
        chunk({ tool_calls: [piece(1, '{}')] }),
        chunk({ content: '' }, 'tool_calls', { stop_reason: null }),
        usage({ ...counts, prompt_tokens_details: { cached_tokens: 16 } }),
        DONE,
      ],
      said: { ...TOOL_USE, usage: { input_tokens: 14, cache_read_input_tokens: 16, output_tokens: 20 } },
    },
    {
      name: 'vLLM, a stop sequence',
      engine: 'VLLM',
      events: [
        chunk({ role: 'assistant', content: '' }),
        ...['one', ', two'].map((content) => chunk({ content })),
        chunk({ content: '' }, 'stop', { stop_reason: STOP_SEQUENCE }),
        usage({ ...counts, prompt_tokens_details: null }),
        DONE,
      ],
      said: { ...STOPPED, usage: { input_tokens: 30, output_tokens: 20 } },
    },
    {
      name: 'vLLM, usage at the finish and again with details',
      engine: 'VLLM',
      events: [
        chunk({ role: 'assistant', content: '' }),
        chunk({ content: TEXT }),
        finishWithUsage('stop', counts),
        usage({ ...counts, prompt_tokens_details: { cached_tokens: 16 } }),
        DONE,
      ],
      said: {
        ...{ thinking: '', text: TEXT, calls: [], stopReason: 'end_turn', stopSequence: null },
        usage: { input_tokens: 14, cache_read_input_tokens: 16, output_tokens: 20 },
      },
    },
  ]
}

/** Each delta of SGLang has all fields. */
function sglang(): RecordedStream[] {
  const { chunk, usage } = chunks({ head: { id: 'a1', usage: null }, choice: { logprobs: null, matched_stop: null } })
  const empty = { role: null, content: null, reasoning_content: null, tool_calls: null }
  const counts = { prompt_tokens: 30, completion_tokens: 20, total_tokens: 50, reasoning_tokens: 8 }
  return [
    {
      name: 'SGLang, parallel calls whose arguments are interleaved',
      engine: 'SGLang',
      events: [
        chunk({ ...empty, role: 'assistant', content: '' }),
        ...['Two files – ', 'both “näher”.'].map((reasoning) => chunk({ ...empty, reasoning_content: reasoning })),
        ...['Reading 文件', ' 🙂 now.'].map((content) => chunk({ ...empty, content })),
        chunk({ ...empty, tool_calls: [opening(0, 'call_a', 'read', ''), opening(1, 'call_b', 'list', '')] }),
        chunk({ ...empty, tool_calls: [piece(0, '{"path":'), piece(1, '{')] }),
        chunk({ ...empty, tool_calls: [piece(1, '}'), piece(0, '"ä.txt"}', { id: null })] }),
        chunk(empty, 'tool_calls'),
        usage({ ...counts, prompt_tokens_details: { cached_tokens: 4 } }),
        DONE,
      ],
      said: { ...TOOL_USE, usage: { input_tokens: 26, cache_read_input_tokens: 4, output_tokens: 20 } },
    },
    {
      name: 'SGLang, a stop sequence',
      engine: 'SGLang',
      events: [
        chunk({ ...empty, role: 'assistant', content: '' }),
        ...['one, ', 'two'].map((content) => chunk({ ...empty, content })),
        chunk(empty, 'stop', { matched_stop: STOP_SEQUENCE }),
        usage({ ...counts, prompt_tokens_details: null }),
        DONE,
      ],
      said: { ...STOPPED, usage: { input_tokens: 30, output_tokens: 20 } },
    },
  ]
}

/** DeepSeek reports its usage with the reason for the end, and keeps the connection alive by comments. */
function deepSeek(): RecordedStream[] {
  const { chunk, finishWithUsage } = chunks({ head: { id: 'd-1', system_fingerprint: 'fp_1' }, choice: { logprobs: null } })
  const counts = {
    ...{ prompt_tokens: 30, completion_tokens: 20, total_tokens: 50, prompt_tokens_details: { cached_tokens: 10 } },
    ...{ completion_tokens_details: { reasoning_tokens: 8 }, prompt_cache_hit_tokens: 10, prompt_cache_miss_tokens: 20 },
  }
  return [
    {
      name: 'DeepSeek, parallel calls after comments',
      engine: 'DeepSeek',
      events: [
        ': keep-alive\n\n',
        ': keep-alive\n\n',
        chunk({ role: 'assistant', content: null, reasoning_content: '' }),
        ...['Two files – both ', '“näher”.'].map((reasoning) => chunk({ content: null, reasoning_content: reasoning })),
        ...['Reading', ' 文件 🙂 now.'].map((content) => chunk({ content, reasoning_content: null })),
        chunk({ tool_calls: [opening(0, 'call_00_a', 'read', '')] }),
        ...['{"path": ', '"ä.txt"', '}'].map((args) => chunk({ tool_calls: [piece(0, args)] })),
        chunk({ tool_calls: [opening(1, 'call_01_b', 'list', '')] }),
        chunk({ tool_calls: [piece(1, '{}')] }),
        finishWithUsage('tool_calls', counts),
        DONE,
      ],
      said: { ...TOOL_USE, usage: { input_tokens: 20, cache_read_input_tokens: 10, output_tokens: 20 } },
    },
  ]
}

/** llama.cpp begins with an empty content, opens a call with its first argument, and sends a colon when it is silent. */
function llamaCpp(): RecordedStream[] {
  const { chunk, usage } = chunks({ head: { id: 'chatcmpl-x', system_fingerprint: 'b9000' } })
  const counts = { prompt_tokens: 30, completion_tokens: 20, total_tokens: 50, prompt_tokens_details: { cached_tokens: 29 } }
  const timings = { cache_n: 29, prompt_n: 1, prompt_ms: 1.5, predicted_n: 20, predicted_ms: 9.25, predicted_per_second: 2162.1 }
  return [
    {
      name: 'llama.cpp, parallel calls that open with an argument',
      engine: 'LlamaCpp',
      events: [
        chunk({ role: 'assistant', content: null }),
        ':\n\n',
        ...['Two files – both “n', 'äher”.'].map((reasoning) => chunk({ reasoning_content: reasoning })),
        ...['Reading 文件 ', '🙂', ' now.'].map((content) => chunk({ content })),
        chunk({ tool_calls: [opening(0, 'Xa', 'read', '{')] }),
        ...['"path":', '"ä.txt"', '}'].map((args) => chunk({ tool_calls: [piece(0, args)] })),
        chunk({ tool_calls: [opening(1, 'Xb', 'list', '{')] }),
        chunk({ tool_calls: [piece(1, '}')] }),
        chunk({}, 'tool_calls'),
        usage(counts, { timings }),
        DONE,
      ],
      said: { ...TOOL_USE, usage: { input_tokens: 1, cache_read_input_tokens: 29, output_tokens: 20 } },
    },
    {
      name: 'llama.cpp, arguments that the limit of tokens cuts off',
      engine: 'LlamaCpp',
      events: [
        chunk({ role: 'assistant', content: null }),
        chunk({ content: TEXT }),
        chunk({ tool_calls: [opening(0, 'Xa', 'read', '{')] }),
        chunk({ tool_calls: [piece(0, '"path":"ä')] }),
        chunk({}, 'length'),
        usage(counts, { timings }),
        DONE,
      ],
      said: {
        ...{ thinking: '', text: TEXT, calls: [{ name: 'read', input: undefined }], stopReason: 'max_tokens', stopSequence: null },
        usage: { input_tokens: 1, cache_read_input_tokens: 29, output_tokens: 20 },
      },
    },
  ]
}

export const RECORDED_STREAMS: readonly RecordedStream[] = [...vllm(), ...sglang(), ...deepSeek(), ...llamaCpp()]
