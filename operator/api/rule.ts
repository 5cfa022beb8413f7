/**
 * A rule that looks at more than one field, in both its forms: CEL for the API server, a function for where there is none.
 * `test/contract/manifests.ts` holds the two together.
 */

/** What is wrong with a manifest: where, why, and what to do about it. Safe to show: it repeats no more than the manifest's own text. */
export interface Fault {
  /** Path from the root, as kubectl shows it: `spec.backends[0].url`. */
  readonly field: string
  readonly reason: string
  readonly cure: string
}

/** The part of a rule that the CRD and the reference page show. */
export interface RuleText {
  /** Stable id, for the reference page and the tests. */
  readonly id: string
  /** CEL expression over `self` (and `oldSelf`, then the API server skips it on create). */
  readonly cel: string
  /** Field that is at fault, below the place of the rule, such as `.ttlSeconds`. Without it the place itself. */
  readonly field?: string
  /** What is wrong, beginning with the field. */
  readonly reason: string
  readonly cure: string
}

/** `holds`: judged on every write. `keeps`: judged on changes only, with the value before. */
export type Rule<Self> = RuleText & ({ readonly holds: (self: Self) => boolean } | { readonly keeps: (self: Self, old: Self) => boolean })

/** One value that rules are judged on, and where it stands. */
export interface Located<Self> {
  readonly field: string
  readonly value: Self
}

/** A place of the schema with its rules. */
export interface RulePlace<Document> {
  /** Path in the schema: '' is the root, `[]` the items of a list: `spec.backends[].url`. */
  readonly path: string
  readonly rules: readonly RuleText[]
  /** Judges every value at this place; `previous` is the object before the change. */
  faults(document: Document, previous: Document | undefined): Fault[]
}

/** The message of the API server: field, reason and cure in one line. */
export function ruleMessage(rule: RuleText): string {
  return `${rule.reason}: ${rule.cure}`
}

/**
 * Ties rules to a place. Values before and after a change belong together when they stand at the same path, so `keeps` rules must not be
 * put on list items (the API server pairs those by map key).
 */
export function rulePlace<Document, Self>(
  path: string,
  select: (document: Document) => readonly Located<Self>[],
  rules: readonly Rule<Self>[],
): RulePlace<Document> {
  return {
    path,
    rules,
    faults(document, previous) {
      const before = new Map((previous === undefined ? [] : select(previous)).map((one) => [one.field, one.value]))
      return select(document).flatMap(({ field, value }) =>
        rules.filter((rule) => !passes(rule, value, before.get(field))).map((rule) => toFault(rule, field)),
      )
    },
  }
}

function passes<Self>(rule: Rule<Self>, self: Self, old: Self | undefined): boolean {
  if ('holds' in rule) return rule.holds(self)
  return old === undefined || rule.keeps(self, old)
}

function toFault(rule: RuleText, place: string): Fault {
  return { field: `${place}${rule.field ?? ''}`.replace(/^\./, ''), reason: rule.reason, cure: rule.cure }
}
