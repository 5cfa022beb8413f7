/** A good call of every route of a model, in the format of the route. The stub model serves them all. */
import type { CallRoute } from '#contract/values/call-routes.ts'
import type { WireFormat } from './ask.ts'

/** Routes with streams of events. The sound of `audio/speech` comes in pieces without being asked for as a stream. */
export const STREAMED_ROUTES: ReadonlySet<CallRoute> = new Set<CallRoute>([
  ...(['chat/completions', 'completions', 'responses', 'audio/transcriptions', 'messages'] as const),
])

const TEXT = 'Say something.'
const MESSAGES = [{ role: 'user', content: TEXT }]
const SOUND = new File([Buffer.alloc(2_900, 'sound ')], 'a.wav', { type: 'audio/wav' })

/** The fields of a call beside `model`. An answer with text has at most `cap` tokens. */
export function fieldsOf(route: CallRoute, cap = 100): Readonly<Record<string, unknown>> {
  const fields: Readonly<Record<CallRoute, Readonly<Record<string, unknown>>>> = {
    'chat/completions': { messages: MESSAGES, max_tokens: cap },
    completions: { prompt: TEXT, max_tokens: cap },
    responses: { input: TEXT, max_output_tokens: cap },
    embeddings: { input: [TEXT, 'Another text.'] },
    rerank: { query: 'Which animal?', documents: ['A fox.', 'No animal.', TEXT] },
    'audio/transcriptions': { file: SOUND, max_completion_tokens: cap },
    'audio/speech': { input: TEXT, voice: 'amy' },
    messages: { messages: MESSAGES, max_tokens: cap },
    'messages/count_tokens': { messages: MESSAGES },
  }
  return fields[route]
}

/** The client's format of errors. */
export function formatOf(route: CallRoute): WireFormat {
  return route.startsWith('messages') ? 'anthropic' : 'openai'
}

interface RouteRequest {
  readonly method: 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | FormData
}

/** What `fetch` needs to send these fields to a route. A field that is undefined is left out. */
export function routeRequest(route: CallRoute, fields: Readonly<Record<string, unknown>>, credential?: string): RouteRequest {
  const key: Readonly<Record<string, string>> = credential === undefined ? {} : { authorization: `Bearer ${credential}` }
  if (route === 'audio/transcriptions') return { method: 'POST', headers: key, body: formOf(fields) }
  return { method: 'POST', headers: { ...key, 'content-type': 'application/json' }, body: JSON.stringify(fields) }
}

function formOf(fields: Readonly<Record<string, unknown>>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined) form.append(name, value instanceof File || typeof value === 'string' ? value : JSON.stringify(value))
  return form
}

/** Tokens of an answer by the report of its server; undefined for an answer that has no report. */
export interface ReportedTokens {
  readonly input: number
  readonly output: number
}

/** Reads a plain answer of any route, here and not with the product's own code. */
export function reportedTokens(answer: string): ReportedTokens | undefined {
  if (!answer.startsWith('{')) return undefined // sound
  const { usage } = JSON.parse(answer) as { readonly usage?: Readonly<Record<string, number>> }
  if (usage === undefined) return undefined
  const { prompt_tokens, input_tokens, completion_tokens, output_tokens } = usage
  return { input: prompt_tokens ?? input_tokens ?? Number.NaN, output: completion_tokens ?? output_tokens ?? 0 }
}
