import { expect, test } from 'vitest'
import { z } from 'zod'
import { addRules, type StructuralSchema, structuralSchema } from './crd.ts'

const described = z.string().max(1).describe('text')

test.each([
  ['a string without a bound', z.string().describe('text'), /spec\.it: needs maxLength/],
  ['a list without a bound', z.array(described).describe('text'), /spec\.it: needs maxItems/],
  ['a map without a bound', z.record(z.string(), described).describe('text'), /spec\.it: needs maxProperties/],
  ['a field without a text', z.string().max(1), /spec\.it: has no description/],
  ['a union', z.union([described, z.int().min(0)]).describe('text'), /spec\.it: .*anyOf/s],
])('the generation refuses %s and names it', (_, field, message) => {
  expect(() => structuralSchema(z.strictObject({ it: field }), 'spec')).toThrow(message)
})

test('what the API server refuses is left out, and no bound is lost by it', () => {
  const schema = structuralSchema(z.strictObject({ it: z.int().positive().lt(9).describe('text') }), 'spec')
  const it = { type: 'integer', minimum: 1, maximum: 8, description: 'text' }
  expect(schema).toEqual({ type: 'object', properties: { it }, required: ['it'] })
})

test('a rule lands at its place, also within lists, and one without a place stops the generation', () => {
  const root: StructuralSchema = { type: 'object', properties: { list: { type: 'array', items: { type: 'string' } } } }
  const rules = [{ id: 'a', cel: 'true', reason: 'b', remedy: 'c', field: '.d' }]
  addRules(root, [{ path: 'list[]', rules }])
  expect(root.properties?.list?.items?.['x-kubernetes-validations']).toEqual([{ rule: 'true', message: 'b: c', fieldPath: '.d' }])
  expect(() => addRules(root, [{ path: 'missing', rules }])).toThrow(/missing/)
})
