/** Checks of request bodies of all dialects. They check only fields on which the gateway decides. */
import { GatewayError } from '../errors.ts'
import type { Dialect, ModelRequest } from './dialect.ts'
import { asObject, type JsonObject } from './json-body.ts'

/** Caps on the tokens of one answer, by the servers that obey them (`docs/contract.md`). llama.cpp obeys `n_predict` above the others. */
const CAPS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'n_predict'] as const
/** Numbers of answers to generate. vLLM obeys `best_of` and llama.cpp `n_cmpl`, whatever `n` says. */
export const MULTIPLIERS = ['n', 'best_of', 'n_cmpl'] as const
const COUNTS = [...MULTIPLIERS, ...CAPS] as const
/** Fields that decide the cost of a call. */
export const COSTS: readonly string[] = ['stream', ...COUNTS]
/** Fields that decide scope, streaming or cost, or that the gateway writes. */
export const DECIDING: ReadonlySet<string> = new Set(['model', 'stream_options', ...COSTS])
const LENGTHS = new Set([...DECIDING].map((name) => name.length))
/**
 * Top-level fields by which known servers choose another model, or more than one: OpenRouter (`models`, `route`, `preset`), LiteLLM (`fallbacks`,
 * `router_settings_override`, `api_base`, `base_url`, `custom_llm_provider`, `model_list`, `deployment_id`, `extra_body`), SGLang (`lora_path`),
 * llama.cpp (`lora`), TGI (`adapter_id`, `adapters`). `docs/contract.md` lists them.
 */
export const MODEL_CHOOSING: ReadonlySet<string> = new Set([
  'models',
  'route',
  'fallbacks',
  'context_window_fallbacks',
  'content_policy_fallbacks',
  'api_base',
  'base_url',
  'custom_llm_provider',
  'model_list',
  'lora_path',
  'lora',
  'adapter_id',
  'adapters',
  'router_settings_override',
  'deployment_id',
  'extra_body',
  'preset',
])
/**
 * Top-level fields by which a caller disturbs other callers of a server, or makes the server connect or compute: vLLM and SGLang (`priority`,
 * `cache_salt`, `request_id`, `rid`, `kv_transfer_params`, `bootstrap_…`, `chat_template`, `custom_logit_processor`), llama.cpp (`id_slot`).
 * `docs/contract.md` lists them.
 */
export const DISTURBING: ReadonlySet<string> = new Set([
  ...['priority', 'cache_salt', 'request_id', 'rid', 'id_slot', 'kv_transfer_params', 'bootstrap_host', 'bootstrap_port', 'bootstrap_room'],
  ...['chat_template', 'custom_logit_processor'],
])
const REFUSED_LENGTHS = new Set([...MODEL_CHOOSING, ...DISTURBING].map((name) => name.length))
/** Maximum depth. Real requests have less than 40 levels; parsers of backends fail from some hundreds on. */
const MAX_DEPTH = 200

/** What a dialect says about the shape of a body. */
export type RequestShape = Pick<Dialect, 'wrongPrompt' | 'caps' | 'hasOutput' | 'prompts'>

/** Reads the deciding fields and checks the shape of a request. @returns row 11 with the first wrong field, or row 42 */
export function requestFields(body: JsonObject, dialect: RequestShape): ModelRequest | GatewayError {
  const { model, stream } = body
  if (model === undefined) return invalid('model', 'is required')
  if (typeof model !== 'string' || model === '') return invalid('model', 'must be a non-empty string')
  const { ambiguous, choosing, deep } = wrongKeys(body)
  const wrong = ambiguous ?? choosing ?? wrongStream(body) ?? wrongCount(body) ?? dialect.wrongPrompt(body) ?? deep
  return wrong ?? { model, stream: stream === true, ...declared(body, dialect) }
}

/** What a request declares about its answer: the most that any known server generates for it. */
export function declared(
  body: JsonObject,
  { caps, hasOutput, prompts }: Pick<Dialect, 'caps' | 'hasOutput' | 'prompts'>,
): Pick<ModelRequest, 'maxOutputTokens' | 'choices' | 'prompts' | 'wantsUsage'> {
  const promptCount = prompts?.(body) ?? 1
  return {
    maxOutputTokens: declaredCap(body, caps),
    choices: hasOutput ? promptCount * multiplier(body) : 0,
    prompts: promptCount,
    wantsUsage: asObject(body.stream_options)?.include_usage === true,
  }
}

function multiplier(body: JsonObject): number {
  return Math.max(1, ...MULTIPLIERS.map((name) => (typeof body[name] === 'number' ? body[name] : 1)))
}

/**
 * The largest cap. A cap of 0 or less means "no cap" to some servers, so it also cancels the others. Servers ignore the caps of other routes, and
 * `n_predict` is a cap to llama.cpp only: none of these is enough alone.
 */
function declaredCap(body: JsonObject, ownCaps: readonly string[]): number | undefined {
  const caps = CAPS.map((name) => body[name]).filter((cap) => typeof cap === 'number')
  const isCapped = caps.every((cap) => cap > 0) && ownCaps.some((name) => typeof body[name] === 'number')
  return isCapped ? Math.max(...caps) : undefined
}

/** Finds what is wrong with the keys of a body, each kind in its rank among all refusals, by one pass: every call takes it. */
function wrongKeys(body: JsonObject) {
  let choosing: GatewayError | undefined
  let deep: GatewayError | undefined
  for (const key of Object.keys(body)) {
    const ambiguous = ambiguity(key)
    if (ambiguous) return { ambiguous, choosing, deep }
    const value = body[key]
    choosing ??= choice(key)
    deep ??= depth(key, value)
  }
  return { ambiguous: undefined, choosing, deep }
}

/**
 * Refuses a key that differs from a deciding one only in case: Go's decoder takes `"Model"` for `model` (and `ſtream` for `stream`), so the
 * backend could read another model than the authorised one. Also refuses a key with U+0000, where parsers with C strings end the key.
 */
function ambiguity(key: string): GatewayError | undefined {
  if (key.includes('\0')) return invalid(key, 'has a NUL character in its name')
  if (!LENGTHS.has(key.length) || DECIDING.has(key)) return undefined
  const name = folded(key)
  return DECIDING.has(name) ? invalid(key, `differs from "${name}" only in case`) : undefined
}

/** Refuses a field that chooses a model or disturbs others, spelled in any case, also with null: a second field of the name may have another value. */
function choice(key: string): GatewayError | undefined {
  if (!REFUSED_LENGTHS.has(key.length)) return undefined
  const name = folded(key)
  if (MODEL_CHOOSING.has(name)) return new GatewayError('modelChoice', { field: key })
  return DISTURBING.has(name) ? invalid(key, 'may disturb other callers of the model server; leave it out') : undefined
}

/** Longer than any name that a model may refuse. */
const TOO_LONG = 65

/** Refuses the fields that the author of a model has listed. @param refused in lower case */
export function refusedField(names: readonly string[], refused: ReadonlySet<string>): GatewayError | undefined {
  const name = names.find((each) => refused.has(folded(each.slice(0, TOO_LONG).split(/[[.]/, 1)[0] ?? '')))
  return name === undefined ? undefined : invalid(name, 'is refused by this model; leave it out')
}

/** Refuses a field of a form such as `model[]`, `models[0]` or `stream.x`: some parsers take it for the field before the sign, or for a part of that. */
export function nestedField(name: string): GatewayError | undefined {
  const [stem = ''] = name.split(/[[.]/)
  if (stem === name) return undefined
  return DECIDING.has(folded(stem)) ? invalid(name, `stands for "${folded(stem)}" in some parsers`) : choice(stem)
}

/** Upper case first, which alone folds ſ to s; lower case folds the Kelvin sign to k. */
export function folded(key: string): string {
  return key.toUpperCase().toLowerCase()
}

function depth(key: string, value: unknown): GatewayError | undefined {
  return isNested(value) && nestsDeeper(value, MAX_DEPTH) ? invalid(key, `is nested deeper than ${MAX_DEPTH} levels`) : undefined
}

function wrongStream({ stream }: JsonObject): GatewayError | undefined {
  return stream === undefined || stream === null || typeof stream === 'boolean' ? undefined : invalid('stream', 'must be true or false')
}

function wrongCount(body: JsonObject): GatewayError | undefined {
  const wrong = COUNTS.find((name) => body[name] !== undefined && body[name] !== null && !Number.isInteger(body[name]))
  return wrong === undefined ? undefined : invalid(wrong, 'must be an integer')
}

export function wrongMessages({ messages }: JsonObject): GatewayError | undefined {
  if (messages === undefined) return invalid('messages', 'is required')
  if (!Array.isArray(messages) || messages.length === 0) return invalid('messages', 'must be a non-empty array')
  return messages.every(asObject) ? undefined : invalid('messages', 'must hold objects')
}

/** Whether a value nests deeper than a number of levels. It reads containers only, so long texts cost nothing. */
function nestsDeeper(value: object, levels: number): boolean {
  if (levels === 0) return true
  if (Array.isArray(value)) return value.some((entry) => isNested(entry) && nestsDeeper(entry, levels - 1))
  for (const key in value) {
    const entry: unknown = value[key as keyof typeof value]
    if (isNested(entry) && nestsDeeper(entry, levels - 1)) return true
  }
  return false
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Row 11. */
export function invalid(field: string, reason: string): GatewayError {
  return new GatewayError('invalidField', { field, reason })
}
