/** Finds the models that a key may call now, and the problems of its allow-list. Pure. */
import { effective, needsPrices } from '#policy/effective.ts'
import { admits, listAdmits, nameList } from '#policy/model-access.ts'
import type { ApiKey } from '#api/apikey.ts'
import { keyPolicy } from '#api/key-policy.ts'
import type { ServedModel } from '#api/served-model.ts'
import { createdMs, type KubeObject, namespaceOf, refKey, refOf } from '#kube/port.ts'
import { namesOf } from '../operator/kinds/served-model/names.ts'
import { selects } from '#api/label-selector.ts'
import type { Problem } from './object-report.ts'

/** A ServedModel, and why no client can call it; undefined = it can be called. */
export interface ModelState {
  readonly model: ServedModel
  readonly problem: Pick<Problem, 'reason' | 'weight'> | undefined
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

/** Maximum number of causes in a line. */
const NAMED = 3
const CORRECT = 'Correct spec.models, or add the ServedModel.'
const OPEN = 'Open the ServedModel with allowedNamespaces, or create the key in its namespace.'

export function accessOf(key: ApiKey, models: Models): KeyAccess {
  const visible = visibleTo(namespaceOf(key), models)
  const policy = effective(keyPolicy(key.spec))
  const allowed = winners(visible).filter(({ model }) => admits(policy, namesOf(model)))
  const working = allowed.filter(({ problem }) => problem === undefined)
  const paid = working.find(({ model }) => model.spec.pricing !== undefined)
  const usable = (needsPrices(policy.budgets) || key.spec.accountRef ? paid : undefined) ?? working[0]
  const complaints = key.spec.models.flatMap((entry) => complaintOf(entry, key, visible, models) ?? [])
  const waiting = usable ? [] : allowed.map(({ model, problem }) => `ServedModel ${nameOf(model)} is not usable (${problem?.reason})`)
  const causes = [...waiting, ...complaints.map(({ text }) => text)]
  const rest = causes.length > NAMED ? `; and ${causes.length - NAMED} more` : ''
  const text = [`${causes.slice(0, NAMED).join('; ')}${rest}.`, ...new Set(complaints.map(({ remedy }) => remedy))].join(' ')
  if (usable) return { model: namesOf(usable.model)[0], problem: complaints.length === 0 ? undefined : { ...NOT_FOUND, text } }
  const weight = allowed.some(({ problem }) => problem?.weight === 'Passing') ? 'Passing' : 'Warning'
  return { model: undefined, problem: { ...NO_MODEL, text, weight } }
}

const NO_MODEL = {
  headline: 'no model that this key may call yet',
  reason: 'NoModel',
  over: 'a model that this key may call can be called now',
}
const NOT_FOUND = {
  headline: 'check spec.models',
  reason: 'ModelNotFound',
  weight: 'Warning',
  over: 'every entry of spec.models has a ServedModel now',
} as const

/** Models of the own namespace, usable ones first, then those of other namespaces by age. */
function visibleTo(namespace: string, { all, labelsOf }: Models): readonly ModelState[] {
  const isOpen = ({ model: { spec } }: ModelState): boolean => {
    const { from, selector } = spec.allowedNamespaces
    return from === 'All' || (from === 'Selector' && selector !== undefined && selects(selector, labelsOf(namespace)))
  }
  const own = all.filter(({ model }) => namespaceOf(model) === namespace)
  const others = all.filter((state) => namespaceOf(state.model) !== namespace && isOpen(state))
  return [
    ...own.toSorted((a, b) => Number(a.problem !== undefined) - Number(b.problem !== undefined)),
    ...others.toSorted((a, b) => createdMs(a.model) - createdMs(b.model)),
  ]
}

/** A served name belongs to the first model with this name. */
function winners(visible: readonly ModelState[]): readonly ModelState[] {
  const taken = new Set<string>()
  return visible.filter(({ model }) => {
    const [name = ''] = namesOf(model)
    return !taken.has(name) && taken.add(name)
  })
}

/** The problem of one entry of `spec.models`; undefined if it names a model. */
function complaintOf(
  entry: string,
  key: ApiKey,
  visible: readonly ModelState[],
  { all }: Models,
): { readonly text: string; readonly remedy: string } | undefined {
  const list = nameList([entry])
  const isNamed = ({ model }: ModelState): boolean => namesOf(model).some((name) => listAdmits(list, name))
  if (visible.some(isNamed)) return undefined
  const elsewhere = all.find(isNamed)
  if (elsewhere === undefined && entry === '*') return { text: 'there is no ServedModel', remedy: 'Add one.' }
  if (elsewhere === undefined) return { text: `it allows ${entry}, and no ServedModel has that name`, remedy: CORRECT }
  const other = entry === '*' ? 'no ServedModel is open' : `ServedModel ${nameOf(elsewhere.model)} is not open`
  return { text: `it allows ${entry}, and ${other} to namespace ${namespaceOf(key)}`, remedy: OPEN }
}

/** `namespace/name`. */
export function nameOf(object: KubeObject): string {
  return refKey(refOf(object))
}
