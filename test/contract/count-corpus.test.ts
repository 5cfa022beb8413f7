/** The count of tokens over 500 requests: never below the truth by a real tokenizer, and at most 3.2 times. */
import { describe, expect, it, test } from 'vitest'
import { countTokens } from '../../gateway/dialects/count-tokens.ts'
import { promptSize } from '../../gateway/dialects/prompt-size.ts'
import { translateBody } from '../../gateway/dialects/translation/translate-body.ts'
import { GatewayError } from '../../gateway/errors.ts'
import { countedPrompt } from '../../gateway/limits/estimate.ts'
import { type ChatPrompt, chatTokenizers, rendered } from '../support/chat-tokenizers.ts'
import { CORPUS_KINDS, countCorpus, type CountedRequest } from '../support/count-corpus.ts'
import { gatewayTo, json, MESSAGES, type Reply } from '../support/upstream-harness.ts'

const COUNT = '/v1/messages/count_tokens'
const MAX_TIMES = 3.2
const CORPUS = countCorpus()
const HI: CountedRequest = { kind: 'prose', body: { messages: [{ role: 'user', content: 'hi' }] } }

const bytesOf = ({ body }: CountedRequest): Buffer => Buffer.from(JSON.stringify({ model: 'llama', ...body }))

/** The estimate of a gateway that has seen no answer of the model yet. */
function estimateOf(request: CountedRequest): number {
  const bytes = bytesOf(request)
  return countedPrompt(promptSize({ ...request.body }, bytes.length), { ratio: 1 }).tokens
}

function promptOf(request: CountedRequest): ChatPrompt {
  const translation = translateBody(bytesOf(request), countTokens, { engine: 'VLLM', isCount: true })
  if (translation instanceof GatewayError) throw translation
  return JSON.parse(translation.body.bytes.toString()) as ChatPrompt
}

test('the corpus has 500 requests, the same each time', () => {
  expect(CORPUS_KINDS.map((kind) => CORPUS.filter((request) => request.kind === kind).length)).toEqual([100, 100, 100, 100, 100])
  expect(countCorpus()).toEqual(CORPUS)
})

describe.each(chatTokenizers())('the estimate beside the tokenizer %s', (_name, tokenizer) => {
  it.each(CORPUS_KINDS)('is 1 to 3.2 times the truth: %s', (kind) => {
    const requests = CORPUS.filter((request) => request.kind === kind)
    const times = requests.map((request) => estimateOf(request) / tokenizer.count(promptOf(request)))
    expect(Math.min(...times)).toBeGreaterThanOrEqual(1)
    expect(Math.max(...times)).toBeLessThanOrEqual(MAX_TIMES)
  })

  it('is not below the truth for a short prompt, whatever the template adds', () => {
    expect(estimateOf(HI)).toBeGreaterThanOrEqual(tokenizer.count(promptOf(HI)))
  })
})

/** A server whose tokens are the bytes of its prompts, so that a count shows whether it has got all of a prompt. */
function tokenizing(prompts: string[]): Reply {
  return (response, { path, body }) => {
    const sent = JSON.parse(body.toString()) as ChatPrompt & { readonly content?: string }
    const prompt = sent.content ?? rendered(sent)
    const tokens = Array.from(Buffer.from(prompt))
    const answer: Readonly<Record<string, object>> = {
      '/tokenize': { count: tokens.length, tokens },
      '/apply-template': { prompt },
      '/v1/chat/completions': { choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }] },
    }
    if (path === '/v1/chat/completions') prompts.push(prompt)
    json(200, answer[path])(response, { path, body, headers: {}, rawHeaders: [] })
  }
}

it.each(['VLLM', 'LlamaCpp'])('the tokenizer of %s counts the whole prompt that the message becomes, for all requests', async (engine) => {
  const prompts: string[] = []
  const { gateway } = await gatewayTo(tokenizing(prompts), { tickMs: 60_000, backend: { engine, routes: ['chat/completions'] } })
  for (const { body } of CORPUS) {
    gateway.job = { count: { tokens: 1, mediaTokens: 0 }, isMetered: false }
    const counted = await gateway.post(COUNT, { model: 'llama', ...body })
    gateway.job = {}
    await gateway.post(MESSAGES, { model: 'llama', max_tokens: 1, ...body })
    expect(JSON.parse(counted.text)).toEqual({ input_tokens: Buffer.byteLength(prompts.at(-1) ?? '') })
  }
  expect(prompts).toHaveLength(CORPUS.length)
})
