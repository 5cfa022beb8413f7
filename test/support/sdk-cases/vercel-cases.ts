/** Uses of the Vercel AI SDK by applications, with its providers of both styles. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, type LanguageModel, Output, streamText } from 'ai'
import { z } from 'zod'
import {
  casesOfEach,
  endOf,
  hasText,
  isCounted,
  isStreamed,
  MAX_TOKENS,
  QUESTION,
  type SdkCases,
  STRUCTURED_TOKENS,
  type Via,
} from './sdk-case.ts'

const openai = ({ openaiUrl, credential, model }: Via): LanguageModel =>
  createOpenAICompatible({
    name: 'headgate',
    baseURL: openaiUrl,
    apiKey: credential,
    includeUsage: true,
    supportsStructuredOutputs: true,
  })(model)
const anthropic = ({ anthropicUrl, credential, model }: Via): LanguageModel =>
  createAnthropic({ baseURL: `${anthropicUrl}/v1`, apiKey: credential })(model)
const PROVIDERS = { 'OpenAI style': openai, 'Anthropic style': anthropic }
const limits = { maxOutputTokens: MAX_TOKENS, maxRetries: 0 }

export const VERCEL_CASES: SdkCases = {
  ...casesOfEach(PROVIDERS, (style, provider) => ({
    [`${style}, plain`]: async (via) => {
      const { text, finishReason, usage } = await generateText({ ...limits, model: provider(via), system: 'Be brief.', prompt: QUESTION })
      return { text: hasText(text), end: endOf(finishReason), output: isCounted(usage.outputTokens) }
    },
    [`${style}, streamed`]: async (via) => {
      const result = streamText({ ...limits, model: provider(via), prompt: QUESTION })
      let pieces = 0
      for await (const _ of result.textStream) pieces += 1
      const { outputTokens } = await result.usage
      return { isStreamed: isStreamed(pieces), end: endOf(await result.finishReason), output: isCounted(outputTokens) }
    },
    [`${style}, several turns`]: async (via) => {
      const messages = [
        { role: 'user' as const, content: QUESTION },
        { role: 'assistant' as const, content: 'They are wet.' },
        { role: 'user' as const, content: [{ type: 'text' as const, text: 'More.' }] },
      ]
      const { text, finishReason } = await generateText({ ...limits, model: provider(via), messages })
      return { text: hasText(text), end: endOf(finishReason) }
    },
    [`${style}, a stream that is left early`]: async (via) => {
      const abort = new AbortController()
      const options = { ...limits, maxOutputTokens: 2_000, abortSignal: abort.signal, onError: () => undefined }
      for await (const _ of streamText({ ...options, model: provider(via), prompt: QUESTION }).textStream) abort.abort()
      return abort.signal.aborted
    },
  })),
  'OpenAI style, a completion': async ({ openaiUrl: baseURL, credential: apiKey, model }) => {
    const completions = createOpenAICompatible({ name: 'headgate', baseURL, apiKey, includeUsage: true })
    const { text, finishReason } = await generateText({ ...limits, model: completions.completionModel(model), prompt: QUESTION })
    return { text: hasText(text), end: endOf(finishReason) }
  },
  'OpenAI style, structured output': async (via) => {
    const output = Output.object({ schema: z.object({ colour: z.enum(['red', 'blue']) }) })
    const given = { ...limits, maxOutputTokens: STRUCTURED_TOKENS, prompt: 'Which colour?', output }
    const result = await generateText({ ...given, model: openai(via) })
    return Object.keys(result.output)
  },
}
