/** The kinds of manifest that standalone accepts: Headgate's own, and the two built-in kinds that they refer to. */
import { z } from 'zod'
import type { ApiKind } from '#api/kind.ts'
import { API_KINDS } from '#api/kinds.ts'
import { objectMetadata } from '#api/metadata.ts'
import { schemaErrors } from '#api/schema-errors.ts'
import { type Validated, validateManifest } from '#api/validate.ts'
import type { KubeObject, Resource } from '#kube/port.ts'
import { namespaces, secrets } from '#kube/resources.ts'

/** One kind that the folder may contain. */
export interface ManifestKind {
  readonly resource: Resource
  /** Checks one document. @param previous the stored object, for rules about changes */
  check(document: unknown, previous: KubeObject | undefined): Validated<KubeObject>
}

/** Kinds that the folder may contain, by name. */
export type ManifestKinds = ReadonlyMap<string, ManifestKind>

/** @param kinds Headgate's own kinds; they get the API server's validation, the built-in ones only a check of their form */
export function manifestKinds(kinds: readonly ApiKind[] = API_KINDS): ManifestKinds {
  const own = kinds.map((kind): ManifestKind => ({
    resource: kind.resource,
    check: (document, previous) => validateManifest(document, previous, kinds),
  }))
  return new Map([...own, SECRET, NAMESPACE].map((kind) => [kind.resource.kind, kind]))
}

const base64 = z.base64({ error: 'is not base64' })
const secretManifest = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Secret'),
  metadata: objectMetadata,
  type: z.string().optional(),
  immutable: z.boolean().optional(),
  data: z.record(z.string(), base64).exactOptional(),
  stringData: z.record(z.string(), z.string()).exactOptional(),
})
const namespaceManifest = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Namespace'),
  metadata: objectMetadata,
  spec: z.unknown().optional(),
  status: z.unknown().optional(),
})

const SECRET = builtIn(secrets, secretManifest, ({ apiVersion, kind, metadata, type = 'Opaque', data, stringData = {} }) => {
  const written = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')])
  return { apiVersion, kind, metadata, type, data: { ...data, ...Object.fromEntries(written) } }
})
const NAMESPACE = builtIn(namespaces, namespaceManifest, ({ metadata: { name, labels } }) => namespaceObject(name, labels))

/** A kind whose manifests are only checked for their form. */
function builtIn<T>(resource: Resource, schema: z.ZodType<T>, toObject: (manifest: T) => KubeObject): ManifestKind {
  return {
    resource,
    check: (document) => {
      const parsed = schema.safeParse(document, { reportInput: true })
      if (parsed.success) return { ok: true, object: toObject(parsed.data) }
      const context = { schema, document, isSecret: resource === secrets } // an error must not show a value
      return { ok: false, errors: schemaErrors(parsed.error.issues, context) }
    },
  }
}

/** A Namespace with the label that every real one has. */
export function namespaceObject(name: string, labels: Readonly<Record<string, string>> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { ...labels, 'kubernetes.io/metadata.name': name } } }
}
