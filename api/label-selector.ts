/** A selector of namespaces by their labels, as in Kubernetes. Shared by every kind that admits namespaces. */
import { z } from 'zod'
import { boundedMap, matching } from './bounded.ts'
import { LABEL_KEY, LABEL_VALUE, labelKeys } from './metadata.ts'
import { type Rule, type RulePlace, rulePlace } from './rule.ts'

const labelValue = matching(LABEL_VALUE, 63)

export const labelSelector = z.strictObject({
  matchLabels: boundedMap(labelValue).describe('Labels that the namespace must have, at most 16.').optional(),
  matchExpressions: z
    .array(
      z.strictObject({
        key: matching(LABEL_KEY, 317).min(1).describe('Label key.'),
        operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared.'),
        values: z.array(labelValue).max(64).describe('For In and NotIn, at least one; not with the others.').optional(),
      }),
    )
    .max(16)
    .describe('Terms that must all hold.')
    .optional(),
})

/** A selector of a manifest. */
export type LabelSelector = z.output<typeof labelSelector>
type Expression = NonNullable<LabelSelector['matchExpressions']>[number]

const selectorRules: readonly Rule<LabelSelector>[] = [
  {
    id: 'selector-not-empty',
    cel: '(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)',
    reason: 'selector is empty and would match every namespace',
    remedy: 'add matchLabels or matchExpressions',
    holds: (self) => Object.keys(self.matchLabels ?? {}).length + (self.matchExpressions ?? []).length > 0,
  },
]

const expressionRules: readonly Rule<Expression>[] = [
  {
    id: 'values-with-in',
    cel: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
    field: '.values',
    reason: 'values is missing with In or NotIn, or set with Exists or DoesNotExist',
    remedy: 'set at least one value with In and NotIn, and none with the other operators',
    holds: (self) => ['In', 'NotIn'].includes(self.operator) === (self.values ?? []).length > 0,
  },
]

/** The rules of a selector at a place of a schema. */
export function selectorPlaces<Document>(
  path: string,
  select: (document: Document) => LabelSelector | undefined,
): readonly RulePlace<Document>[] {
  return [
    rulePlace(path, (document) => [select(document)], selectorRules),
    rulePlace(`${path}.matchLabels`, (document) => [select(document)?.matchLabels], [labelKeys]),
    rulePlace(`${path}.matchExpressions[]`, (document) => select(document)?.matchExpressions, expressionRules),
  ]
}

/** @returns whether the labels match every term. An empty selector selects all, as everywhere in Kubernetes */
export function selects(selector: LabelSelector, labels: Readonly<Record<string, string>> = {}): boolean {
  const byLabels = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value)
  return byLabels && (selector.matchExpressions ?? []).every((term) => fulfils(term, labels))
}

function fulfils(term: Expression, labels: Readonly<Record<string, string>>): boolean {
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
