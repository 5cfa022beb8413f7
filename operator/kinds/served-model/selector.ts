/** Label selectors (metav1.LabelSelector). Pure. */
import type { ServedModelSpec } from '#api/served-model.ts'

export type LabelSelector = NonNullable<ServedModelSpec['allowedNamespaces']['selector']>

/** @returns whether the labels match every term. An empty selector selects all, as everywhere in Kubernetes */
export function selects(selector: LabelSelector, labels: Readonly<Record<string, string>> = {}): boolean {
  const byLabels = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value)
  return byLabels && (selector.matchExpressions ?? []).every((term) => fulfils(term, labels))
}

function fulfils(term: NonNullable<LabelSelector['matchExpressions']>[number], labels: Readonly<Record<string, string>>): boolean {
  const value = labels[term.key]
  switch (term.operator) {
    case 'In':
      return value !== undefined && (term.values ?? []).includes(value)
    case 'NotIn':
      return value === undefined || !(term.values ?? []).includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
  }
}
