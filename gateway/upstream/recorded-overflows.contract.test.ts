/**
 * Overflows of the context in the words of model servers, as public issues and sources show them, for a client of messages. Claude Code compacts
 * if an error says "prompt is too long", and computes by how much if the sizes follow. It lowers `max_tokens` if that alone is too large.
 */
import { describe, expect, it, test } from 'vitest'
import { type Answer, DONE, gatewayTo, HELLO, json, MESSAGES, type Reply, sse } from '../../test/support/upstream-harness.ts'

const COMPACTS = /^prompt is too long\b/i
const COMPACTS_BY = /prompt is too long[^0-9]*(\d+)\s*tokens?\s*>\s*(\d+)/i

const openai = (message: string, type: string, code: unknown): object => ({ error: { message, type, param: null, code } })
const flat = (message: string): object => ({ object: 'error', message, type: 'BadRequestError', param: null, code: 400 })

/** @param sizes of prompt and context, where the prompt alone is too long or the server has counted the answer as well */
type Overflow = readonly [from: string, status: number, body: object, sizes?: readonly [tokens: number, max: number]]

const OVERFLOWS: readonly Overflow[] = [
  [
    'vLLM (vllm#20409)',
    400,
    flat(
      "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
    ),
    [122_946, 16_384],
  ],
  [
    'vLLM, max_tokens alone, and too little is left',
    400,
    openai(
      "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens and your request has 4193 input tokens (8192 > 8192 - 4193).",
      'BadRequestError',
      400,
    ),
  ],
  [
    'vLLM since its renderers (vllm/renderers/params.py)',
    400,
    openai(
      "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
      'BadRequestError',
      400,
    ),
    [128_001, 128_000],
  ],
  [
    'vLLM, its engine (vllm/v1/engine)',
    400,
    openai(
      'The decoder prompt (length 88049) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.',
      'BadRequestError',
      400,
    ),
    [88_049, 32_768],
  ],
  [
    'vLLM with images (vllm#12165)',
    400,
    flat(
      'The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.',
    ),
    [25_938, 4_096],
  ],
  [
    'vLLM, its other words for a prompt',
    400,
    openai("Input length (66001) exceeds model's maximum context length (65536).", 'BadRequestError', 400),
    [66_001, 65_536],
  ],
  [
    'vLLM without max_tokens (a served gpt-oss-20b)',
    400,
    openai('max_tokens must be at least 1, got -46771. (parameter=max_tokens, value=-46771)', 'BadRequestError', 400),
  ],
  [
    'SGLang (free-claude-code#263)',
    400,
    flat("The input (345516 tokens) is longer than the model's context length (262144 tokens)."),
    [345_516, 262_144],
  ],
  [
    'SGLang, its scheduler (sglang, managers/utils.py)',
    400,
    flat(
      'Input length (40000 tokens) exceeds the maximum allowed length (32762 tokens). Use a shorter input or enable --allow-auto-truncate.',
    ),
    [40_000, 32_762],
  ],
  [
    'llama.cpp (jan#8108)',
    400,
    {
      error: {
        ...{ code: 400, message: 'request (24071 tokens) exceeds the available context size (8192 tokens), try increasing it' },
        ...{ type: 'exceed_context_size_error', n_prompt_tokens: 24_071, n_ctx: 8_192 },
      },
    },
    [24_071, 8_192],
  ],
  ['llama.cpp within an answer', 500, { error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' } }],
  [
    'TGI',
    422,
    { error: 'Input validation error: `inputs` must have less than 1024 tokens. Given: 2000', error_type: 'validation' },
    [2_000, 1_024],
  ],
  [
    'TGI with the answer',
    422,
    {
      error:
        'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`',
      error_type: 'validation',
    },
    [5_000, 4_096],
  ],
  ['Ollama', 400, openai('prompt too long; exceeded max context length by 100918 tokens', 'invalid_request_error', null)],
  [
    'Ollama, its own API',
    400,
    { StatusCode: 400, Status: '400 Bad Request', error: 'prompt too long; exceeded max context length by 4 tokens' },
  ],
  [
    'Anthropic',
    400,
    { type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 213462 tokens > 200000 maximum' } },
    [213_462, 200_000],
  ],
]

/** Overflows by the cap of the answer alone. @param sizes of prompt, cap and context */
const CAPPED: readonly (readonly [
  from: string,
  status: number,
  body: object,
  sizes: readonly [input: number, cap: number, max: number],
])[] = [
  [
    'vLLM, max_tokens alone (MinerU#4868)',
    400,
    openai(
      "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens and your request has 1210 input tokens (8192 > 8192 - 1210).",
      'BadRequestError',
      400,
    ),
    [1_210, 8_192, 8_192],
  ],
  [
    'vLLM since its renderers, a prompt that it has counted whole',
    400,
    openai(
      "This model's maximum context length is 128000 tokens. However, you requested 127000 output tokens and your prompt contains 1001 input tokens, for a total of 128001 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
      'BadRequestError',
      400,
    ),
    [1_001, 127_000, 128_000],
  ],
  [
    'SGLang with the answer (sglang, tokenizer_manager.py)',
    400,
    flat(
      "Requested token count exceeds the model's maximum context length of 64000 tokens. You requested a total of 71897 tokens: 7897 tokens from the input messages and 64000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
    ),
    [7_897, 64_000, 64_000],
  ],
  [
    'DeepSeek (fast-agent#621)',
    400,
    openai(
      "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.",
      'invalid_request_error',
      'invalid_request_error',
    ),
    [122_942, 8_192, 131_072],
  ],
  [
    'TGI',
    422,
    {
      error:
        'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 5000 `inputs` tokens and 32000 `max_new_tokens`',
      error_type: 'validation',
    },
    [5_000, 32_000, 32_768],
  ],
]

const streamed =
  (body: object): Reply =>
  (response) =>
    sse(response).end(`data: ${JSON.stringify('error' in body ? body : { error: body })}\n\n${DONE}`)

async function call(reply: Reply, route: string, stream: boolean): Promise<Answer & { readonly row: string | undefined }> {
  const { gateway } = await gatewayTo(reply, { tickMs: 60_000, backend: { routes: [route], upstreamModel: 'up' } })
  const answer = await gateway.post(MESSAGES, { ...HELLO, max_tokens: 10, stream })
  return { ...answer, row: gateway.refusals[0]?.row.id }
}

const messageOf = ({ text }: Answer): string => (JSON.parse(text) as { error: { message: string } }).error.message
const wordsOf = (body: object): string => {
  const { error, message } = body as { error?: string | { message: string }; message?: string }
  return message ?? (typeof error === 'string' ? error : (error?.message ?? ''))
}

/** Answers to an overflow that the server sends for a plain call, for a streamed call, and within a stream. Each has its words. */
async function overflowAnswers(status: number, body: object, route: string): Promise<Answer[]> {
  const answers = [
    await call(json(status, body), route, false),
    await call(json(status, body), route, true),
    await call(streamed(body), route, true),
  ]
  for (const answer of answers) {
    expect([answer.status, answer.row, answer.headers['x-should-retry']]).toEqual([400, 'contextOverflow', 'false'])
    expect(messageOf(answer).endsWith(wordsOf(body)), messageOf(answer)).toBe(true)
  }
  return answers
}

describe.each([
  ['Translate', 'chat/completions'],
  ['Native', 'messages'],
])('X11 through %s Claude Code compacts after an overflow in the words of', (_way, route) => {
  it.each(OVERFLOWS.map(([from, status, body, sizes]) => ({ from, status, body, sizes })))('$from', async ({ status, body, sizes }) => {
    for (const answer of await overflowAnswers(status, body, route)) {
      expect(messageOf(answer)).toMatch(COMPACTS)
      expect(COMPACTS_BY.exec(messageOf(answer))?.slice(1).map(Number)).toEqual(sizes)
    }
  })
})

/** Claude Code sets `max_tokens` to what the context leaves, less 1,000, and calls again. */
const LOWERS = /input length and `max_tokens` exceed context limit: (\d+) \+ (\d+) > (\d+)/

describe.each([
  ['Translate', 'chat/completions'],
  ['Native', 'messages'],
])('X11 through %s Claude Code lowers max_tokens after an overflow by it alone, in the words of', (_way, route) => {
  it.each(CAPPED.map(([from, status, body, sizes]) => ({ from, status, body, sizes })))('$from', async ({ status, body, sizes }) => {
    for (const answer of await overflowAnswers(status, body, route)) {
      expect(LOWERS.exec(messageOf(answer))?.slice(1).map(Number)).toEqual(sizes)
      expect(messageOf(answer)).not.toMatch(/prompt is too long/i)
    }
  })
})

test('the refusal by which Claude Code lowers max_tokens reaches it word by word', async () => {
  const message =
    'input length and `max_tokens` exceed context limit: 186433 + 20000 > 200000, decrease input length or `max_tokens` and try again'
  for (const stream of [true, false]) {
    const answer = await call(json(400, { type: 'error', error: { type: 'invalid_request_error', message } }), 'messages', stream)
    expect([answer.status, answer.row, messageOf(answer)]).toEqual([400, 'backendRejected', message])
  }
})
