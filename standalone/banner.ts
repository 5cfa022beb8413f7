/** What `make run` tells the person in front of it. Pure. */
import { admits } from '../gateway/auth/model-access.ts'
import type { ApiKey } from '../operator/api/apikey.ts'
import type { ServedModel } from '../operator/api/served-model.ts'

/** The first lines. @param models names that clients may ask for */
export function startBanner(baseURL: string, models: readonly string[], manifests: string): string {
  const known = models.length === 0 ? 'no models yet' : `models: ${models.join(', ')}`
  return `\nHeadgate is running at ${baseURL}/v1 (${known}).\nEdit the manifests in ${manifests}; changes act within a second. Ctrl-C stops it.\n\n`
}

/** Names and aliases of the models, sorted. */
export function modelNames(models: Iterable<ServedModel>): readonly string[] {
  return [...new Set([...models].flatMap(namesOf))].toSorted()
}

/** Whether the key can be used now. */
export function isReady(key: ApiKey | undefined): boolean {
  return key?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
}

/** A key that is ready, and where it can be used. */
export interface ReadyKey {
  readonly baseURL: string
  readonly key: ApiKey
  /** Path from where `make run` was started. */
  readonly secretFile: string
  /** All that are served; the first one that the key may use is asked. */
  readonly models: readonly ServedModel[]
}

/** A command to paste. It reads the key from its file, so the value is neither printed nor kept in a shell history. */
export function curlLine(ready: ReadyKey): string {
  const { namespace = '', name } = ready.key.metadata
  return `ApiKey ${namespace}/${name} is ready:\n\n  curl ${argumentsOf(ready).join(' \\\n    ')}\n\n`
}

/** Loops above this take a person's patience, and the machine's. */
const MOST_IN_A_LOOP = 200

/** What a key may use, and a loop that reaches its requests per minute; nothing for a key without limits. */
export function limitsLine(ready: ReadyKey): string {
  const { limits = {}, budgets = [] } = ready.key.spec
  const { requestsPerMinute, tokensPerMinute, maxConcurrentRequests } = limits
  const told = [
    ...(requestsPerMinute === undefined ? [] : [`${requestsPerMinute} requests a minute`]),
    ...(tokensPerMinute === undefined ? [] : [`${tokensPerMinute} tokens a minute`]),
    ...(maxConcurrentRequests === undefined ? [] : [`${maxConcurrentRequests} requests at a time`]),
    ...budgets.map(
      ({ name, amount, unit, window }) => `budget ${name}: ${amount} ${unit === 'Tokens' ? 'tokens' : 'units of money'} (${window})`,
    ),
  ]
  if (told.length === 0) return ''
  const line = `  Its limits: ${told.join(', ')}.`
  if (requestsPerMinute === undefined || requestsPerMinute > MOST_IN_A_LOOP) return `${line}\n\n`
  const call = `curl -s -o /dev/null -w '%{http_code} ' ${argumentsOf(ready).join(' ')}`
  return `${line} This loop reaches them; the last answer is 429:\n\n  for i in $(seq ${requestsPerMinute + 1}); do ${call}; done; echo\n\n`
}

/** What follows `curl`. */
function argumentsOf({ baseURL, key, secretFile, models }: ReadyKey): string[] {
  const { namespace } = key.metadata
  const usable = models.filter((model) => admits({ models: [key.spec.models] }, namesOf(model)))
  const own =
    usable.find((model) => model.metadata.namespace === namespace) ?? usable.find((model) => model.spec.allowedNamespaces.from !== 'Same')
  const body = JSON.stringify({ model: own ? namesOf(own)[0] : '<model>', messages: [{ role: 'user', content: 'Good morning!' }] })
  return [
    `${baseURL}/v1/chat/completions`,
    `-H "Authorization: Bearer $(cat ${secretFile})"`,
    "-H 'Content-Type: application/json'",
    `-d '${body}'`,
  ]
}

function namesOf({ metadata, spec }: ServedModel): string[] {
  return [spec.servedName ?? metadata.name, ...(spec.aliases ?? [])]
}
