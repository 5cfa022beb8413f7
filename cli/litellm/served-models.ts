/** Converts the models of LiteLLM to ServedModels: one for each `model_name`, with a backend for each of its entries. Pure. */
import type { z } from 'zod'
import type { servedModelSpec } from '#api/served-model.ts'
import { validateManifest } from '#api/validate.ts'
import { MODEL_NAME } from '#contract/values/name-patterns.ts'
import type { KubeObject } from '#kube/port.ts'
import { type CredentialNeed, credentialOf } from './backend-credential.ts'
import { addressOf } from './backend-url.ts'
import { amountOf, countOf, type Warn } from './limits.ts'
import { dnsName, suffixOf, uniqueNames } from './names.ts'
import { type Provider, providerOf, PROVIDERS } from './providers.ts'
import { type Deployment, type ModelFile, READ_PARAMS } from './read-config.ts'
import { Refusal, type Refused } from './read-keys.ts'

export interface ModelManifest extends KubeObject {
  readonly spec: z.input<typeof servedModelSpec>
}
type Backend = ModelManifest['spec']['backends'][number]

/** One ServedModel. */
export interface WrittenModel {
  readonly manifest: ModelManifest
  readonly warnings: readonly string[]
  readonly notes: readonly string[]
}

export interface ModelConversion {
  readonly written: readonly WrittenModel[]
  /** Entries of `model_list` without a backend, and models without a ServedModel. */
  readonly refused: readonly Refused[]
  /** The Secrets that the ServedModels name. */
  readonly credentials: readonly CredentialNeed[]
  /** Models by the access group that has them. */
  readonly groups: ReadonlyMap<string, readonly string[]>
  readonly notes: readonly string[]
}

export const NO_MODELS: ModelConversion = { written: [], refused: [], credentials: [], groups: new Map(), notes: [] }

const BY_HAND = 'create the ServedModel by hand (docs/model-servers.md)'
const MAX_BACKENDS = 16
const MAX_ALIASES = 16
const MAX_WEIGHT = 1000

/** A `model_name` and its entries. */
interface Group {
  readonly servedName: string
  readonly name: string
  readonly entries: readonly Entry[]
}
interface Entry {
  readonly place: string
  readonly deployment: Deployment
}

/** @param namespace of the keys, and of the ServedModels */
export function convertModels(file: ModelFile, namespace: string): ModelConversion {
  const refused: Refused[] = []
  const written: WrittenModel[] = []
  const credentials: CredentialNeed[] = []
  for (const group of groupsOf(file, refused)) {
    try {
      const model = modelOf(group, { file, namespace }, refused)
      if (model === undefined) continue
      written.push(model.written)
      credentials.push(...model.credentials)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refused.push({ place: 'model', alias: group.servedName, reason: error.message, remedy: error.remedy })
    }
  }
  return { written, refused, credentials, groups: accessGroups(file), notes: file.notes }
}

function groupsOf({ deployments }: ModelFile, refused: Refused[]): readonly Group[] {
  const entries = deployments.flatMap((read, index): readonly Entry[] => {
    const place = `model_list entry ${index + 1}`
    if (read.ok) return [{ place, deployment: read.deployment }]
    refused.push({ place, alias: read.name, reason: read.reason, remedy: `correct the file, or ${BY_HAND}` })
    return []
  })
  const groups = [...Map.groupBy(entries, ({ deployment }) => deployment.model_name)]
  const names = uniqueNames(groups.map(([name]) => ({ name: dnsName(name) ?? `model-${suffixOf(name)}`, suffix: suffixOf(name) })))
  return groups.map(([servedName, found], index) => ({ servedName, name: names[index] ?? '', entries: found }))
}

function accessGroups({ deployments }: ModelFile): ReadonlyMap<string, readonly string[]> {
  const pairs = deployments.flatMap((read) =>
    read.ok ? (read.deployment.model_info.access_groups ?? []).map((group) => ({ group, model: read.deployment.model_name })) : [],
  )
  return new Map(
    [...Map.groupBy(pairs, ({ group }) => group)].map(([group, found]) => [group, [...new Set(found.map(({ model }) => model))]]),
  )
}

interface Surroundings {
  readonly file: ModelFile
  readonly namespace: string
}

function modelOf({ servedName, name, entries }: Group, { file, namespace }: Surroundings, refused: Refused[]) {
  if (!new RegExp(MODEL_NAME).test(servedName))
    throw new Refusal('model_name is a pattern or has other characters than a name of a model', `${BY_HAND}, one for each model`)
  const warnings = new Set<string>()
  const warn: Warn = (text) => void warnings.add(text)
  const backends: Backend[] = []
  const credentials: CredentialNeed[] = []
  for (const { place, deployment } of entries) {
    try {
      const number = backends.length + 1
      const { backend, credential } = backendOf(deployment, { model: name, number, namespace }, warn)
      backends.push(backend)
      if (credential !== undefined) credentials.push(credential)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refused.push({ place, alias: servedName, reason: error.message, remedy: error.remedy })
    }
  }
  if (backends.length === 0) return undefined // each entry is refused with its reason
  if (backends.length > MAX_BACKENDS)
    throw new Refusal(`it has ${backends.length} entries, and a ServedModel at most ${MAX_BACKENDS}`, BY_HAND)
  const deployments = entries.map(({ deployment }) => deployment)
  const manifest: ModelManifest = {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'ServedModel',
    metadata: { name, namespace, labels: { 'import.headgate.dev/from': 'litellm' } },
    spec: {
      servedName,
      aliases: aliasesOf(file.aliases.get(servedName), warn),
      backends,
      pricing: pricingOf(deployments, warn),
      maxOutputTokens: longestAnswer(deployments),
    },
  }
  const validated = validateManifest(manifest)
  if (!validated.ok) throw new Refusal(validated.errors.map(({ field, reason }) => `${field}: ${reason}`).join('; '), BY_HAND)
  return { written: { manifest, warnings: [...warnings], notes: notesOf(manifest, deployments) }, credentials }
}

function aliasesOf(aliases: readonly string[] | undefined, warn: Warn): string[] | undefined {
  const valid = aliases?.filter((alias) => new RegExp(MODEL_NAME).test(alias)).slice(0, MAX_ALIASES)
  for (const alias of aliases ?? []) if (valid?.includes(alias) !== true) warn(`the alias ${JSON.stringify(alias.slice(0, 64))} is omitted`)
  return valid === undefined || valid.length === 0 ? undefined : [...new Set(valid)]
}

interface Place {
  /** Name of the ServedModel. */
  readonly model: string
  /** From 1. */
  readonly number: number
  readonly namespace: string
}

function backendOf({ model_name: servedName, litellm_params: params, model_info: info }: Deployment, place: Place, warn: Warn) {
  const { provider: word, name } = providerOf(params.model, params.custom_llm_provider)
  const provider = providerNamed(word)
  const address = addressOf(params.api_base, provider, place.namespace, warn)
  const credential = credentialOf(params, { provider, address, name: `${place.model}-${place.number}` }, warn)
  if (provider.warning !== undefined) warn(provider.warning)
  if (info.team_id !== undefined) warn('model_info.team_id: the model belonged to one team; restrict it by the models of keys and Plans')
  const { header, headers, messages } = provider
  const backend: Backend = {
    name: `backend-${place.number}`,
    ...address,
    upstreamModel: name === servedName ? undefined : name,
    weight: weightOf(params.weight),
    engine: provider.engine === 'Other' ? undefined : provider.engine,
    routes: routesOf(info.mode, provider),
    messages,
    authSecretRef: credential && { name: credential.secret, header },
    headers: headers && [...headers],
  }
  return { backend, credential }
}

function providerNamed(word: string | undefined): Provider {
  if (word === undefined) throw new Refusal('litellm_params.model names no provider', BY_HAND)
  const provider = PROVIDERS.get(word)
  if (provider !== undefined) return provider
  throw new Refusal(
    `the import does not know the provider ${JSON.stringify(word.slice(0, 64))}`,
    `if its server speaks chat completions or the Messages API, ${BY_HAND}; Headgate translates for no other`,
  )
}

function weightOf(weight: string | undefined): number | undefined {
  const count = countOf(weight ?? '')
  return count === undefined ? undefined : Math.min(count, MAX_WEIGHT)
}

/** Routes by `model_info.mode`. Other modes, such as images, have none. */
const ROUTES: Readonly<Record<string, NonNullable<Backend['routes']>>> = {
  completion: ['completions'],
  responses: ['responses'],
  embedding: ['embeddings'],
  rerank: ['rerank'],
  audio_transcription: ['audio/transcriptions'],
  audio_speech: ['audio/speech'],
}

function routesOf(mode = 'chat', { routes }: Provider): NonNullable<Backend['routes']> | undefined {
  if (mode === 'chat') return routes && [...routes]
  const found = ROUTES[mode]
  if (found === undefined) throw new Refusal(`the gateway has no route for model_info.mode ${JSON.stringify(mode.slice(0, 32))}`, 'none')
  return found
}

/** Tokens of an answer that every server of the model can give. */
function longestAnswer(deployments: readonly Deployment[]): number | undefined {
  const known = deployments.map(({ model_info: info }) => countOf(info.max_output_tokens ?? '') ?? 0)
  const least = Math.min(...known.filter((count) => count > 0))
  return Number.isFinite(least) ? least : undefined
}

/** The prices of the first entry that has some. */
function pricingOf(deployments: readonly Deployment[], warn: Warn): ModelManifest['spec']['pricing'] {
  const all = deployments.flatMap(({ litellm_params: params, model_info: info }) => {
    const input = perMillion(params.input_cost_per_token ?? info.input_cost_per_token, warn)
    const output =
      perMillion(params.output_cost_per_token ?? info.output_cost_per_token, warn) ?? (info.mode === 'embedding' ? '0' : undefined)
    if (input === undefined || output === undefined) return []
    return [
      {
        inputPerMillion: input,
        outputPerMillion: output,
        cachedInputPerMillion: perMillion(params.cache_read_input_token_cost ?? info.cache_read_input_token_cost, warn),
        cacheWritePerMillion: perMillion(params.cache_creation_input_token_cost ?? info.cache_creation_input_token_cost, warn),
      },
    ]
  })
  if (new Set(all.map((prices) => JSON.stringify(prices))).size > 1)
    warn('the entries have different prices, and a ServedModel has one: those of the first entry were written')
  return all[0]
}

/** @param perToken a number as JSON or Python write it, such as `1.5e-07` */
function perMillion(perToken: string | undefined, warn: Warn): string | undefined {
  if (perToken === undefined) return undefined
  const [, digits = '', exponent = '0'] = /^([^eE]*)(?:[eE]([+-]?\d{1,3}))?$/.exec(perToken) ?? []
  const amount = amountOf(`${digits}e${Number(exponent) + 6}`)
  if (amount === undefined) warn('a price is not a number and was not imported')
  else if (amount.change !== undefined) warn(`a price cannot be written exactly and was ${amount.change}`)
  return amount?.text
}

function notesOf({ spec }: ModelManifest, deployments: readonly Deployment[]): readonly string[] {
  const lost = new Set(deployments.flatMap(({ litellm_params: params }) => Object.keys(params).filter((name) => !READ_PARAMS.has(name))))
  const isUnknown = spec.backends.some(({ engine, routes }) => engine === undefined && routes === undefined)
  return [
    ...(isUnknown ? ['the program of a server is not known, so chat completions are its only route; engine or routes add others'] : []),
    ...(lost.size === 0 ? [] : [`not imported from litellm_params: ${[...lost].toSorted().join(', ')}`]),
  ]
}
