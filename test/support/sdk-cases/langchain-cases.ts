/** Uses of LangChain.js by applications, with its chat models of both styles. */
import { ChatAnthropic } from '@langchain/anthropic'
import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, type AIMessageChunk, HumanMessage, SystemMessage } from '@langchain/core/messages'
import { ChatOpenAI, OpenAI } from '@langchain/openai'
import { z } from 'zod'
import {
  casesOfEach,
  hasText,
  isCounted,
  isStreamed,
  MAX_TOKENS,
  QUESTION,
  type SdkCases,
  STRUCTURED_TOKENS,
  type Via,
} from './sdk-case.ts'

const limits = { maxTokens: MAX_TOKENS, maxRetries: 0 }
const openai = ({ openaiUrl, credential, model }: Via, maxTokens = MAX_TOKENS): ChatOpenAI =>
  new ChatOpenAI({ ...limits, maxTokens, model, apiKey: credential, configuration: { baseURL: openaiUrl } })
const responses = ({ openaiUrl, credential, model }: Via): ChatOpenAI =>
  new ChatOpenAI({ ...limits, model, apiKey: credential, useResponsesApi: true, configuration: { baseURL: openaiUrl } })
const anthropic = ({ anthropicUrl, credential, model }: Via): ChatAnthropic =>
  new ChatAnthropic({ ...limits, model, apiKey: credential, anthropicApiUrl: anthropicUrl })
const MODELS: Readonly<Record<string, (via: Via) => BaseChatModel>> = {
  ChatOpenAI: openai,
  'ChatOpenAI on responses': responses,
  ChatAnthropic: anthropic,
}

const facts = ({
  text,
  usage_metadata: usage,
}: Pick<AIMessageChunk, 'text'> & { usage_metadata?: { output_tokens: number } | undefined }): unknown => ({
  text: hasText(text),
  output: isCounted(usage?.output_tokens),
})

export const LANGCHAIN_CASES: SdkCases = {
  ...casesOfEach(MODELS, (name, chat) => ({
    [`${name}, invoke`]: async (via) => facts(await chat(via).invoke(QUESTION)),
    [`${name}, several turns`]: async (via) => {
      const turns = [new SystemMessage('Be brief.'), new HumanMessage(QUESTION), new AIMessage('They are wet.'), new HumanMessage('More.')]
      return facts(await chat(via).invoke(turns))
    },
    [`${name}, stream`]: async (via) => {
      let whole: AIMessageChunk | undefined
      let pieces = 0
      for await (const chunk of await chat(via).stream(QUESTION)) {
        whole = whole?.concat(chunk) ?? chunk
        pieces += 1
      }
      return { isStreamed: isStreamed(pieces), whole: whole && facts(whole) }
    },
    [`${name}, batch`]: async (via) => (await chat(via).batch([QUESTION, QUESTION, QUESTION])).map(facts),
  })),
  'OpenAI, a completion': async (via) => {
    const { openaiUrl: baseURL, credential, model } = via
    return hasText(await new OpenAI({ ...limits, model, apiKey: credential, configuration: { baseURL } }).invoke(QUESTION))
  },
  'ChatOpenAI, structured output': async (via) => {
    const schema = z.object({ colour: z.enum(['red', 'blue']) })
    const model = openai(via, STRUCTURED_TOKENS).withStructuredOutput(schema, { method: 'jsonSchema' })
    return Object.keys(await model.invoke('Which colour?'))
  },
}
