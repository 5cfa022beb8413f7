/** Converts the keys of a file to manifests, with a report about each key. Pure. */
import { validateManifest } from '#api/validate.ts'
import { type KeyManifest, limitParts, manifestOf, unusableNumber } from './api-key.ts'
import { timeOf } from './expiry.ts'
import type { LiteLLMKey } from './litellm-key.ts'
import { lostOf } from './lost.ts'
import { modelsOf, type TeamModels } from './models.ts'
import { namesOf } from './names.ts'
import type { KeyFile, ReadKey } from './read-keys.ts'
import { isValue, type ValueHash, valueHash } from './value-hash.ts'

/** The options of the user. */
export interface ConvertOptions {
  readonly namespace: string
  readonly subtractSpend: boolean
  readonly teamModels: TeamModels
  /** ms since 1970: expired keys are not written. */
  readonly nowMs: number
}

/** One key with a manifest. */
export interface Written {
  readonly manifest: KeyManifest
  readonly place: string
  readonly warnings: readonly string[]
  readonly notes: readonly string[]
}

/** One key without a manifest. */
export interface Refused {
  readonly place: string
  readonly alias: string | undefined
  readonly reason: string
  readonly remedy: string
}

/** All keys of a file. */
export interface Conversion {
  readonly written: readonly Written[]
  readonly refused: readonly Refused[]
  /** Unknown fields of all keys. */
  readonly unknown: readonly string[]
  readonly notes: readonly string[]
}

type Hashed = Extract<ValueHash, { ok: true }>

/** A key with its hash, before its name is known. */
interface Candidate {
  readonly place: string
  readonly key: LiteLLMKey
  readonly hash: Hashed
  readonly warnings: readonly string[]
}

export function convert({ keys, notes }: KeyFile, options: ConvertOptions): Conversion {
  const hashed = keys.map(candidateOf)
  const candidates = hashed.filter((one) => 'hash' in one)
  const unique = candidates.filter(({ hash }, index) => candidates.findIndex((other) => other.hash.sha256 === hash.sha256) === index)
  const repeated = candidates.filter((one) => !unique.includes(one)).map(repetition)
  const names = namesOf(unique.map(({ key, hash }) => ({ alias: key.key_alias, sha256: hash.sha256 })))
  const results = unique.map((candidate, index) => convertOne(candidate, names[index] ?? '', options))
  return {
    written: results.filter((one) => 'manifest' in one),
    refused: [...hashed.filter((one) => 'reason' in one), ...repeated, ...results.filter((one) => 'reason' in one)],
    unknown: [...new Set(unique.flatMap(({ key }) => lostOf(key).unknown))].toSorted(),
    notes,
  }
}

function candidateOf(read: ReadKey): Candidate | Refused {
  if (!read.ok) return read
  const { place } = read
  const hash = valueHash(read.key.token, read.key.key_name)
  if (!hash.ok) return { place, alias: read.key.key_alias, reason: hash.reason, remedy: hash.remedy }
  const key = withoutValue(read.key, hash.sha256)
  const plain = 'THE FILE HOLDS THE VALUE of this key; its SHA-256 was written instead. Delete the file when the import is done'
  const shown = 'a text of this key was its value and is omitted'
  return { place, key, hash, warnings: [...(hash.wasPlain ? [plain] : []), ...(key === read.key ? [] : [shown])] }
}

/** Removes an alias, team or user that equals the value, so that no output shows the value. */
function withoutValue(key: LiteLLMKey, sha256: string): LiteLLMKey {
  const texts = (['key_alias', 'team_id', 'user_id'] as const).filter((field) => isValue(key[field] ?? '', sha256))
  return texts.length === 0 ? key : { ...key, ...Object.fromEntries(texts.map((field) => [field, undefined])) }
}

function repetition({ place, key }: Candidate): Refused {
  return { place, alias: key.key_alias, reason: 'an entry before it has the same hash', remedy: 'none needed: one ApiKey serves both' }
}

function convertOne({ place, key, hash, warnings }: Candidate, name: string, options: ConvertOptions): Written | Refused {
  const refuse = (reason: string, remedy: string): Refused => ({ place, alias: key.key_alias, reason, remedy })
  const models = modelsOf(key.models, key.team_id, options.teamModels)
  if (!models.ok) return refuse(models.reason, models.remedy)
  const expirationTime = key.expires === undefined ? undefined : timeOf(key.expires)
  if (key.expires !== undefined && expirationTime === undefined)
    return refuse('expires is not a time', 'correct the file, or create the ApiKey by hand')
  if (expirationTime !== undefined && Date.parse(expirationTime) <= options.nowMs)
    return refuse(`the key expired at ${expirationTime}`, 'none needed: it does not work in LiteLLM either')
  const unusable = unusableNumber(key)
  if (unusable !== undefined)
    return refuse(`${unusable} is not a number that a limit can have`, 'correct the file, or create the ApiKey by hand')
  const limits = limitParts(key, options)
  const parts = { name, namespace: options.namespace, key, ...hash, models: models.models, limits: limits.fields, expirationTime }
  const manifest = manifestOf(parts)
  const validated = validateManifest(manifest)
  if (!validated.ok)
    return refuse(validated.errors.map(({ field, reason }) => `${field}: ${reason}`).join('; '), 'create the ApiKey by hand')
  const lost = lostOf(key)
  return { manifest, place, warnings: [...warnings, ...models.warnings, ...limits.warnings, ...lost.warnings], notes: lost.notes }
}
