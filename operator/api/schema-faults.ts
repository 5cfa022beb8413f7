/** What zod finds, said the way our rules say it: field, reason, cure. */
import type { z } from 'zod'
import type { Fault } from './rule.ts'

type Issue = z.core.$ZodIssue

/**
 * One fault per problem.
 * @param issues of a parse with `reportInput`, which tells a missing field from one of a wrong type
 */
export function schemaFaults(issues: readonly Issue[]): Fault[] {
  return issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [{ field: fieldPath(issue.path), ...explain(issue) }]
    return issue.keys.map((key) => ({
      field: fieldPath([...issue.path, key]),
      reason: 'there is no such field',
      cure: 'remove it, or check its spelling and where it stands',
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

function explain(issue: Issue): Omit<Fault, 'field'> {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined
        ? { reason: 'it is missing', cure: 'add it' }
        : { reason: `it must be of type ${typeName(issue.expected)}`, cure: 'write it so; quotes make a string of a number' }
    case 'invalid_value':
      return { reason: 'it has a value that is not known', cure: `use ${issue.values.map(String).join(', ')}` }
    case 'too_small':
      return { reason: 'it is too small', cure: `use at least ${issue.minimum}${unit(issue.origin)}` }
    case 'too_big':
      return { reason: 'it is too large', cure: `use at most ${issue.maximum}${unit(issue.origin)}` }
    case 'invalid_format':
      return explainFormat(issue)
    default:
      return { reason: `it ${issue.message}`, cure: 'correct it' }
  }
}

function explainFormat(issue: z.core.$ZodIssueInvalidStringFormat): Omit<Fault, 'field'> {
  if (issue.format === 'datetime') return { reason: 'it is not a time that exists', cure: 'write it like 2027-01-01T00:00:00Z' }
  return { reason: 'it has characters, or a shape, that it must not have', cure: `match ${issue.pattern ?? issue.format}` }
}

function typeName(expected: string): string {
  if (expected === 'int') return 'integer'
  return expected === 'record' ? 'object' : expected
}

function unit(origin: string): string {
  if (origin === 'string') return ' characters'
  return origin === 'array' ? ' entries' : ''
}
