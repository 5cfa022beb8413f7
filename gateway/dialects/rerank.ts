import { openaiEvents } from './backend-events.ts'
import { openaiFraming } from './client-framing.ts'
import type { Dialect } from './dialect.ts'
import type { JsonObject } from './json-body.ts'
import { promptSize, type PromptSize } from './prompt-size.ts'
import { invalid } from './request-shape.ts'
import { rankingUsage } from './usage.ts'

/** Jina's and Cohere's rerank: documents in the order in which they answer a query. */
export const rerank: Dialect = {
  route: 'rerank',
  path: '/v1/rerank',
  isAnthropic: false,
  isForm: false,
  answers: 'Json',
  mayAnswerList: true, // to `texts`, as TEI does
  hasUsageOption: false,
  hasOutput: false,
  isCharged: true,
  caps: [],
  framing: openaiFraming,
  events: { ...openaiEvents, usageIn: rankingUsage },
  wrongPrompt: (body) => {
    if (body.stream === true) return invalid('stream', 'must be false: a ranking has no stream')
    if ((body.query ?? null) === null) return invalid('query', 'is required')
    return documentCount(body) === 0 ? invalid('documents', 'must be a non-empty array') : undefined
  },
  promptSize: size,
}

/** llama.cpp takes `texts`, too. */
function documentCount({ documents, texts }: JsonObject): number {
  return Math.max(0, ...[documents, texts].map((list) => (Array.isArray(list) ? list.length : 0)))
}

/** A server reads the query once with each document. */
function size(body: JsonObject, bodyBytes: number): PromptSize {
  const [whole, again] = [promptSize(body, bodyBytes), documentCount(body) - 1]
  const { query } = body
  const one = promptSize({ query }, Buffer.byteLength(JSON.stringify(query)))
  return {
    ...whole,
    tokens: whole.tokens + again * one.tokens,
    maxTokens: whole.maxTokens + again * one.maxTokens,
  }
}
