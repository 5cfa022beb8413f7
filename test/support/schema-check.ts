/** Checks values against the schemas of docs/openapi.yaml. Of JSON Schema it knows exactly the words that the document uses. */
import { isDeepStrictEqual } from 'node:util'

export type Schema = Readonly<Record<string, unknown>>
type Json = Readonly<Record<string, unknown>>
/** @returns whether the value obeys the word; `siblings` is the schema in which the word stands */
type Word = (value: unknown, argument: never, siblings: Schema) => boolean

export class SchemaCheck {
  readonly #document: Json
  readonly #words: Readonly<Record<string, Word>> = {
    $ref: (value, path: string) => this.accepts(this.resolve(path), value),
    allOf: (value, schemas: readonly Schema[]) => schemas.every((schema) => this.accepts(schema, value)),
    anyOf: (value, schemas: readonly Schema[]) => schemas.some((schema) => this.accepts(schema, value)),
    not: (value, schema: Schema) => !this.accepts(schema, value),
    type: (value, types: string | readonly string[]) => [types].flat().some((type) => hasType(value, type)),
    const: (value, wanted: unknown) => isDeepStrictEqual(value, wanted),
    enum: (value, values: readonly unknown[]) => values.some((one) => isDeepStrictEqual(value, one)),
    minimum: (value, least: number) => typeof value !== 'number' || value >= least,
    maximum: (value, most: number) => typeof value !== 'number' || value <= most,
    minLength: (value, least: number) => typeof value !== 'string' || value.length >= least,
    pattern: (value, pattern: string) => typeof value !== 'string' || new RegExp(pattern, 'u').test(value),
    minItems: (value, least: number) => !Array.isArray(value) || value.length >= least,
    items: (value, schema: Schema) => !Array.isArray(value) || value.every((entry) => this.accepts(schema, entry)),
    required: (value, names: readonly string[]) => !isObject(value) || names.every((name) => Object.hasOwn(value, name)),
    properties: (value, schemas: Readonly<Record<string, Schema>>) =>
      !isObject(value) ||
      Object.entries(schemas).every(([name, schema]) => !Object.hasOwn(value, name) || this.accepts(schema, value[name])),
    propertyNames: (value, schema: Schema) => !isObject(value) || Object.keys(value).every((name) => this.accepts(schema, name)),
    patternProperties: (value, schemas: Readonly<Record<string, Schema>>) =>
      !isObject(value) ||
      Object.entries(value).every(([name, one]) => matching(schemas, name).every((pattern) => this.accepts(schemas[pattern] ?? {}, one))),
    additionalProperties: (value, allowed: boolean | Schema, { properties = {}, patternProperties = {} }) => {
      if (allowed === true || !isObject(value)) return true
      const others = Object.keys(value).filter(
        (name) => !Object.hasOwn(properties as Json, name) && !matching(patternProperties as Json, name)[0],
      )
      return others.every((name) => allowed !== false && this.accepts(allowed, value[name]))
    },
    description: () => true,
    contentMediaType: () => true,
  }

  constructor(document: Json) {
    this.#document = document
  }

  /** @throws RangeError for a word that the check does not know */
  accepts(schema: Schema, value: unknown): boolean {
    return Object.entries(schema).every(([name, argument]) => {
      const word = this.#words[name]
      if (!word) throw new RangeError(`the document uses the word ${name}, which this check does not know`)
      return word(value, argument as never, schema)
    })
  }

  /** @param path such as `#/components/schemas/Call` @throws RangeError if the document has no such part */
  resolve(path: string): Schema {
    let part: unknown = this.#document
    for (const name of path.replace(/^#\//, '').split('/')) part = isObject(part) ? part[name] : undefined
    if (!isObject(part)) throw new RangeError(`the document has no part ${path}`)
    return part
  }
}

/** The patterns that a name matches. */
function matching(patterns: Json, name: string): string[] {
  return Object.keys(patterns).filter((pattern) => new RegExp(pattern, 'u').test(name))
}

function hasType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
