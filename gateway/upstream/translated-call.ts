/** Which backends of a model need a translated body, and the bodies that they get (decision 41). */
import type { CallRoute, Engine } from '#contract/values/call-routes.ts'
import type { Dialect } from '../dialects/dialect.ts'
import type { TranslationResults } from '../dialects/body-reader.ts'
import type { TranslateOptions, Translation } from '../dialects/translation/translate-body.ts'
import type { Asked } from '../dialects/translation/message-answer.ts'
import { ENGINE_TRAITS, type TokenizerRoute } from '../dialects/translation/engine-traits.ts'
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

/** The count of the tokens of a message. */
const COUNT: CallRoute = 'messages/count_tokens'

export function isCount({ route }: Route): boolean {
  return route === COUNT
}

/** Whether a model serves a route. A model that serves messages also counts their tokens: by its servers, or by an estimate. */
export function servesRoute({ routes, backends }: ModelEntry, { route }: Route): boolean {
  const needed = { route: route === COUNT ? 'messages' : route } as const
  return routes.has(route) || backends.some((backend) => backend.weight > 0 && canServe(backend, needed))
}

/** Whether the gateway answers a count itself, because no server of the model takes one in the client's format. */
export function isOwnCount({ routes }: ModelEntry, dialect: Route): boolean {
  return isCount(dialect) && !routes.has(COUNT)
}

/** Statuses of a server that lacks the route. */
const LACKING: ReadonlySet<number | undefined> = new Set([404, 405, 501])

/** Whether the gateway answers a count itself after all: the server has no such route, or no server has answered in time. */
export function isUncounted({ row, backendStatus }: GatewayError): boolean {
  if (row.id === 'noBackend' || row.id === 'backendTimeout') return true
  return LACKING.has(backendStatus) && row.id !== 'backendModelNotFound'
}

/** The bodies that a model needs beside the original. */
export interface NeededTranslations {
  readonly options: readonly TranslateOptions[]
  /** Whether a backend takes the original. */
  readonly isOptional: boolean
}

/** @returns undefined if the model takes the original alone */
export function neededTranslations(dialect: Route, model: ModelEntry): NeededTranslations | undefined {
  if (isOwnCount(model, dialect)) return countBodies(model)
  const { backends, record } = model
  if (TRANSLATORS[dialect.route] === undefined) return undefined
  const serving = backends.filter((backend) => backend.weight > 0 && canServe(backend, dialect))
  const engines = new Set(serving.filter(({ routes }) => !routes.has(dialect.route)).map(({ engine }) => engine))
  if (engines.size === 0) return undefined
  const { contextTokens } = record
  return {
    options: [...engines].map((engine) => ({ engine, contextTokens })),
    isOptional: serving.some(({ routes }) => routes.has(dialect.route)),
  }
}

/** The bodies for tokenizers. None is necessary: a message that cannot be translated is estimated. */
export function countBodies({ backends }: ModelEntry): NeededTranslations | undefined {
  const engines = new Set(backends.filter(({ weight }) => weight > 0).map(({ engine }) => engine))
  const options = [...engines].filter((engine) => takesChat(ENGINE_TRAITS[engine].tokenizer)).map((engine) => ({ engine, isCount: true }))
  return options.length > 0 ? { options, isOptional: true } : undefined
}

const takesChat = (tokenizer: TokenizerRoute | undefined): boolean => tokenizer !== undefined && tokenizer !== 'CountTokens'

/** @returns the refusal (rows 11 and 15) if no backend can be asked */
export function translationsOf({ options, isOptional }: NeededTranslations, results: TranslationResults): Translations | GatewayError {
  const translations = new Map<Engine, Translation>()
  let refusal: GatewayError | undefined
  options.forEach(({ engine }, index) => {
    const result = results[index]
    if (result instanceof GatewayError) refusal = result
    else if (result) translations.set(engine, result)
  })
  return translations.size === 0 && !isOptional && refusal ? refusal : translations
}

/** @returns undefined if the backend speaks the format of the client */
export function translatedAttempt(job: ForwardJob, backend: BackendEntry): TranslatedAttempt | undefined {
  if (backend.routes.has(job.dialect.route)) return undefined
  const translator = TRANSLATORS[job.dialect.route]
  const translation = job.translations?.get(backend.engine)
  if (translator === undefined || translation === undefined) return undefined
  const inputTokens = job.inputTokens ?? tokensOfBytes(translation.body.bytes.length)
  const { headers, stopSequences } = translation
  return {
    translator,
    headers,
    asked: { model: job.askedName, stopSequences, inputTokens, hidesCached: job.model.isShared },
  }
}
