/** The routes of model calls, and what is known of the known model servers. `docs/model-servers.md` shows the same table. */

/** Paths behind `/v1/`. */
export const CALL_ROUTES = [
  'chat/completions',
  'completions',
  'responses',
  'embeddings',
  'rerank',
  'audio/transcriptions',
  'audio/speech',
  'messages',
  'messages/count_tokens',
] as const
export type CallRoute = (typeof CALL_ROUTES)[number]

/** Routes of Anthropic's API. A backend serves them itself only with `messages: Native`; otherwise requests for `messages` are translated. */
const ANTHROPIC: ReadonlySet<CallRoute> = new Set(['messages', 'messages/count_tokens'])

/** Routes that a ServedModel may list; its field `messages` decides about `messages`. */
export const LISTED_ROUTES = [
  ...(['chat/completions', 'completions', 'responses', 'embeddings', 'rerank'] as const),
  ...(['audio/transcriptions', 'audio/speech', 'messages/count_tokens'] as const),
] as const
type ListedRoute = (typeof LISTED_ROUTES)[number]

export const ENGINES = ['VLLM', 'SGLang', 'LlamaCpp', 'Ollama', 'TGI', 'DeepSeek', 'Other'] as const
export type Engine = (typeof ENGINES)[number]

const TEXT_ROUTES: readonly ListedRoute[] = [
  ...(['chat/completions', 'completions', 'responses', 'embeddings', 'rerank', 'messages/count_tokens'] as const),
]

/** What each server serves by itself, unless the ServedModel lists its routes. Of an unknown server only the most common route is assumed. */
export const ENGINE_ROUTES: Readonly<Record<Engine, readonly ListedRoute[]>> = {
  VLLM: [...TEXT_ROUTES, 'audio/transcriptions'],
  SGLang: [...TEXT_ROUTES, 'audio/transcriptions'],
  LlamaCpp: [...TEXT_ROUTES, 'audio/transcriptions'],
  Ollama: ['chat/completions', 'completions', 'responses', 'embeddings'],
  TGI: ['chat/completions', 'completions'],
  DeepSeek: ['chat/completions', 'completions'],
  Other: ['chat/completions'],
}

/**
 * Servers that report the tokens of one answer, whatever number of answers or prompts the request has: llama.cpp with `n`, `n_cmpl` or a list of
 * prompts.
 */
export const REPORTS_ONE_ANSWER: ReadonlySet<Engine> = new Set(['LlamaCpp'])

export interface RouteSource {
  readonly engine: Engine
  readonly routes?: readonly ListedRoute[] | undefined
  readonly messages: 'Translate' | 'Native'
}

/** The routes that a backend serves, in the order of `CALL_ROUTES`. */
export function servedRoutes({ engine, routes = ENGINE_ROUTES[engine], messages }: RouteSource): CallRoute[] {
  const listed: ReadonlySet<CallRoute> = new Set<CallRoute>([...routes, 'messages'])
  return CALL_ROUTES.filter((route) => listed.has(route) && (messages === 'Native' || !ANTHROPIC.has(route)))
}
