/** The embeddings and rankings of the stub model. They have no text, and no streams. */
import { openaiFailure, type StubAnswer, type StubFormat, wordsOf } from './stub-format.ts'

export const embeddingsFormat: StubFormat = {
  inputTokens: ({ input }) => wordsOf(input),
  plain(answer) {
    const { model, input, encoding_format: encoding } = answer.request
    const data = promptsOf(input).map((prompt, index) => {
      const vector = vectorOf(prompt)
      const bytes = Buffer.from(Float32Array.from(vector).buffer)
      return { object: 'embedding', index, embedding: encoding === 'base64' ? bytes.toString('base64') : vector }
    })
    return JSON.stringify({ object: 'list', model, data, usage: usageOf(answer) })
  },
  failure: openaiFailure,
}

export const rerankFormat: StubFormat = {
  /** A server reads the query with each document. */
  inputTokens: ({ query, documents }) => documents.length * wordsOf(query) + wordsOf(documents),
  plain(answer) {
    const { model, documents, query, top_n: most } = answer.request
    const scored = documents.map((document, index) => ({ index, relevance_score: scoreOf(query, document) }))
    const results = scored.toSorted((a, b) => b.relevance_score - a.relevance_score).slice(0, most ?? documents.length)
    return JSON.stringify({ object: 'list', model, results, usage: usageOf(answer) })
  },
  failure: openaiFailure,
}

/** A list of numbers is one prompt. Each entry of any other list is a prompt. */
function promptsOf(input: unknown): readonly unknown[] {
  return Array.isArray(input) && typeof input[0] !== 'number' ? input : [input]
}

const DIMENSIONS = 8

/** The same prompt has the same vector, of length 1. */
function vectorOf(prompt: unknown): number[] {
  const sums = Array.from({ length: DIMENSIONS }, () => 1)
  for (const [at, byte] of Buffer.from(JSON.stringify(prompt)).entries()) sums[at % DIMENSIONS] = (sums[at % DIMENSIONS] ?? 0) + byte
  const length = Math.hypot(...sums)
  return sums.map((sum) => sum / length)
}

/** The part of the words of the query that a document has. */
function scoreOf(query: unknown, document: unknown): number {
  const [asked, found] = [searched(query), searched(document)]
  return asked.filter((word) => found.includes(word)).length / Math.max(1, asked.length)
}

function searched(value: unknown): string[] {
  return JSON.stringify(value).toLowerCase().match(/\w+/g) ?? []
}

function usageOf({ usage, inputTokens }: StubAnswer): object | undefined {
  return usage ? { prompt_tokens: inputTokens, total_tokens: inputTokens } : undefined
}
