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

/**
 * A command to paste. It reads the key from its file, so the value is neither printed nor kept in a shell history.
 * @param secretFile path from where `make run` was started
 * @param models all that are served; the first one that the key may use is asked
 */
export function curlLine(baseURL: string, key: ApiKey, secretFile: string, models: Iterable<ServedModel>): string {
  const { namespace = '', name } = key.metadata
  const usable = [...models].filter((model) => admits({ models: [key.spec.models] }, namesOf(model)))
  const own =
    usable.find((model) => model.metadata.namespace === namespace) ?? usable.find((model) => model.spec.allowedNamespaces.from !== 'Same')
  const body = JSON.stringify({ model: own ? namesOf(own)[0] : '<model>', messages: [{ role: 'user', content: 'Good morning!' }] })
  const lines = [
    `curl ${baseURL}/v1/chat/completions`,
    `-H "Authorization: Bearer $(cat ${secretFile})"`,
    "-H 'Content-Type: application/json'",
    `-d '${body}'`,
  ]
  return `ApiKey ${namespace}/${name} is ready:\n\n  ${lines.join(' \\\n    ')}\n\n`
}

function namesOf({ metadata, spec }: ServedModel): string[] {
  return [spec.servedName ?? metadata.name, ...(spec.aliases ?? [])]
}
