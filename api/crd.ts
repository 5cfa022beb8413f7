/** The CustomResourceDefinitions, built from the zod schemas and the rule tables. */
import { apiVersionOf } from '#kube/port.ts'
import type { ApiKind } from './kind.ts'
import { addRules, type StructuralSchema, structuralSchema } from './structural-schema.ts'

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
  const { resource, singular, shortName } = kind
  const { group, version, plural } = resource
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: crdName(kind) },
    spec: {
      group,
      scope: resource.namespaced ? 'Namespaced' : 'Cluster',
      names: { kind: resource.kind, listKind: `${resource.kind}List`, plural, singular, shortNames: [shortName], categories: ['headgate'] },
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
