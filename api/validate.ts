/**
 * Validates a manifest as the API server does before it stores an object – schema, defaults, rules – for programs without an API server.
 * Both use the same zod schemas and the same rule table, and `test/contract/manifests.ts` checks that both give the same answers.
 */
import { z } from 'zod'
import { apiVersionOf, type KubeObject } from '#kube/port.ts'
import { type ApiKind, isOfKind } from './kind.ts'
import { API_KINDS } from './kinds.ts'
import type { ManifestError } from './manifest-error.ts'
import { objectMetadata } from './metadata.ts'
import { schemaErrors } from './schema-errors.ts'

/**
 * A valid manifest: defaults filled in, `metadata` reduced to name, namespace (unless the kind is cluster-scoped), labels and
 * annotations, no status.
 */
export interface Manifest extends KubeObject {
  readonly spec: unknown
}

/** The result of a validation. A failed one has at least one error. */
export type Validated<T = Manifest> =
  { readonly ok: true; readonly object: T } | { readonly ok: false; readonly errors: readonly ManifestError[] }

/**
 * Validates one manifest as the API server would with `kubectl apply --validate=strict`: unknown fields are errors.
 * @param document parsed YAML or JSON of one object
 * @param previous the stored object; rules about changes compare with it. Without it the manifest is a new object.
 * @param kinds the known kinds
 */
export function validateManifest(document: unknown, previous?: KubeObject, kinds: readonly ApiKind[] = API_KINDS): Validated {
  const schema = z.object({
    apiVersion: z.enum([...new Set(kinds.map(({ resource }) => apiVersionOf(resource)))]),
    kind: z.enum(kinds.map(({ resource }) => resource.kind)),
  })
  const head = schema.safeParse(document, { reportInput: true })
  if (!head.success) return { ok: false, errors: schemaErrors(head.error.issues, { schema, document }) }
  const kind = kinds.find(({ resource }) => resource.kind === head.data.kind && apiVersionOf(resource) === head.data.apiVersion)
  return kind === undefined ? { ok: false, errors: [OTHER_VERSION] } : validateKind(kind, document, previous)
}

/** Used only if the known kinds have several API versions. */
const OTHER_VERSION: ManifestError = { field: 'apiVersion', reason: 'has no such kind', remedy: 'use the apiVersion of this kind' }

/** Checks the schema first, and the rules only for documents that match it, as a cluster does. */
function validateKind(kind: ApiKind, document: unknown, previous: KubeObject | undefined): Validated {
  const schema = manifestSchema(kind)
  const asWritten = schema.safeParse(document, { reportInput: true })
  const parsed = schema.safeParse(withoutNulls(document), { reportInput: true })
  const unknownFields = asWritten.error?.issues.filter((issue) => issue.code === 'unrecognized_keys') ?? []
  const others = parsed.error?.issues.filter((issue) => issue.code !== 'unrecognized_keys') ?? []
  const errors = schemaErrors([...unknownFields, ...others], { schema, document })
  if (!parsed.success || errors.length > 0) return { ok: false, errors }
  const broken = kind.rules.flatMap((place) => place.check(parsed.data, isOfKind(kind, previous) ? previous : undefined))
  return broken.length > 0 ? { ok: false, errors: broken } : { ok: true, object: writable(kind, parsed.data) }
}

function manifestSchema({ resource, spec }: ApiKind) {
  return z.strictObject({
    apiVersion: z.literal(apiVersionOf(resource)),
    kind: z.literal(resource.kind),
    metadata: objectMetadata,
    spec,
    status: z.unknown().optional(),
  })
}

/** Drops the fields that a cluster drops: the status, which only the operator writes, and the namespace of a cluster-scoped object. */
function writable({ resource }: ApiKind, { apiVersion, kind, metadata, spec }: Manifest): Manifest {
  const { namespace, ...rest } = metadata
  return { apiVersion, kind, metadata: resource.namespaced && namespace !== undefined ? { ...rest, namespace } : rest, spec }
}

/**
 * Drops null fields, as the API server does before it fills in defaults. Nulls in lists stay and are refused. Call this only after the search
 * for unknown fields, which must also find a misspelt field whose value is null.
 */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, entry]) => entry !== null)
      .map(([key, entry]) => [key, withoutNulls(entry)]),
  )
}
