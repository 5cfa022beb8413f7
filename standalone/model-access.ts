/** Which models a key may call now, and what is wrong with its allow-list. Pure. */
import { listAdmits, nameList } from '../gateway/shared/name-list.ts'
import { admits } from '../gateway/auth/model-access.ts'
import type { ApiKey } from '../operator/api/apikey.ts'
import type { ServedModel } from '../operator/api/served-model.ts'
import { createdMs, namespaceOf, refKey, refOf } from '../operator/kube/port.ts'
import { namesOf } from '../operator/served-model/names.ts'
import { selects } from '../operator/served-model/selector.ts'
import type { Problem } from './object-report.ts'

/** A ServedModel, and why nobody can call it; undefined = it can be called. */
export interface ModelState {
  readonly model: ServedModel
  readonly unusable: string | undefined
  /** The reason mostly ends within a second by itself. */
  readonly isPassing: boolean
}

/** All models, and what decides who may use them. */
export interface Models {
  readonly all: readonly ModelState[]
  /** Labels of a namespace. */
  readonly labelsOf: (namespace: string) => Readonly<Record<string, string>>
}

/** What a key may do. */
export interface KeyAccess {
  /** A name that the key can ask for now. */
  readonly model: string | undefined
  /** undefined: every entry of the list names a model, and one of them can be called. */
  readonly problem: Problem | undefined
}

const NAMED = 3

/** @param models all that exist, whether they can be called or not */
export function accessOf(key: ApiKey, models: Models): KeyAccess {
  const visible = visibleTo(namespaceOf(key), models)
  const allowed = visible.filter(({ model }) => admits({ models: [key.spec.models] }, namesOf(model)))
  const usable = allowed.find(({ unusable }) => unusable === undefined)
  const complaints = key.spec.models.flatMap((entry) => complaintOf(entry, key, visible, models))
  return {
    model: usable && namesOf(usable.model)[0],
    problem: usable ? (complaints.length === 0 ? undefined : ofList(complaints)) : noModel(allowed, complaints),
  }
}

/** Own models first, then those of others by age: a name belongs to the first that has it. The loser of a name is not usable. */
function visibleTo(namespace: string, { all, labelsOf }: Models): readonly ModelState[] {
  const ofNamespace = all.filter(({ model }) => namespaceOf(model) === namespace)
  const own = ofNamespace.toSorted((a, b) => Number(a.unusable !== undefined) - Number(b.unusable !== undefined))
  const others = all.filter(({ model }) => namespaceOf(model) !== namespace && isOpenTo(model, labelsOf(namespace)))
  const taken = new Set<string>()
  const isFree = ({ model }: ModelState): boolean => {
    const [name = ''] = namesOf(model)
    const isTaken = taken.has(name)
    taken.add(name)
    return !isTaken
  }
  return [...own, ...others.toSorted((a, b) => createdMs(a.model) - createdMs(b.model))].filter(isFree)
}

function isOpenTo({ spec }: ServedModel, labels: Readonly<Record<string, string>>): boolean {
  const { from, selector } = spec.allowedNamespaces
  return from === 'All' || (from === 'Selector' && selector !== undefined && selects(selector, labels))
}

/** @returns what is wrong with one entry of `spec.models` */
function complaintOf(entry: string, key: ApiKey, visible: readonly ModelState[], { all }: Models): readonly string[] {
  const list = nameList([entry])
  const isNamed = ({ model }: ModelState): boolean => namesOf(model).some((name) => listAdmits(list, name))
  if (visible.some(isNamed)) return []
  const elsewhere = all.find(isNamed)
  if (elsewhere === undefined) return [entry === '*' ? 'there is no ServedModel' : `it allows ${entry}, and no ServedModel has that name`]
  const other = refKey(refOf(elsewhere.model))
  return [`it allows ${entry}, and ServedModel ${other} is not open to namespace ${namespaceOf(key)} (allowedNamespaces)`]
}

function ofList(complaints: readonly string[]): Problem {
  return {
    headline: 'check spec.models',
    reason: 'ModelNotFound',
    text: `${listed(complaints)}. ${CORRECT}`,
    weight: 'Warning',
    over: LISTED,
  }
}

const LISTED = 'every entry of spec.models has a ServedModel now'

const CORRECT = 'Correct spec.models, or add the ServedModel.'

/** @param allowed models that the key may call and nobody can */
function noModel(allowed: readonly ModelState[], complaints: readonly string[]): Problem {
  const waiting = allowed.map(({ model, unusable }) => `ServedModel ${refKey(refOf(model))} is not usable (${unusable ?? ''})`)
  const remedy = complaints.length > 0 ? ` ${CORRECT}` : ''
  const identity = [...allowed.map(({ model }) => refKey(refOf(model))), ...complaints].join('; ') // a model may change its reason
  return {
    identity,
    headline: 'no model that this key may call yet',
    reason: 'NoModel',
    text: `${listed([...waiting, ...complaints])}.${remedy}`,
    weight: allowed.some(({ isPassing }) => isPassing) ? 'Passing' : 'Warning',
    over: 'a model that this key may call can be called now',
  }
}

function listed(parts: readonly string[]): string {
  const rest = parts.length - NAMED
  return `${parts.slice(0, NAMED).join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`
}
