/**
 * The CustomResourceDefinitions, built from the zod schemas and the rule tables. zod becomes the structural schema of a CRD; fields without a
 * bound or a description stop the generation.
 */
import { z } from 'zod'
import { apiVersionOf } from '#kube/port.ts'
import { TIMESTAMP_PATTERN } from './bounded.ts'
import type { ApiKind } from './kind.ts'
import { type RulePlace, ruleMessage, ruleMessageExpression } from './rule.ts'

/** metadata.name of the definition, and its file name without `.yaml`. */
export function crdName({ resource }: ApiKind): string {
  return `${resource.plural}.${resource.group}`
}

/** The schema of a whole object of one kind. */
export function objectSchema(kind: ApiKind): StructuralSchema {
  const root: StructuralSchema = {
    type: 'object',
    description: kind.description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', maxLength: 64, description: apiVersionOf(kind.resource) },
      kind: { type: 'string', maxLength: 64, description: kind.resource.kind },
      metadata: { type: 'object' },
      spec: { ...structuralSchema(kind.spec, 'spec'), description: kind.specDescription },
      status: {
        ...structuralSchema(kind.status, 'status'),
        description: 'What the operator observed and did. Only the operator writes it.',
      },
    },
  }
  addRules(root, kind.rules)
  return root
}

/** The whole CustomResourceDefinition as plain data. */
export function customResourceDefinition(kind: ApiKind) {
  const { resource, shortName } = kind
  const { group, version, plural } = resource
  const singular = resource.kind.toLowerCase()
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: crdName(kind) },
    spec: {
      group,
      scope: resource.namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind: resource.kind,
        listKind: `${resource.kind}List`,
        plural,
        singular,
        ...(shortName === undefined ? {} : { shortNames: [shortName] }),
        categories: ['headgate'],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          additionalPrinterColumns: kind.columns.map(({ wide, ...column }) => (wide ? { ...column, priority: 1 } : column)),
          selectableFields: kind.selectable.map((jsonPath) => ({ jsonPath })),
          subresources: { status: {} },
          schema: { openAPIV3Schema: objectSchema(kind) },
        },
      ],
    },
  }
}

/** One entry of `x-kubernetes-validations`. */
interface Validation {
  readonly rule: string
  readonly message: string
  /** CEL of a message with values. If it fails, the API server uses `message`. */
  readonly messageExpression?: string
  readonly fieldPath?: string
}

const size = z.int().min(0)

/** The keywords that zod may generate. Any other keyword (anyOf, $ref, not …) is not valid in a structural schema and stops the generation. */
const node = z.strictObject({
  type: z.enum(['object', 'array', 'string', 'integer', 'boolean']),
  description: z.string().exactOptional(),
  default: z.unknown().exactOptional(),
  enum: z.array(z.string()).exactOptional(),
  format: z.string().exactOptional(),
  pattern: z.string().exactOptional(),
  minLength: size.exactOptional(),
  maxLength: size.exactOptional(),
  minimum: z.int().exactOptional(),
  maximum: z.int().exactOptional(),
  minItems: size.exactOptional(),
  maxItems: size.exactOptional(),
  maxProperties: size.exactOptional(),
  required: z.array(z.string()).exactOptional(),
  properties: z.record(z.string(), z.unknown()).exactOptional(),
  items: z.unknown().exactOptional(),
  additionalProperties: z.unknown().exactOptional(),
  'x-kubernetes-list-type': z.enum(['set', 'map', 'atomic']).exactOptional(),
  'x-kubernetes-list-map-keys': z.array(z.string()).exactOptional(),
})
type Node = z.infer<typeof node>

/** The subset of OpenAPI v3 that the API server accepts for custom resources and that Headgate uses. */
export interface StructuralSchema extends Omit<Node, 'properties' | 'items' | 'additionalProperties'> {
  properties?: Record<string, StructuralSchema>
  items?: StructuralSchema
  additionalProperties?: StructuralSchema
  'x-kubernetes-validations'?: Validation[]
}

/**
 * Converts one schema.
 * @param path of the schema, for messages
 * @throws TypeError when something has no bound, no description, or no place in a structural schema
 */
export function structuralSchema(schema: z.ZodType, path: string): StructuralSchema {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    override: ({ jsonSchema }) => makeInclusive(jsonSchema),
  })
  return convert(json, path)
}

/** Replaces an exclusive bound of OpenAPI 3.0 (`minimum: 0` with a flag) by the inclusive one (`1`). */
function makeInclusive(schema: z.core.JSONSchema.BaseSchema): void {
  if (schema.exclusiveMinimum === true && schema.minimum !== undefined) schema.minimum += 1
  if (schema.exclusiveMaximum === true && schema.maximum !== undefined) schema.maximum -= 1
  delete schema.exclusiveMinimum
  delete schema.exclusiveMaximum
}

function convert(input: unknown, path: string): StructuralSchema {
  const parsed = node.safeParse(input)
  if (!parsed.success) throw new TypeError(`${path}: ${z.prettifyError(parsed.error)}`)
  const { properties, items, additionalProperties, ...plain } = parsed.data
  refuseUnbounded(parsed.data, path)
  const result: StructuralSchema = { ...plain }
  if (plain.format === 'date-time') result.pattern = TIMESTAMP_PATTERN // users would see zod's own pattern, 300 characters long, in an error message
  if (properties) result.properties = convertProperties(properties, path)
  if (items !== undefined) result.items = convert(items, `${path}[]`)
  // `false` means that there are no other fields. The API server refuses it beside `properties`: it prunes, and kubectl asks for strictness.
  if (additionalProperties !== undefined && additionalProperties !== false) {
    result.additionalProperties = convert(additionalProperties, `${path}.*`)
  }
  return result
}

function convertProperties(properties: Record<string, unknown>, path: string): Record<string, StructuralSchema> {
  const entries = Object.entries(properties).map(([name, child]): [string, StructuralSchema] => {
    const converted = convert(child, `${path}.${name}`)
    if (!converted.description) throw new TypeError(`${path}.${name}: has no description`)
    return [name, converted]
  })
  return Object.fromEntries(entries)
}

/** Keywords that each type requires. A string with an enum needs none of them. */
const NEEDED = {
  string: ['maxLength'],
  integer: ['minimum', 'maximum'],
  array: ['maxItems'],
  object: ['maxProperties'],
  boolean: [],
} as const satisfies Record<Node['type'], readonly (keyof Node)[]>

function refuseUnbounded(schema: Node, path: string): void {
  if (schema.enum !== undefined || schema.properties !== undefined) return
  const missing = NEEDED[schema.type].filter((keyword) => !(keyword in schema))
  if (missing.length > 0) throw new TypeError(`${path}: needs ${missing.join(' and ')}`)
}

/**
 * Writes the CEL of a rule table into the schema.
 * @throws TypeError when the schema does not have the path of a rule
 */
export function addRules(root: StructuralSchema, places: ReadonlyArray<Pick<RulePlace<never>, 'path' | 'rules'>>): void {
  for (const { path, rules } of places) {
    const validations = rules.map((rule): Validation => {
      const expression = ruleMessageExpression(rule)
      const text = {
        rule: rule.cel,
        message: ruleMessage(rule),
        ...(expression === undefined ? {} : { messageExpression: expression }),
      }
      return rule.field === undefined ? text : { ...text, fieldPath: rule.field }
    })
    descend(root, path)['x-kubernetes-validations'] = validations
  }
}

function descend(root: StructuralSchema, path: string): StructuralSchema {
  const steps = path.replaceAll('[]', '.[]').split('.').filter(Boolean)
  return steps.reduce((schema, step) => {
    const next = step === '[]' ? schema.items : schema.properties?.[step]
    if (!next) throw new TypeError(`no ${path} in the schema, but a rule for it`)
    return next
  }, root)
}
