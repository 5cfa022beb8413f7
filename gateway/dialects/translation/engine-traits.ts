/** How known model servers differ on chat completions, as far as a translation has to know. `docs/model-servers.md` shows the same table. */
import type { Engine } from '#contract/values/call-routes.ts'
import type { JsonObject } from '../json-body.ts'

export interface EngineTraits {
  /** Field of an assistant message in which the server takes the reasoning of earlier turns; undefined: it takes none. */
  readonly reasoning: 'reasoning' | 'reasoning_content' | undefined
  /** Top-level fields that turn reasoning off; undefined: the server has no such switch. */
  readonly thinkingOff: JsonObject | undefined
  /** Whether the server takes `reasoning_effort`, `top_k` and `parallel_tool_calls`. */
  readonly takesEffort: boolean
  readonly takesTopK: boolean
  readonly takesParallelCalls: boolean
  /** Whether `tool_choice` may name a tool. */
  readonly takesToolName: boolean
  /** How many stop sequences the server takes. */
  readonly maxStops: number
  /** How the server counts the tokens of a prompt; undefined: it does not, and the gateway estimates them. */
  readonly tokenizer: TokenizerRoute | undefined
}

/**
 * `ChatTokenize`: `/tokenize` takes a chat completion. `Template`: `/apply-template` turns a chat completion into the text of the prompt, and
 * `/tokenize` returns the tokens of a text. `CountTokens`: `/v1/messages/count_tokens` takes the request of the client.
 */
export type TokenizerRoute = 'ChatTokenize' | 'Template' | 'CountTokens'

const TEMPLATE_SWITCH = { chat_template_kwargs: { enable_thinking: false } }

/** OpenAI and Azure take four stop sequences, and so does TGI unless it is told otherwise. */
const CAUTIOUS = {
  ...{ reasoning: undefined, thinkingOff: undefined, takesEffort: false, takesTopK: false, takesParallelCalls: false },
  ...{ takesToolName: true, maxStops: 4, tokenizer: undefined },
} as const satisfies EngineTraits
const GENEROUS = {
  ...{ thinkingOff: TEMPLATE_SWITCH, takesEffort: true, takesTopK: true, takesParallelCalls: true },
  ...{ takesToolName: true, maxStops: Infinity },
} as const

export const ENGINE_TRAITS: Readonly<Record<Engine, EngineTraits>> = {
  VLLM: { ...GENEROUS, reasoning: 'reasoning', tokenizer: 'ChatTokenize' },
  SGLang: { ...GENEROUS, reasoning: 'reasoning_content', tokenizer: 'CountTokens' },
  LlamaCpp: { ...GENEROUS, reasoning: 'reasoning_content', takesToolName: false, tokenizer: 'Template' },
  Ollama: { ...CAUTIOUS, reasoning: 'reasoning', takesEffort: true, maxStops: Infinity },
  DeepSeek: { ...CAUTIOUS, reasoning: 'reasoning_content', thinkingOff: { thinking: { type: 'disabled' } }, maxStops: 16 },
  TGI: CAUTIOUS,
  Other: CAUTIOUS,
}
