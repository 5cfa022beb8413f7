/** The CustomResourceDefinitions, built from the zod schemas and the rule tables. */
import type { z } from 'zod'
import { apiKeySpec, apiKeyStatus } from './apikey.ts'
import { API_KEY_RULES, SERVED_MODEL_RULES } from './cel-rules.ts'
import { API_KEY_CONDITIONS, type ConditionTable, SERVED_MODEL_CONDITIONS } from './conditions.ts'
import { API_GROUP, API_VERSION } from './metadata.ts'
import type { RulePlace } from './rule.ts'
import { servedModelSpec, servedModelStatus } from './served-model.ts'
import { addRules, type StructuralSchema, structuralSchema } from './structural-schema.ts'

/** A column of `kubectl get`; `wide` ones show with `-o wide` only. */
export interface Column {
  readonly name: string
  readonly type: 'string' | 'date'
  readonly jsonPath: string
  readonly description: string
  readonly wide?: boolean
}

/** Everything that one kind needs to become a CRD and a page of the reference. */
export interface KindDefinition {
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortName: string
  readonly description: string
  readonly spec: z.ZodType
  readonly specDescription: string
  readonly status: z.ZodType
  readonly rules: ReadonlyArray<Pick<RulePlace<never>, 'path' | 'rules'>>
  readonly conditions: ConditionTable
  readonly columns: readonly Column[]
  /** Paths that `kubectl get --field-selector` takes. */
  readonly selectable: readonly string[]
}

const readyStatus = '.status.conditions[?(@.type=="Ready")].status'
const readyReason = '.status.conditions[?(@.type=="Ready")].reason'
const age: Column = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp', description: 'Time since it was made.' }

const apiKey: KindDefinition = {
  kind: 'ApiKey',
  plural: 'apikeys',
  singular: 'apikey',
  shortName: 'ak',
  description: 'One working, enforced key to the models of this cluster. The operator writes its value into a Secret beside it.',
  spec: apiKeySpec,
  specDescription: 'What the key may do, and until when. An empty spec is a key to all models that never ends.',
  status: apiKeyStatus,
  rules: API_KEY_RULES,
  conditions: API_KEY_CONDITIONS,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: readyStatus, description: 'Whether the key works on every gateway now.' },
    { name: 'Reason', type: 'string', jsonPath: readyReason, description: 'Why, in one word.' },
    { name: 'Prefix', type: 'string', jsonPath: '.status.prefix', description: 'First 8 and last 4 characters of the key.' },
    { name: 'Expires', type: 'string', jsonPath: '.status.expirationTime', description: 'When the key stops working.' },
    age,
    { name: 'Models', type: 'string', jsonPath: '.status.summary.models', description: 'Models that it may call.', wide: true },
    { name: 'Programmed', type: 'string', jsonPath: '.status.summary.programmed', description: 'Gateways that know it.', wide: true },
  ],
  selectable: ['.spec.state', '.status.keyID'],
}

const servedModel: KindDefinition = {
  kind: 'ServedModel',
  plural: 'servedmodels',
  singular: 'servedmodel',
  shortName: 'sm',
  description: 'A model name that clients use, and the servers behind it.',
  spec: servedModelSpec,
  specDescription: 'The name, who may use it, and the servers.',
  status: servedModelStatus,
  rules: SERVED_MODEL_RULES,
  conditions: SERVED_MODEL_CONDITIONS,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: readyStatus, description: 'Whether the model can be called.' },
    { name: 'Served-Name', type: 'string', jsonPath: '.status.servedName', description: 'The name that clients use.' },
    { name: 'Backends', type: 'string', jsonPath: '.status.summary.backends', description: 'Usable and all backends.' },
    age,
    { name: 'Aliases', type: 'string', jsonPath: '.status.summary.aliases', description: 'More names for it.', wide: true },
  ],
  selectable: ['.spec.servedName'],
}

/** All kinds, in the order of the reference page. */
export const KINDS: readonly KindDefinition[] = [apiKey, servedModel]

/** The schema of a whole object of one kind. */
export function objectSchema(definition: KindDefinition): StructuralSchema {
  const root: StructuralSchema = {
    type: 'object',
    description: definition.description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', maxLength: 64, description: `${API_GROUP}/${API_VERSION}` },
      kind: { type: 'string', maxLength: 64, description: definition.kind },
      metadata: { type: 'object' },
      spec: { ...structuralSchema(definition.spec, 'spec'), description: definition.specDescription },
      status: {
        ...structuralSchema(definition.status, 'status'),
        description: 'What the operator has seen and done. Written by it alone.',
      },
    },
  }
  addRules(root, definition.rules)
  return root
}

/** The whole CustomResourceDefinition as plain data. */
export function customResourceDefinition(definition: KindDefinition) {
  const { kind, plural, singular, shortName } = definition
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${API_GROUP}` },
    spec: {
      group: API_GROUP,
      scope: 'Namespaced',
      names: { kind, listKind: `${kind}List`, plural, singular, shortNames: [shortName], categories: ['headgate'] },
      versions: [
        {
          name: API_VERSION,
          served: true,
          storage: true,
          additionalPrinterColumns: definition.columns.map(({ wide, ...column }) => (wide ? { ...column, priority: 1 } : column)),
          selectableFields: definition.selectable.map((jsonPath) => ({ jsonPath })),
          subresources: { status: {} },
          schema: { openAPIV3Schema: objectSchema(definition) },
        },
      ],
    },
  }
}
