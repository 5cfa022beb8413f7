/** Which backends of a model need a translated body, and the bodies that they get. */
import type { Engine } from '#contract/values/call-routes.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { type Translation, translateBody } from '../dialects/translation/translate-body.ts'
import type { Asked } from '../dialects/translation/message-answer.ts'
import { type Translator, TRANSLATORS } from '../dialects/translation/translators.ts'
import { tokensOfBytes } from '../dialects/usage.ts'
import { GatewayError } from '../errors.ts'
import type { ForwardJob } from './forward-job.ts'
import type { BackendEntry, ModelEntry } from './model-table.ts'

/** By the engine of the server. */
export type Translations = ReadonlyMap<Engine, Translation>

/** How the answer of one attempt is translated. */
export interface TranslatedAttempt {
  readonly translator: Translator
  readonly asked: Asked
  /** Headers of the answer: name, value, name, value … */
  readonly headers: readonly string[]
}

export const NO_TRANSLATIONS: Translations = new Map()

type Route = Pick<Dialect, 'route'>

/**
 * Whether a backend can serve a route: itself, or with a translated body.
 * @param translations the bodies of the call; undefined: any body
 */
export function canServe(backend: BackendEntry, { route }: Route, translations?: Translations): boolean {
  if (backend.routes.has(route)) return true
  const to = TRANSLATORS[route]?.to
  return to !== undefined && backend.routes.has(to) && (translations === undefined || translations.has(backend.engine))
}

/** Makes a body for each engine of the model that needs one. @returns the refusal (rows 11 and 15) if no backend is left */
export function translatedBodies(bytes: Buffer, dialect: Dialect, { backends, record }: ModelEntry): Translations | GatewayError {
  if (TRANSLATORS[dialect.route] === undefined) return NO_TRANSLATIONS
  const translations = new Map<Engine, Translation>()
  let refusal: GatewayError | undefined
  let isNative = false
  for (const backend of backends) {
    if (backend.weight === 0 || !canServe(backend, dialect)) continue
    if (backend.routes.has(dialect.route)) isNative = true
    else if (!translations.has(backend.engine)) {
      const made = translateBody(bytes, dialect, { engine: backend.engine, contextTokens: record.contextTokens })
      if (made instanceof GatewayError) refusal = made
      else translations.set(backend.engine, made)
    }
  }
  return refusal !== undefined && !isNative && translations.size === 0 ? refusal : translations
}

/** @returns undefined if the backend speaks the format of the client */
export function translatedAttempt(job: ForwardJob, backend: BackendEntry): TranslatedAttempt | undefined {
  if (backend.routes.has(job.dialect.route)) return undefined
  const translator = TRANSLATORS[job.dialect.route]
  const translation = job.translations?.get(backend.engine)
  if (translator === undefined || translation === undefined) return undefined
  const inputTokens = job.inputTokens ?? tokensOfBytes(translation.body.bytes.length)
  const { headers, stopSequences } = translation
  return { translator, headers, asked: { model: job.askedName, stopSequences, inputTokens } }
}
