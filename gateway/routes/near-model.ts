/** Rows 12 and 13: the refusal of a model name, with a hint. The hint suggests only names that the key may call. */
import { GatewayError, HIDDEN_CREDENTIAL, safeText } from '../errors.ts'
import type { KeyRecord } from '#contract/records/key-record.ts'
import { admits } from '#policy/model-access.ts'
import type { ModelEntry, VisibleModel } from '../upstream/model-table.ts'
import type { RouteDeps } from './route.ts'

type SuggestedFrom = Pick<RouteDeps, 'models'>

type FoldedName = readonly [folded: string, model: VisibleModel]
interface NameIndex {
  readonly byFolded: ReadonlyMap<string, readonly FoldedName[]>
  readonly folded: readonly FoldedName[]
}

/** The search for typing errors compares with at most this many names. It takes 30 µs, and a client can cause any number of searches. */
const MAX_COMPARED = 256
const MAX_NAME_CHARACTERS = 128
/** Shorter names are not compared: there, one other character usually means another model. */
const MIN_TYPO_CHARACTERS = 4
const LIST_HINT = 'GET /v1/models lists the models that this key may call'
/** A name with invisible content: a space at an end, two spaces in a row, or a character without a shape. */
const UNREADABLE = /^ | $| {2}|[^\p{L}\p{N}\p{M}\p{P}\p{S} ]/u
const SHAPELESS = /[^\p{L}\p{N}\p{M}\p{P}\p{S} ]/gu

/** One index per array of `visible`, which is another array once a model has changed. */
const indexes = new WeakMap<readonly VisibleModel[], NameIndex>()

/**
 * Finds the model of a name that a key may call. A name of no model is checked against the scope as written: the answer does not reveal
 * whether a model outside it exists.
 * @throws GatewayError (rows 12, 13)
 */
export function allowedModel(name: string, record: KeyRecord, from: SuggestedFrom): ModelEntry {
  const entry = from.models.resolve(record.namespace, name)
  if (!admits(record, entry?.names ?? [name])) throw modelRefusal('modelDenied', name, record, from)
  if (!entry) throw modelRefusal('modelNotFound', name, record, from)
  return entry
}

/**
 * Refuses a model. The hint quotes a name with invisible characters, suggests a similar name, and says how to list all models.
 * @param name as the client sent it
 */
export function modelRefusal(row: 'modelDenied' | 'modelNotFound', name: string, record: KeyRecord, from: SuggestedFrom): GatewayError {
  const cut = name.slice(0, MAX_NAME_CHARACTERS)
  const near = nearModel(cut, record, from)
  const reason = `${quotedName(cut)}${near === undefined ? '' : `did you mean "${near}"? `}${LIST_HINT}`
  return new GatewayError(row, { model: name, reason })
}

/** A name that contains a key is left out: escapes between its characters would hide it from `safeText`. */
function quotedName(name: string): string {
  if (!UNREADABLE.test(name) || safeText(name).includes(HIDDEN_CREDENTIAL)) return ''
  return `the name was sent as "${name.replace(SHAPELESS, escaped)}"; `
}

/** Finds a name with the same letters and digits, or with one typing error. */
function nearModel(name: string, record: KeyRecord, from: SuggestedFrom): string | undefined {
  const visible = from.models.visible(record.namespace)
  const { byFolded, folded } = indexOf(visible)
  const asked = fold(name)
  if (asked === '') return undefined
  const isAllowed = ([, { entry }]: FoldedName): boolean => admits(record, entry.names)
  const same = (byFolded.get(asked) ?? byFolded.get(fold(lastPart(name))) ?? []).find(isAllowed)
  if (same || asked.length < MIN_TYPO_CHARACTERS || folded.length > MAX_COMPARED) return same?.[1].name
  return folded.find((other) => isOneEditAway(asked, other[0]) && isAllowed(other))?.[1].name
}

function indexOf(visible: readonly VisibleModel[]): NameIndex {
  const known = indexes.get(visible)
  if (known) return known
  const folded = visible.flatMap((model) =>
    [...new Set([fold(model.name), fold(lastPart(model.name))])].map((key): FoldedName => [key, model]),
  )
  const made = { byFolded: Map.groupBy(folded, ([key]) => key), folded }
  indexes.set(visible, made)
  return made
}

/** `meta-llama/Llama-3.1-8B` and `llama-3.1-8b` are often the same model. */
function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1)
}

function fold(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
}

/** Whether two names differ by one added, missing or other character, or by two swapped ones. */
export function isOneEditAway(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false
  let same = 0
  while (same < a.length && a[same] === b[same]) same++
  const [restA, restB] = [a.slice(same), b.slice(same)]
  const [nextA, nextB] = [restA.slice(1), restB.slice(1)]
  if (nextA === nextB || nextA === restB || restA === nextB) return true
  return restA[0] === restB[1] && restA[1] === restB[0] && restA.slice(2) === restB.slice(2)
}

function escaped(character: string): string {
  return `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`
}
