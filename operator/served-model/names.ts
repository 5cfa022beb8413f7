/** Who has a model name. Served names and aliases are one name space; the oldest object wins, and only the losing name is refused. Pure. */
import type { ServedModel } from '../api/served-model.ts'

/** A name that this model does not get, and the object that has it. */
export interface LostName {
  readonly name: string
  /** `namespace/name` of the winner. */
  readonly winner: string
}

/** The name that clients use. */
export function servedName(model: ServedModel): string {
  return model.spec.servedName ?? model.metadata.name
}

/** Every name under which a model wants to be called. */
export function namesOf(model: ServedModel): readonly string[] {
  return [...new Set([servedName(model), ...(model.spec.aliases ?? [])])]
}

/** @returns whether `a` wins a name that both want: the older one, on a tie the smaller uid */
export function isOlder(a: ServedModel, b: ServedModel): boolean {
  const left = Date.parse(a.metadata.creationTimestamp ?? '')
  const right = Date.parse(b.metadata.creationTimestamp ?? '')
  return left === right ? (a.metadata.uid ?? '') < (b.metadata.uid ?? '') : left < right
}

/**
 * Names that `model` loses: to an older object of its own namespace, or, where both are open to other namespaces, to an older object
 * elsewhere. (A key asks its own namespace first, so a model of another namespace takes nothing from its neighbours at home.)
 * @param others all ServedModels
 */
export function lostNames(model: ServedModel, others: Iterable<ServedModel>): readonly LostName[] {
  const wanted = new Set(namesOf(model))
  const lost = new Map<string, LostName>()
  for (const other of others) {
    if (other.metadata.uid === model.metadata.uid || !isOlder(other, model) || !meet(model, other)) continue
    for (const name of namesOf(other)) {
      if (wanted.has(name)) lost.set(name, { name, winner: `${other.metadata.namespace}/${other.metadata.name}` })
    }
  }
  return [...lost.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function meet(a: ServedModel, b: ServedModel): boolean {
  if (a.metadata.namespace === b.metadata.namespace) return true
  return a.spec.allowedNamespaces.from !== 'Same' && b.spec.allowedNamespaces.from !== 'Same'
}
