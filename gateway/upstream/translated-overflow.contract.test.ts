/** An overflow of the context, in the shape of each server of chat completions, for a client of messages. */
import { describe, expect, it } from 'vitest'
import { type Answer, DONE, gatewayTo, type Harness, HELLO, json, MESSAGES, type Reply, sse } from '../../test/support/upstream-harness.ts'

interface Called {
  readonly answer: Answer
  readonly gateway: Harness
}

async function call(reply: Reply, stream: boolean): Promise<Called> {
  const { gateway } = await gatewayTo(reply, { tickMs: 60_000, backend: { routes: ['chat/completions'], upstreamModel: 'up' } })
  return { answer: await gateway.post(MESSAGES, { ...HELLO, max_tokens: 10, stream }), gateway }
}

const streaming =
  (text: string): Reply =>
  (response) =>
    sse(response).end(text)

describe('X11 an overflow keeps the words of the server, after the words by which Claude Code compacts or lowers max_tokens', () => {
  const LONG = 'prompt is too long: 5000 tokens > 4096 maximum. The model server says: '
  const BARE = 'prompt is too long for this model. The model server says: '
  const LOWER =
    'input length and `max_tokens` exceed context limit: 30 + 5000 > 4096, decrease input length or `max_tokens` and try again. The model server says: '
  const VLLM =
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4990 in the messages, 10 in the completion)."
  const LLAMA = 'request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it'
  const SGLANG = "The input (5000 tokens) is longer than the model's context length (4096 tokens)."
  const TGI =
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 10 `max_new_tokens`'
  const OLLAMA = 'prompt too long; exceeded max context length by 904 tokens'
  const FIT =
    "'max_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 30 input tokens (5000 > 4096 - 30)."
  const SIZES = { n_prompt_tokens: 5000, n_ctx: 4096 }

  const SHAPES: [string, number, object, { message: string; n_prompt_tokens?: number; n_ctx?: number }][] = [
    ['vLLM', 400, { error: { message: VLLM, type: 'BadRequestError', param: null, code: 400 } }, { message: LONG + VLLM }],
    ['vLLM, an answer that does not fit', 400, { error: { message: FIT, type: 'BadRequestError', code: 400 } }, { message: LOWER + FIT }],
    ['SGLang', 400, { object: 'error', message: SGLANG, type: 'BadRequestError', param: null, code: 400 }, { message: LONG + SGLANG }],
    [
      'llama.cpp',
      400,
      { error: { code: 400, message: LLAMA, type: 'exceed_context_size_error', ...SIZES } },
      { message: LONG + LLAMA, ...SIZES },
    ],
    ['TGI', 422, { error: TGI, error_type: 'validation' }, { message: LONG + TGI }],
    ['Ollama', 400, { error: { message: OLLAMA, type: 'invalid_request_error', param: null, code: null } }, { message: BARE + OLLAMA }],
  ]
  const expected = (error: object) => ({ type: 'error', error: { type: 'invalid_request_error', ...error } })

  it.each(SHAPES)('%s', async (_, status, body, error) => {
    const asEvent = streaming(`data: ${JSON.stringify('error' in body ? body : { error: body })}\n\n${DONE}`)
    const replies: [Reply, boolean][] = [
      [json(status, body), false],
      [json(status, body), true],
      [asEvent, true],
    ]
    for (const [reply, stream] of replies) {
      const { answer, gateway } = await call(reply, stream)
      expect([answer.status, answer.headers['x-should-retry']]).toEqual([400, 'false'])
      const { request_id: _id, ...shown } = JSON.parse(answer.text) as Record<string, unknown>
      expect(shown).toEqual(expected(error))
      expect(gateway.refusals[0]?.row.id).toBe('contextOverflow')
    }
  })

  it('and a refusal of anything else is the words of the server alone, plain and streamed', async () => {
    const message = 'System message must be at the beginning.'
    for (const stream of [true, false]) {
      const { answer } = await call(json(400, { object: 'error', message, type: 'BadRequestError', code: 400 }), stream)
      expect(JSON.parse(answer.text)).toMatchObject(expected({ message }))
    }
  })
})
