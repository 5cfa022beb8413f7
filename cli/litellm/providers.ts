/** The providers of LiteLLM whose servers a backend can call, by the word before the first `/` of `litellm_params.model`. Pure. */
import type { Engine } from '#contract/values/call-routes.ts'

export interface Provider {
  readonly engine: Engine
  /** Base URL of a deployment without `api_base`. Absent: the deployment must have one. */
  readonly url?: string
  /** The variable with the credential of a deployment without `api_key`. */
  readonly variable?: string
  /** Whether LiteLLM calls the routes directly below `api_base`, so that `api_base` contains `/v1`. */
  readonly hasVersion: boolean
  /** Path between `api_base` and `/v1`. */
  readonly path?: string
  readonly header?: string
  readonly headers?: ReadonlyArray<{ readonly name: string; readonly value: string }>
  readonly messages?: 'Native'
  readonly routes?: readonly ('chat/completions' | 'completions' | 'responses' | 'messages/count_tokens')[]
  readonly warning?: string
}

function openAI(url: string, variable: string, engine: Engine = 'Other'): Provider {
  return { engine, url, variable, hasVersion: true }
}
const COMPATIBLE: Provider = { engine: 'Other', hasVersion: true }
const OLLAMA: Provider = { engine: 'Ollama', hasVersion: false }

export const PROVIDERS: ReadonlyMap<string, Provider> = new Map<string, Provider>([
  ['openai', openAI('https://api.openai.com', 'OPENAI_API_KEY')],
  ['text-completion-openai', { ...openAI('https://api.openai.com', 'OPENAI_API_KEY'), routes: ['completions'] }],
  ['deepseek', openAI('https://api.deepseek.com', 'DEEPSEEK_API_KEY', 'DeepSeek')],
  ['groq', openAI('https://api.groq.com/openai', 'GROQ_API_KEY')],
  ['mistral', openAI('https://api.mistral.ai', 'MISTRAL_API_KEY')],
  ['openrouter', openAI('https://openrouter.ai/api', 'OPENROUTER_API_KEY')],
  ['xai', openAI('https://api.x.ai', 'XAI_API_KEY')],
  ['hosted_vllm', { ...COMPATIBLE, engine: 'VLLM' }],
  ['ollama', OLLAMA],
  ['ollama_chat', OLLAMA],
  ...['openai_like', 'custom_openai', 'lm_studio', 'llamafile', 'litellm_proxy', 'xinference'].map((name) => [name, COMPATIBLE] as const),
  [
    'anthropic',
    {
      engine: 'Other',
      url: 'https://api.anthropic.com',
      variable: 'ANTHROPIC_API_KEY',
      hasVersion: false,
      header: 'x-api-key',
      headers: [{ name: 'anthropic-version', value: '2023-06-01' }],
      messages: 'Native',
      routes: ['messages/count_tokens'],
      warning: 'the model answers /v1/messages alone: LiteLLM also translates chat completions for it, Headgate does not',
    },
  ],
  [
    'azure',
    {
      engine: 'Other',
      variable: 'AZURE_API_KEY',
      hasVersion: false,
      path: '/openai',
      header: 'api-key',
      routes: ['chat/completions', 'responses'],
      warning: "the backend calls Azure's API of version v1, whatever api_version LiteLLM used",
    },
  ],
])

/** Names of models that LiteLLM knows without a provider. */
const BY_NAME: ReadonlyArray<readonly [RegExp, string]> = [
  [/^(gpt-|chatgpt-|o\d|text-embedding-|whisper-|tts-)/, 'openai'],
  [/^claude-/, 'anthropic'],
]

/** The provider of a model and the name of the model there. @param given `custom_llm_provider` */
export function providerOf(model: string, given: string | undefined): { readonly provider: string | undefined; readonly name: string } {
  if (given !== undefined) return { provider: given, name: model.startsWith(`${given}/`) ? model.slice(given.length + 1) : model }
  const at = model.indexOf('/')
  if (at < 0) return { provider: BY_NAME.find(([names]) => names.test(model))?.[1], name: model }
  return { provider: model.slice(0, at), name: model.slice(at + 1) }
}
