/** Uses of embeddings by applications, with the SDK and with frameworks. The same text has the same vector, so the numbers are facts too. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { OpenAIEmbeddings } from '@langchain/openai'
import { embed, embedMany } from 'ai'
import OpenAI from 'openai'
import { QUESTION, type SdkCases, type Via } from './sdk-case.ts'

const TEXTS = [QUESTION, 'Why?', 'Grachtengürtel 🚤']
const TOKENS = [1, 20, 30]

const openai = ({ openaiUrl, credential }: Via): OpenAI => new OpenAI({ apiKey: credential, baseURL: openaiUrl, maxRetries: 0 })
const langchain = ({ openaiUrl, credential, model }: Via): OpenAIEmbeddings =>
  new OpenAIEmbeddings({ model, apiKey: credential, maxRetries: 0, configuration: { baseURL: openaiUrl } })
const vercel = ({ openaiUrl, credential, model }: Via) =>
  createOpenAICompatible({ name: 'headgate', baseURL: openaiUrl, apiKey: credential }).embeddingModel(model)

/** Rounded: a server that counts several texts in one batch may differ in the last bits. */
const rounded = (vector: readonly number[]): number[] => vector.map((value) => Math.round(value * 1e4) / 1e4)

function facts({ object, data, usage }: OpenAI.CreateEmbeddingResponse): unknown {
  const vectors = data.map(({ index, embedding }) => ({ index, size: embedding.length, vector: rounded(embedding) }))
  return { object, vectors, usage: [usage.prompt_tokens > 0, usage.total_tokens] }
}

export const EMBEDDING_CASES: SdkCases = {
  'openai, one text': async (via) => facts(await openai(via).embeddings.create({ model: via.model, input: QUESTION })),
  'openai, several texts': async (via) => facts(await openai(via).embeddings.create({ model: via.model, input: TEXTS })),
  'openai, numbers instead of base64': async (via) =>
    facts(await openai(via).embeddings.create({ model: via.model, input: QUESTION, encoding_format: 'float' })),
  'openai, tokens instead of text': async (via) => facts(await openai(via).embeddings.create({ model: via.model, input: TOKENS })),
  'LangChain.js, a query': async (via) => rounded(await langchain(via).embedQuery(QUESTION)),
  'LangChain.js, documents': async (via) => (await langchain(via).embedDocuments(TEXTS)).map(rounded),
  'Vercel AI SDK, embed': async (via) => {
    const { embedding, usage } = await embed({ model: vercel(via), value: QUESTION, maxRetries: 0 })
    return [rounded(embedding), usage.tokens]
  },
  'Vercel AI SDK, embedMany': async (via) =>
    (await embedMany({ model: vercel(via), values: TEXTS, maxRetries: 0 })).embeddings.map(rounded),
}
