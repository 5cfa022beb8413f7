/**
 * A validation rule in two forms: CEL for the API server, and a function for programs without one.
 * `test/contract/manifests.ts` checks that both forms give the same answers.
 */
import type { ManifestError } from './manifest-error.ts'

/** The part of a rule that the CRD and the reference page show. */
export interface RuleText {
  /** Stable id, for the reference page and the tests. */
  readonly id: string
  /** CEL expression over `self`, or over `self` and `oldSelf`: the API server skips the latter on create. */
  readonly cel: string
  /** Field that the error names, below the place of the rule, such as `.ttlSeconds`. Without it the error names the place itself. */
  readonly field?: string
  /** What is wrong, beginning with the field. */
  readonly reason: string
  readonly remedy: string
  /** CEL of the wrong values as text; the message shows it after the reason. Only for texts: the API server takes `string(1)` for unbounded. */
  readonly celValues?: string
}

/** `holds` is checked on every write; `keeps` only on changes, with the previous value. */
export type Rule<Self> = RuleText & {
  /** The wrong values as the message shows them; undefined if they must not be shown. */
  readonly values?: (self: Self) => string | undefined
  /** A remedy for this very value, where there is one; `remedy` is for the API server and for all other values. */
  readonly suggests?: (self: Self) => string | undefined
} & ({ readonly holds: (self: Self) => boolean } | { readonly keeps: (self: Self, old: Self) => boolean })

/** A place of the schema with its rules. */
export interface RulePlace<Document> {
  /** Path in the schema: '' is the root, `[]` the items of a list: `spec.backends[].url`. */
  readonly path: string
  readonly rules: readonly RuleText[]
  /** Checks every value at this place. @param previous the object before the change; undefined for a new object */
  check(document: Document, previous: Document | undefined): ManifestError[]
}

/** The message of the API server: field, reason and remedy on one line. */
export function ruleMessage(rule: RuleText): string {
  return `${rule.reason}: ${rule.remedy}`
}

/** CEL of the message with the wrong values; undefined for a rule that shows none. */
export function ruleMessageExpression({ reason, celValues, remedy }: RuleText): string | undefined {
  const literal = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`
  return celValues === undefined ? undefined : `${literal(`${reason} (`)} + ${celValues} + ${literal(`): ${remedy}`)}`
}

/**
 * Binds rules to a place of the schema. Values before and after a change are paired by path, so list items must not have `keeps` rules:
 * the API server pairs list items by map key.
 * @param select the values at the place: one, or with `[]` in the path one for each item of the list. Absent ones are not checked.
 */
export function rulePlace<Document, Self>(
  path: string,
  select: (document: Document) => readonly (Self | undefined)[] | undefined,
  rules: readonly Rule<Self>[],
): RulePlace<Document> {
  const located = (document: Document) =>
    (select(document) ?? []).flatMap((value, index) => (value === undefined ? [] : [{ field: path.replace('[]', `[${index}]`), value }]))
  return {
    path,
    rules,
    check(document, previous) {
      const before = new Map((previous === undefined ? [] : located(previous)).map((one) => [one.field, one.value]))
      return located(document).flatMap(({ field, value }) =>
        rules
          .filter((rule) => !passes(rule, value, before.get(field)))
          .map((rule) => toError(rule, field, { values: rule.values?.(value), remedy: rule.suggests?.(value) })),
      )
    },
  }
}

function passes<Self>(rule: Rule<Self>, self: Self, old: Self | undefined): boolean {
  if ('holds' in rule) return rule.holds(self)
  return old === undefined || rule.keeps(self, old)
}

/** What a message says of the wrong value. */
interface OfValue {
  readonly values: string | undefined
  readonly remedy: string | undefined
}

function toError(rule: RuleText, place: string, { values, remedy = rule.remedy }: OfValue): ManifestError {
  const reason = values === undefined ? rule.reason : `${rule.reason} (${values})`
  return { field: `${place}${rule.field ?? ''}`.replace(/^\./, ''), reason, remedy }
}
