/** Decides whose keys may use a model. Only the cluster's administrator can let a namespace publish to other namespaces. Pure. */
import type { ServedModel } from '#api/served-model.ts'
import { namespaceOf } from '#kube/port.ts'

/** The entry of `publishingNamespaces` that means every namespace. */
const ANY_NAMESPACE = '*'

export interface PublishingRules {
  /** Namespaces whose models may be open to others; `*` = any. */
  readonly publishingNamespaces: readonly string[]
  /** Whether the operator has the right to read the labels of namespaces. */
  readonly hasNamespaceLabels: boolean
}

/**
 * Private: the manifest admits only its own namespace. NotAllowed, NoLabels: the manifest admits other namespaces too, but only its own
 * namespace may use the model.
 */
export type Publishing = 'Private' | 'Published' | 'NotAllowed' | 'NoLabels'

export function publishingOf(model: ServedModel, rules: PublishingRules): Publishing {
  const { from } = model.spec.allowedNamespaces
  if (from === 'Same') return 'Private'
  const listed = rules.publishingNamespaces
  if (!listed.includes(ANY_NAMESPACE) && !listed.includes(namespaceOf(model))) return 'NotAllowed'
  return from === 'Selector' && !rules.hasNamespaceLabels ? 'NoLabels' : 'Published'
}

/** Namespaces of a ModelRecord; `*` = all. */
export type Allowed = '*' | readonly string[]

/** @param selected namespaces that the selector admits */
export function allowedNamespaces(model: ServedModel, publishing: Publishing, selected: readonly string[]): '*' | string[] {
  const own = namespaceOf(model)
  if (publishing !== 'Published') return [own]
  return model.spec.allowedNamespaces.from === 'All' ? '*' : [...new Set([own, ...selected])].sort()
}

/** @returns whether `after` lacks a namespace of `before`: such a change is urgent */
export function isNarrower(after: Allowed, before: Allowed): boolean {
  if (after === '*') return false
  if (before === '*') return true
  const kept = new Set(after)
  return before.some((namespace) => !kept.has(namespace))
}
