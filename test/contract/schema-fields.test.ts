/**
 * A field of a spec that no code reads is a broken promise. This test looks for each field of each schema in the code: a field of the
 * spec itself must be read from a spec, a deeper field by its name. Fields that only people read are listed here, with the reason.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { API_KINDS } from '#api/kinds.ts'
import { filesBelow, ROOT } from '../support/documents.ts'

const DISPLAY_ONLY: Readonly<Record<string, string>> = {
  'ApiKey spec.displayName': 'a name for people; the object itself shows it',
  'Plan spec.displayName': 'a name for people; the object itself shows it',
  'Account spec.displayName': 'a name for people; the object itself shows it',
  'Account spec.owner.email': 'an address for people; the operator sends no mail',
  'ApiKey spec.secret.retention': 'has one value, which is what the operator does; a second value will be read',
}

const SOURCES = ['gateway', 'operator', 'standalone', 'api'].flatMap(filesBelow)
const code = SOURCES.filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !isSchema(path))
  .map((path) => readFileSync(join(ROOT, path), 'utf8'))
  .join('\n')

test.each(API_KINDS)('every field of the spec of $resource.kind is read by code, or is listed as display', ({ resource, spec }) => {
  const unread = fieldsOf(spec, 'spec')
    .filter((path) => !isRead(path))
    .map((path) => `${resource.kind} ${path}`)
  const listed = Object.keys(DISPLAY_ONLY).filter((path) => path.startsWith(`${resource.kind} `))
  expect(unread.toSorted()).toEqual(listed.toSorted())
})

test('a field that no code reads is found, even if other objects have a field of that name', () => {
  expect(isRead('spec.models')).toBe(true)
  expect(isRead('spec.planets')).toBe(false)
  expect(isRead('spec.limits.requestsPerMinute')).toBe(true)
  expect(isRead('spec.limits.fieldThatNobodyReads')).toBe(false)
})

function isRead(path: string): boolean {
  const [name = '', parent] = path.split('.').toReversed()
  return parent === 'spec' ? isReadFromSpec(name) : isReadByName(name)
}

/** `spec.field`, `{ field } = x.spec` and `{ field }: ApiKeySpec`. */
function isReadFromSpec(name: string): boolean {
  return new RegExp(
    `\\b(plan)?[sS]pec[?]?[.]${name}\\b|[{][^{}]*\\b${name}\\b[^{}]*[}]\\s*(=\\s*[\\w.?]*\\bspec\\b|:\\s*\\w+(Spec\\b|\\['spec'\\]))`,
  ).test(code)
}

/** `x.field`, `x?.field`, `{ field }`, `{ field = … }` and `{ field: other }`. */
function isReadByName(name: string): boolean {
  return new RegExp(`[.]${name}\\b|[{,]\\s*${name}\\s*[,}=:]`).test(code)
}

/** In api/, only the mapping of manifests to records reads fields to let them take effect. */
function isSchema(path: string): boolean {
  return path.startsWith('api/') && !['api/key-policy.ts', 'api/account-policy.ts'].includes(path)
}

/** Every field below a schema: `spec.backends[].service.name`. */
function fieldsOf(schema: unknown, path: string): string[] {
  if (schema instanceof z.ZodObject) {
    const shape = schema.shape as Readonly<Record<string, unknown>>
    return Object.entries(shape).flatMap(([name, field]) => [`${path}.${name}`, ...fieldsOf(field, `${path}.${name}`)])
  }
  if (schema instanceof z.ZodArray) return fieldsOf(schema.element, `${path}[]`)
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return fieldsOf(schema.unwrap(), path)
  return []
}
