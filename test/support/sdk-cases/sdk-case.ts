/**
 * Uses of an SDK by applications, by name. Each runs against the model server directly and through the gateway, and returns facts that have to be
 * the same both ways: no ids, no model name, no sampled text. It throws what the SDK throws.
 */
export type SdkCases = Readonly<Record<string, (via: Via) => Promise<unknown>>>

export interface Via {
  /** Base URL of the OpenAI style, with `/v1`. */
  readonly openaiUrl: string
  /** Base URL of the Anthropic style, without `/v1`. */
  readonly anthropicUrl: string
  readonly credential: string
  readonly model: string
}

/** The model is random, so every answer ends at this many tokens. */
export const MAX_TOKENS = 24
/** For structured output: between its words a random model writes as much white space as the grammar lets it. */
export const STRUCTURED_TOKENS = 400
export const QUESTION = 'Say something about canals.'
/** A fifth of a megabyte that is more than ASCII, kept out of the prompt: a field that model servers ignore. */
export const LONG_METADATA = 'Grachtengürtel 🚤 '.repeat(10_000)

/** Whether there is any text, since a random model never gives the same answer twice. */
export function hasText(text: string | null | undefined): boolean {
  return typeof text === 'string' && text.length > 0
}

/** How an answer ended. A random model may stop before the limit, so both count as the end of a good answer. */
export function endOf(reason: string | null | undefined): string {
  const isGood = ['length', 'stop', 'max_tokens', 'end_turn'].includes(reason ?? '')
  return isGood ? 'ended' : String(reason)
}

/** Whether tokens were counted; their number is sampled. */
export function isCounted(tokens: number | null | undefined): boolean {
  return typeof tokens === 'number' && tokens > 0
}

export function isStreamed(pieces: number): boolean {
  return pieces > 1
}

/** The cases of each client. */
export function casesOfEach<C>(clients: Readonly<Record<string, C>>, casesOf: (name: string, client: C) => SdkCases): SdkCases {
  return Object.assign({}, ...Object.entries(clients).map(([name, client]) => casesOf(name, client))) as SdkCases
}
