/** Translates zod issues into manifest errors with a field, a reason and a remedy. */
import type { z } from 'zod'
import { DECIMAL_AMOUNT } from './decimal-amount.ts'
import type { ManifestError } from './manifest-error.ts'
import { TIME_ZONE_NAME } from '../../gateway/shared/budget-window.ts'

type Issue = z.core.$ZodIssue

/**
 * Returns one error per problem.
 * @param issues of a parse with `reportInput`, which tells a missing field from a field of the wrong type
 */
export function schemaErrors(issues: readonly Issue[]): ManifestError[] {
  return issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [{ field: fieldPath(issue.path), ...explain(issue) }]
    return issue.keys.map((key) => ({
      field: fieldPath([...issue.path, key]),
      reason: 'there is no such field',
      remedy: 'remove it, or check its spelling and its place',
    }))
  })
}

/** `['spec', 'backends', 0, 'url']` becomes `spec.backends[0].url`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`
    return text === '' ? String(step) : `${text}.${String(step)}`
  }, '')
}

function explain(issue: Issue): Omit<ManifestError, 'field'> {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined
        ? { reason: 'it is missing', remedy: 'add it' }
        : { reason: `it must be of type ${typeName(issue.expected)}`, remedy: 'change its type; quotes turn a number into a string' }
    case 'invalid_value':
      return { reason: 'its value is not one of the known values', remedy: `use ${issue.values.map(String).join(', ')}` }
    case 'too_small':
      return { reason: 'it is too small', remedy: `use at least ${issue.minimum}${unit(issue.origin)}` }
    case 'too_big':
      return { reason: 'it is too large', remedy: `use at most ${issue.maximum}${unit(issue.origin)}` }
    case 'invalid_format':
      return explainFormat(issue)
    default:
      return { reason: `it ${issue.message}`, remedy: 'correct it' }
  }
}

/** Patterns that say little to a person. */
const FORMS: ReadonlyMap<string | undefined, Omit<ManifestError, 'field'>> = new Map([
  [
    String(new RegExp(DECIMAL_AMOUNT)),
    {
      reason: 'it is no decimal number of at most 9 digits before and 6 behind the point',
      remedy: 'write it like "0.15", without sign, exponent or separators',
    },
  ],
  [
    String(new RegExp(TIME_ZONE_NAME)),
    { reason: 'it is no name of a time zone', remedy: 'write an IANA name such as Europe/Berlin or UTC' },
  ],
])

function explainFormat(issue: z.core.$ZodIssueInvalidStringFormat): Omit<ManifestError, 'field'> {
  const form = FORMS.get(issue.pattern)
  if (form !== undefined) return form
  if (issue.format === 'datetime') return { reason: 'it is not a valid time', remedy: 'write it like 2027-01-01T00:00:00Z' }
  return { reason: 'it has characters or a form that are not allowed', remedy: `match ${issue.pattern ?? issue.format}` }
}

function typeName(expected: string): string {
  if (expected === 'int') return 'integer'
  return expected === 'record' ? 'object' : expected
}

function unit(origin: string): string {
  if (origin === 'string') return ' characters'
  return origin === 'array' ? ' entries' : ''
}
