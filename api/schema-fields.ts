/** Names of the fields that a schema has at a path, for messages about unknown fields. */
import { z } from 'zod'

type Schema = z.core.$ZodType

/** @returns names of the fields of the object at this path; [] if the path has no object with fixed fields */
export function fieldsAt(root: Schema, path: readonly PropertyKey[]): readonly string[] {
  const place = path.reduce<Schema | undefined>((schema, step) => schema && below(schema, step), root)
  return place === undefined ? [] : Object.keys(shapeOf(place))
}

/** @returns paths of all fields with this name, such as `spec.limits.requestsPerMinute`; entries of lists are not searched */
export function pathsOfField(root: Schema, name: string): readonly string[] {
  return Object.entries(shapeOf(root)).flatMap(([field, schema]) => [
    ...(field === name ? [field] : []),
    ...pathsOfField(schema, name).map((path) => `${field}.${path}`),
  ])
}

function below(schema: Schema, step: PropertyKey): Schema | undefined {
  const plain = unwrapped(schema)
  if (plain instanceof z.ZodArray) return plain.element
  if (plain instanceof z.ZodRecord) return plain.valueType
  return shapeOf(plain)[String(step)]
}

function shapeOf(schema: Schema): Readonly<Record<string, Schema>> {
  const plain = unwrapped(schema)
  return plain instanceof z.ZodObject ? plain.shape : {}
}

/** The schema without its wrappers: optional, a default, a transformation of the result. */
function unwrapped(schema: Schema): Schema {
  if (schema instanceof z.ZodPipe) return unwrapped(schema.in)
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional) return unwrapped(schema.unwrap())
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) return unwrapped(schema.unwrap())
  return schema
}
