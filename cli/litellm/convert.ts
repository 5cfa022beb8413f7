/** Converts the keys of a file to manifests, with a report about each key. Pure. */
import { createHash } from 'node:crypto'
import type { z } from 'zod'
import type { apiKeySpec } from '#api/apikey.ts'
import type { KubeObject } from '#kube/port.ts'
import { validateManifest } from '#api/validate.ts'
import { LABEL_VALUE } from '#api/metadata.ts'
import { plain } from '#contract/values/plain-text.ts'
import { rfc3339 } from '#contract/values/rfc3339.ts'
import { limitsOf, type Warn } from './limits.ts'
import { lostOf } from './lost.ts'
import { ALL_PROXY, ALL_TEAM, NONE, validModels } from './models.ts'
import { dnsName, shortened, uniqueNames } from './names.ts'
import { type KeyFile, type LiteLLMKey, type ReadKey, Refusal, type Refused } from './read-keys.ts'
import type { TeamConversion } from './teams.ts'

/** Models of the teams by team id, from the options of the user. */
export type TeamModels = ReadonlyMap<string, readonly string[]>

/** The options of the user. */
export interface ConvertOptions {
  readonly namespace: string
  readonly subtractSpend: boolean
  readonly teamModels: TeamModels
  /** The teams that have an Account. */
  readonly teams: TeamConversion
  /** ms since 1970: expired keys are not written. */
  readonly nowMs: number
}

/** One ApiKey. */
export interface KeyManifest extends KubeObject {
  readonly spec: z.input<typeof apiKeySpec>
}

/** One key with a manifest. */
export interface Written {
  readonly manifest: KeyManifest
  readonly place: string
  readonly warnings: readonly string[]
  readonly notes: readonly string[]
}

/** All keys of a file. */
export interface Conversion {
  readonly written: readonly Written[]
  readonly refused: readonly Refused[]
  /** Unknown fields of all keys. */
  readonly unknown: readonly string[]
  readonly notes: readonly string[]
}

export const NO_KEYS: Conversion = { written: [], refused: [], unknown: [], notes: [] }

/** A key with its hash, before its name is known. */
interface Candidate {
  readonly place: string
  readonly key: LiteLLMKey
  readonly sha256: string
  readonly hint: string | undefined
  readonly warnings: readonly string[]
}

/** Prefix of labels and annotations about the origin of an ApiKey. */
const ORIGIN = 'import.headgate.dev'
const MAX_DISPLAY_NAME = 63
const BY_HAND = 'correct the file, or create the ApiKey by hand'

export function convert({ keys, notes }: KeyFile, options: ConvertOptions): Conversion {
  const hashed = keys.map((read) => (read.ok ? orRefused(read.place, read.key, () => candidateOf(read)) : read))
  const candidates = hashed.filter((one) => 'sha256' in one)
  const unique = candidates.filter(({ sha256 }, index) => candidates.findIndex((other) => other.sha256 === sha256) === index)
  const repeated = candidates.filter((one) => !unique.includes(one)).map(repetition)
  const names = uniqueNames(
    unique.map(({ key, sha256 }) => ({ name: dnsName(key.key_alias ?? '') ?? `key-${shortened(sha256)}`, suffix: shortened(sha256) })),
  )
  const results = unique.map((one, index) => orRefused(one.place, one.key, () => convertOne(one, names[index] ?? '', options)))
  return {
    written: results.filter((one) => 'manifest' in one),
    refused: [...hashed.filter((one) => 'reason' in one), ...repeated, ...results.filter((one) => 'reason' in one)],
    unknown: [...new Set(unique.flatMap(({ key }) => lostOf(key, false).unknown))].toSorted(),
    notes,
  }
}

function orRefused<T>(place: string, { key_alias: alias }: LiteLLMKey, make: () => T): T | Refused {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { place, alias, reason: error.message, remedy: error.remedy }
  }
}

function repetition({ place, key }: Candidate): Refused {
  return { place, alias: key.key_alias, reason: 'an entry before it has the same hash', remedy: 'none needed: one ApiKey serves both' }
}

function candidateOf({ place, key: read }: Extract<ReadKey, { ok: true }>): Candidate {
  const { sha256, hint, isPlain } = hashOf(read)
  const key = withoutValue(read, sha256)
  const held = 'THE FILE HOLDS THE VALUE of this key; its SHA-256 was written instead. Delete the file when the import is done'
  const shown = 'a text of this key was its value and is omitted'
  const weak = isWeak(read, sha256)
    ? ['EASY TO GUESS: readers of the manifest can find this value from its SHA-256; give the key another value soon']
    : []
  return { place, key, sha256, hint, warnings: [...(isPlain ? [held] : []), ...weak, ...(key === read ? [] : [shown])] }
}

/** Values that people choose, beside those made of the names of the key. */
const CHOSEN = [
  '1234',
  '12345',
  '123456',
  '12345678',
  '123456789',
  '1234567890',
  'test',
  'key',
  'admin',
  'master',
  'litellm',
  'dev',
  'prod',
  'demo',
  'secret',
]
/** Shorter values can be tried out one by one, characters. */
const SHORTEST = 20

/** Whether the value is certainly easy to guess: it is short, where the file has it, or one of the values that people choose. */
function isWeak({ token, key_alias: alias, team_id: team, user_id: user }: LiteLLMKey, sha256: string): boolean {
  const value = token.trim()
  if (value.startsWith('sk-') && value.length < SHORTEST) return true
  const names = [alias, team, user].flatMap((name) => (name === undefined ? [] : [name, name.toLowerCase()]))
  return [...CHOSEN, ...names].some((name) => [name, `sk-${name}`].some((guess) => sha256Of(guess) === sha256))
}

/**
 * The SHA-256 that LiteLLM stores, or in a file written by hand the value itself, which is hashed as LiteLLM does. A hint has only the form
 * of `abbreviate_api_key` in LiteLLM: any other text might be a value.
 */
function hashOf({ token, key_name: keyName }: LiteLLMKey) {
  const text = token.trim()
  if (/^[0-9a-f]{64}$/i.test(text)) {
    const hint = keyName !== undefined && /^sk-\.\.\.[!-~]{1,4}$/.test(keyName) ? keyName : undefined
    return { sha256: text.toLowerCase(), hint, isPlain: false }
  }
  if (/^sk-[!-~]+$/.test(text))
    return { sha256: sha256Of(text), hint: text.length < SHORTEST ? undefined : `sk-...${text.slice(-4)}`, isPlain: true }
  const remedy = 'export the keys from LiteLLM again; it stores the SHA-256 of each value'
  throw new Refusal('token is not a SHA-256 of 64 hexadecimal digits', remedy)
}

/** Removes an alias, team or user that equals the value, so that no output shows the value. */
function withoutValue(key: LiteLLMKey, sha256: string): LiteLLMKey {
  const texts = (['key_alias', 'team_id', 'user_id'] as const).filter((field) => sha256Of(key[field] ?? '') === sha256)
  return texts.length === 0 ? key : { ...key, ...Object.fromEntries(texts.map((field) => [field, undefined])) }
}

function sha256Of(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function convertOne({ place, key, sha256, hint, warnings }: Candidate, name: string, options: ConvertOptions): Written {
  const found = [...warnings]
  const warn: Warn = (text) => void found.push(text)
  const displayName = key.key_alias === undefined ? undefined : Array.from(plain(key.key_alias)).slice(0, MAX_DISPLAY_NAME).join('')
  const account = options.teams.accounts.find(({ teamID }) => teamID === key.team_id)?.account.metadata.name
  const models = modelsOf(key, { teams: options.teamModels, hasAccount: account !== undefined }, warn)
  const expirationTime = expirationOf(key, options.nowMs)
  const { state, ...limits } = limitsOf(key, options.subtractSpend, warn)
  const manifest: KeyManifest = {
    apiVersion: 'headgate.dev/v1alpha1',
    kind: 'ApiKey',
    metadata: { name, namespace: options.namespace, labels: labelsOf(key), annotations: annotationsOf(key) },
    spec: {
      displayName,
      state,
      accountRef: account === undefined ? undefined : { name: account },
      models: [...models],
      ...limits,
      expirationTime,
      source: { type: 'Hash', hash: { sha256, hint } },
    },
  }
  const validated = validateManifest(manifest)
  if (!validated.ok)
    throw new Refusal(validated.errors.map(({ field, reason }) => `${field}: ${reason}`).join('; '), 'create the ApiKey by hand')
  const lost = lostOf(key, account !== undefined)
  return { manifest, place, warnings: [...found, ...lost.warnings], notes: lost.notes }
}

/** A label to select the keys of a team: `kubectl get apikeys -l import.headgate.dev/team-id=...` */
function labelsOf({ team_id: team }: LiteLLMKey): Record<string, string> {
  const isLabel = team !== undefined && team.length <= 63 && new RegExp(LABEL_VALUE).test(team)
  return { [`${ORIGIN}/from`]: 'litellm', ...(isLabel && { [`${ORIGIN}/team-id`]: team }) }
}

function annotationsOf({ key_alias: alias, team_id: team, user_id: user }: LiteLLMKey): Record<string, string> {
  const entries = Object.entries({ 'key-alias': alias, 'team-id': team, 'user-id': user })
  return Object.fromEntries(
    entries.flatMap(([name, text]) => (text === undefined ? [] : [[`${ORIGIN}/${name}`, plain(text).slice(0, 1024)]])),
  )
}

/** Times as Python and PostgreSQL write them; one without an offset is UTC. */
const TIME = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d+))?\s*(Z|[+-]\d{2}(?::?\d{2})?)?$/

/** @returns RFC 3339 in whole seconds, rounded down */
function expirationOf({ expires }: LiteLLMKey, nowMs: number): string | undefined {
  if (expires === undefined) return undefined
  const [, day = '', time = '', , zone = 'Z'] = TIME.exec(expires.trim()) ?? []
  const offset = zone === 'Z' ? 'Z' : `${zone.slice(0, 3)}:${zone.slice(3).replace(':', '') || '00'}`
  const ms = Date.parse(`${day}T${time}${offset}`)
  if (Number.isNaN(ms)) throw new Refusal('expires is not a time', BY_HAND)
  const text = rfc3339(ms)
  if (Date.parse(text) <= nowMs) throw new Refusal(`the key expired at ${text}`, 'none needed: it does not work in LiteLLM either')
  return text
}

interface TeamsOfKey {
  readonly teams: TeamModels
  /** Whether the team of the key has an Account, whose Plan admits the models of the team alone. */
  readonly hasAccount: boolean
}

/** The models that LiteLLM admits for this key. There, an empty list means all models. No list may admit more than before. */
function modelsOf({ models: listed, team_id: team }: LiteLLMKey, { teams, hasAccount }: TeamsOfKey, warn: Warn): readonly string[] {
  if (listed.includes(NONE))
    throw new Refusal(`models has ${NONE}, so the key may call nothing`, 'delete the key, or list its models in LiteLLM and export again')
  const isOfTeam = listed.includes(ALL_TEAM) || (listed.length === 0 && team !== undefined)
  if (isOfTeam) return hasAccount ? ['*'] : validModels(modelsOfTeam(team, teams), warn)
  if (listed.length > 0 && !listed.includes(ALL_PROXY)) return validModels(listed, warn)
  const cause = listed.length === 0 ? 'models is empty in LiteLLM' : `models has ${ALL_PROXY}`
  warn(`EVERY MODEL: ${cause}, so the key gets models: ["*"]; list its models if it should not call all of them`)
  return ['*']
}

function modelsOfTeam(team = 'TEAM', teams: TeamModels): readonly string[] {
  const models = teams.get(team)
  if (models !== undefined) return models
  throw new Refusal(
    'the key may call the models of its team, and the file does not list them',
    `add --team-models '${team}=model-a,model-b' ('${team}=*' for every model), or --teams FILE with the answer of GET /team/list`,
  )
}
