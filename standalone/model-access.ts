/** Finds the models that a key may call now, and the problems of its allow-list. Pure. */
import { effective } from '#policy/effective.ts'
import { admits, listAdmits, nameList } from '#policy/model-access.ts'
import type { ApiKey } from '#api/apikey.ts'
import { keyPolicy } from '#api/key-policy.ts'
import type { ServedModel } from '#api/served-model.ts'
import { createdMs, namespaceOf, refKey, refOf } from '#kube/port.ts'
import { namesOf } from '../operator/kinds/served-model/names.ts'
import { selects } from '../operator/kinds/served-model/selector.ts'
import type { Problem } from './object-report.ts'

/** A ServedModel, and why no client can call it; undefined = it can be called. */
export interface ModelState {
  readonly model: ServedModel
  readonly unusable: string | undefined
  /** The reason usually ends by itself within a second. */
  readonly isPassing: boolean
}

/** All models, and the data that decide their access. */
export interface Models {
  readonly all: readonly ModelState[]
  /** Labels of a namespace. */
  readonly labelsOf: (namespace: string) => Readonly<Record<string, string>>
}

/** The access of a key. */
export interface KeyAccess {
  /** A model name that the key can request now. */
  readonly model: string | undefined
  /** undefined: every entry of the list names a model, and one of them can be called. */
  readonly problem: Problem | undefined
}

const NAMED = 3

/** @param models all models, usable or not */
export function accessOf(key: ApiKey, models: Models): KeyAccess {
  const visible = visibleTo(namespaceOf(key), models)
  const allowed = winners(visible).filter(({ model }) => admits(effective(keyPolicy(key.spec)), namesOf(model)))
  const usable = allowed.find(({ unusable }) => unusable === undefined)
  const complaints = key.spec.models.flatMap((entry) => complaintOf(entry, key, visible, models))
  return {
    model: usable && namesOf(usable.model)[0],
    problem: usable ? (complaints.length === 0 ? undefined : ofList(complaints)) : noModel(allowed, complaints),
  }
}

/** Models of the own namespace, usable ones first, then those of other namespaces by age. */
function visibleTo(namespace: string, { all, labelsOf }: Models): readonly ModelState[] {
  const ofNamespace = all.filter(({ model }) => namespaceOf(model) === namespace)
  const own = ofNamespace.toSorted((a, b) => Number(a.unusable !== undefined) - Number(b.unusable !== undefined))
  const others = all.filter(({ model }) => namespaceOf(model) !== namespace && isOpenTo(model, labelsOf(namespace)))
  return [...own, ...others.toSorted((a, b) => createdMs(a.model) - createdMs(b.model))]
}

/** The models that win their names: a served name belongs to the first model with this name. */
function winners(visible: readonly ModelState[]): readonly ModelState[] {
  const taken = new Set<string>()
  return visible.filter(({ model }) => {
    const [name = ''] = namesOf(model)
    const isTaken = taken.has(name)
    taken.add(name)
    return !isTaken
  })
}

function isOpenTo({ spec }: ServedModel, labels: Readonly<Record<string, string>>): boolean {
  const { from, selector } = spec.allowedNamespaces
  return from === 'All' || (from === 'Selector' && selector !== undefined && selects(selector, labels))
}

/** A problem of one entry of `spec.models`. */
interface Complaint {
  readonly text: string
  readonly remedy: string
}

const CORRECT = 'Correct spec.models, or add the ServedModel.'
const LISTED = 'every entry of spec.models has a ServedModel now'
const OPEN = 'Open the ServedModel with allowedNamespaces, or create the key in its namespace.'

function complaintOf(entry: string, key: ApiKey, visible: readonly ModelState[], { all }: Models): readonly Complaint[] {
  const list = nameList([entry])
  const isNamed = ({ model }: ModelState): boolean => namesOf(model).some((name) => listAdmits(list, name))
  if (visible.some(isNamed)) return []
  const elsewhere = all.find(isNamed)
  const namespace = namespaceOf(key)
  if (elsewhere === undefined && entry === '*') return [{ text: 'there is no ServedModel', remedy: 'Add one.' }]
  if (elsewhere === undefined) return [{ text: `it allows ${entry}, and no ServedModel has that name`, remedy: CORRECT }]
  const other = entry === '*' ? 'no ServedModel is open' : `ServedModel ${refKey(refOf(elsewhere.model))} is not open`
  return [{ text: `it allows ${entry}, and ${other} to namespace ${namespace}`, remedy: OPEN }]
}

function ofList(complaints: readonly Complaint[]): Problem {
  return { headline: 'check spec.models', reason: 'ModelNotFound', text: textOf([], complaints), weight: 'Warning', over: LISTED }
}

/** @param allowed models that the key may call, none of which is usable */
function noModel(allowed: readonly ModelState[], complaints: readonly Complaint[]): Problem {
  const waiting = allowed.map(({ model, unusable }) => `ServedModel ${refKey(refOf(model))} is not usable (${unusable ?? ''})`)
  const identity = [...allowed.map(({ model }) => refKey(refOf(model))), ...complaints.map(({ text }) => text)].join('; ') // a model may change its reason
  return {
    identity,
    headline: 'no model that this key may call yet',
    reason: 'NoModel',
    text: textOf(waiting, complaints),
    weight: allowed.some(({ isPassing }) => isPassing) ? 'Passing' : 'Warning',
    over: 'a model that this key may call can be called now',
  }
}

function textOf(waiting: readonly string[], complaints: readonly Complaint[]): string {
  const remedies = new Set(complaints.map(({ remedy }) => remedy))
  return [`${listed([...waiting, ...complaints.map(({ text }) => text)])}.`, ...remedies].join(' ')
}

function listed(parts: readonly string[]): string {
  const rest = parts.length - NAMED
  return `${parts.slice(0, NAMED).join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`
}
