import { describe, expect, it } from 'vitest'
import { contextOverflow } from './backend-error.ts'

describe('an overflow of the context is recognised in the words of', () => {
  it.each([
    [
      'OpenAI',
      "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens. Please reduce",
      5000,
      4096,
    ],
    [
      'vLLM',
      "This model's maximum context length is 4096 tokens. However, you requested 5100 tokens (5000 in the messages, 100 in the completion).",
      5100,
      4096,
    ],
    [
      'newer vLLM',
      "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 30 input tokens (5000 > 4096 - 30).",
      30,
      4096,
    ],
    [
      'vLLM, the prompt alone',
      'The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that',
      5000,
      4096,
    ],
    ['SGLang', "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 5000, 4096],
    [
      'SGLang with the output',
      "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 1000 tokens from",
      5000,
      4096,
    ],
    ['llama.cpp', 'request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it', 5000, 4096],
    ['older llama.cpp', 'the request exceeds the available context size. try increasing the context size', undefined, undefined],
    ['TGI', 'Input validation error: `inputs` must have less than 1024 tokens. Given: 2000', 2000, 1024],
    [
      'TGI with the output',
      'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`',
      5000,
      4096,
    ],
    ['Anthropic', 'prompt is too long: 210000 tokens > 200000 maximum', 210_000, 200_000],
    ['Ollama', 'prompt too long; exceeded max context length by 10 tokens', undefined, undefined],
    ['Ollama, embeddings', 'the input length exceeds the context length', undefined, undefined],
  ])('%s', (_, text, tokens, maxTokens) => {
    expect(contextOverflow(text, {})).toEqual({ tokens, maxTokens })
  })

  it('llama.cpp also reports the overflow in fields', () => {
    expect(contextOverflow('x', { type: 'exceed_context_size_error', n_prompt_tokens: 5000, n_ctx: 4096 })).toEqual({
      tokens: 5000,
      maxTokens: 4096,
    })
  })
})

it.each([
  'temperature must be below 2',
  'max_tokens must be at least 1',
  'max_tokens must be at least 1, got -1.',
  'The model `x` does not exist.',
  'context is not a known field',
])('%s is not an overflow', (text) => {
  expect(contextOverflow(text, {})).toBeUndefined()
})
