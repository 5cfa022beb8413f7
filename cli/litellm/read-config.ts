/** Reads the models of LiteLLM: its `config.yaml`, or the answer of `GET /model/info`. Numbers are text, as in the file. */
import { parseDocument } from 'yaml'
import { z } from 'zod'
import { UnreadableFile } from './read-keys.ts'

/** Texts of YAML that mean no value. */
const NOTHING: ReadonlySet<unknown> = new Set(['', 'null', '~', undefined, null])

const text = z.preprocess((value) => (NOTHING.has(value) ? undefined : value), z.string().trim().optional())
const orEmpty = (value: unknown): unknown => (NOTHING.has(value) ? {} : value)

/** Prices of one token. */
const prices = {
  input_cost_per_token: text,
  output_cost_per_token: text,
  cache_read_input_token_cost: text,
  cache_creation_input_token_cost: text,
}

const params = {
  ...prices,
  model: z.string().min(1),
  custom_llm_provider: text,
  api_base: text,
  api_key: text,
  weight: text,
}
const info = { ...prices, mode: text, max_output_tokens: text, access_groups: z.array(z.string()).optional(), team_id: text }

/** One entry of `model_list` (`Deployment` in litellm/types/router.py). */
const entry = z.object({
  model_name: z.string().min(1),
  litellm_params: z.looseObject(params),
  model_info: z.preprocess(orEmpty, z.looseObject(info)),
})
export type Deployment = z.infer<typeof entry>

/** Parameters that the import reads. */
export const READ_PARAMS: ReadonlySet<string> = new Set(Object.keys(params))

/** One entry; of an entry in another form the names of the wrong fields. */
export type ReadDeployment = { readonly name: string | undefined } & (
  { readonly ok: true; readonly deployment: Deployment } | { readonly ok: false; readonly reason: string }
)

/** The models of a file. */
export interface ModelFile {
  readonly deployments: readonly ReadDeployment[]
  /** Other names by the name of their model. */
  readonly aliases: ReadonlyMap<string, readonly string[]>
  /** Parts of the file that decide about calls and have no counterpart. */
  readonly notes: readonly string[]
}

const section = z.preprocess(orEmpty, z.looseObject({}))
const credentials = z.preprocess(
  (value) => (NOTHING.has(value) ? [] : value),
  z.array(z.object({ credential_name: z.string(), credential_values: section })),
)
const file = z.looseObject({
  model_list: z.array(z.unknown()).optional(),
  data: z.array(z.unknown()).optional(),
  credential_list: credentials,
  router_settings: section,
  litellm_settings: section,
})

const REMEDY = "name LiteLLM's config.yaml, or the answer of GET /model/info"

/** @throws UnreadableFile */
export function readConfig(content: string): ModelFile {
  const parsed = file.safeParse(parsedYaml(content))
  if (!parsed.success) {
    const fields = new Set(parsed.error.issues.map(({ path }) => path.join('.') || 'the file'))
    throw new UnreadableFile(`--config: ${[...fields].slice(0, 8).join(', ')}: not of the form that LiteLLM reads; ${REMEDY}`)
  }
  const { model_list: list, data, credential_list: named, router_settings: router, litellm_settings: settings } = parsed.data
  const entries = list ?? data ?? []
  if (entries.length === 0) throw new UnreadableFile(`--config has no model_list; ${REMEDY}`)
  const values = new Map(named.map(({ credential_name: name, credential_values: held }) => [name, held]))
  return {
    deployments: entries.map((one) => readEntry(one, values)),
    aliases: aliasesIn(router['model_group_alias']),
    notes: notesOf(parsed.data, { ...settings, ...router }),
  }
}

/** Maximum number of aliases in a file: enough for some in each model, and too few for a file that grows without bound when it is read. */
const MAX_ALIASES = 10_000

/**
 * The failsafe schema keeps numbers as text. LiteLLM's reader knows merge keys.
 * @throws UnreadableFile, without the text of the file, which may be a credential
 */
function parsedYaml(content: string): unknown {
  const document = parseDocument(content, { schema: 'failsafe', merge: true })
  const [error] = document.errors
  if (error !== undefined) throw new UnreadableFile(`--config is not YAML (line ${error.linePos?.[0].line ?? '?'}); ${REMEDY}`)
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch {
    throw new UnreadableFile(`--config is not YAML that can be used: it has an alias without its anchor, or too many aliases; ${REMEDY}`)
  }
}

type Named = ReadonlyMap<string, Readonly<Record<string, unknown>>>

function readEntry(one: unknown, values: Named): ReadDeployment {
  const loose = z.looseObject({ model_name: text, litellm_params: section }).safeParse(one)
  if (!loose.success) return { ok: false, name: undefined, reason: 'not of the form that LiteLLM reads' }
  const { model_name: name, litellm_params: own } = loose.data
  const { litellm_credential_name: held, ...rest } = own
  const shared = typeof held === 'string' ? values.get(held) : {}
  if (shared === undefined) return { ok: false, name, reason: 'its litellm_credential_name is not in credential_list' }
  const parsed = entry.safeParse({ ...loose.data, litellm_params: { ...shared, ...rest } })
  if (parsed.success) return { ok: true, name, deployment: parsed.data }
  const fields = new Set(parsed.error.issues.map(({ path }) => path.join('.')))
  return { ok: false, name, reason: `${[...fields].join(', ')}: not of the form that LiteLLM reads` }
}

/** `model_group_alias` maps other names to models, or to objects that name a model. */
function aliasesIn(aliases: unknown): ReadonlyMap<string, readonly string[]> {
  const parsed = z.record(z.string(), z.union([z.string(), z.looseObject({ model: z.string() })])).safeParse(aliases)
  const pairs = Object.entries(parsed.data ?? {}).map(([alias, to]) => ({ alias, model: typeof to === 'string' ? to : to.model }))
  const byModel = Map.groupBy(pairs, ({ model }) => model)
  return new Map([...byModel].map(([model, found]) => [model, found.map(({ alias }) => alias)]))
}

/** Sections whose content this import reads, or whose absence changes no call. */
const KNOWN: ReadonlySet<string> = new Set(['model_list', 'data', 'credential_list', 'router_settings', 'litellm_settings'])
const FALLBACKS = ['fallbacks', 'default_fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks']

function notesOf(found: Readonly<Record<string, unknown>>, settings: Readonly<Record<string, unknown>>): readonly string[] {
  const fallbacks = FALLBACKS.filter((name) => !NOTHING.has(settings[name]))
  const others = Object.keys(found).filter((name) => !KNOWN.has(name))
  const unread = Object.keys(settings).filter((name) => !FALLBACKS.includes(name) && name !== 'model_group_alias')
  return [
    ...('data' in found ? ['! The answer of LiteLLM has no credentials: add authSecretRef where a server needs one'] : []),
    ...(fallbacks.length === 0 ? [] : [`! ${fallbacks.join(', ')}: fallback to another model does not exist; clients get the error`]),
    ...('include' in found ? ['! include: models of other files are not read; import each file'] : []),
    ...(others.length + unread.length === 0 ? [] : [`- not imported from the config: ${[...others, ...unread].join(', ')}`]),
  ]
}
