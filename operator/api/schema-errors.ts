/** Translates zod issues into manifest errors with a field, a reason and a remedy. */
import type { z } from 'zod'
import type { ManifestError } from './manifest-error.ts'

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

function explainFormat(issue: z.core.$ZodIssueInvalidStringFormat): Omit<ManifestError, 'field'> {
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
