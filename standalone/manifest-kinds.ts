/** The kinds of manifest that standalone takes, and how each is judged: ours as the API server does, the two built-in ones that ours refer to by form. */
import { z } from 'zod'
import type { ApiKey } from '../operator/api/apikey.ts'
import { objectMetadata } from '../operator/api/manifest-metadata.ts'
import type { Fault } from '../operator/api/rule.ts'
import { schemaFaults } from '../operator/api/schema-faults.ts'
import type { ServedModel } from '../operator/api/served-model.ts'
import { validateManifest } from '../operator/api/validate.ts'
import type { KubeObject, Resource } from '../operator/kube/port.ts'
import { apiKeys, namespaces, secrets, servedModels, type Secret } from '../operator/kube/resources.ts'

/** A judged manifest: an object for the store, or what is wrong with it. */
export type JudgedManifest = { readonly ok: true; readonly object: KubeObject } | { readonly ok: false; readonly faults: readonly Fault[] }

const RESOURCES: ReadonlyMap<string, Resource> = new Map(
  [apiKeys, servedModels, secrets, namespaces].map((resource) => [resource.kind, resource]),
)

const base64 = z.base64({ error: 'is not base64' })
const secretManifest = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Secret'),
  metadata: objectMetadata,
  type: z.string().optional(),
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

/** Kinds that may stand in the folder. */
export const MANIFEST_RESOURCES: readonly Resource[] = [...RESOURCES.values()]

/** @returns undefined for a kind that standalone has no use for */
export function manifestResource(kind: string): Resource | undefined {
  return RESOURCES.get(kind)
}

/** Judges one document of a known kind. @param previous the object as it is now, for rules about changes */
export function judgeManifest(kind: string, document: unknown, previous: KubeObject | undefined): JudgedManifest {
  if (kind === secrets.kind) return judgeSecret(document)
  if (kind === namespaces.kind) return judgeNamespace(document)
  return validateManifest(document, previous !== undefined && isOurs(previous) ? previous : undefined)
}

function judgeSecret(document: unknown): JudgedManifest {
  const parsed = secretManifest.safeParse(document, { reportInput: false }) // a fault must not quote a value
  if (!parsed.success) return { ok: false, faults: schemaFaults(parsed.error.issues) }
  const { apiVersion, kind, metadata, type, data, stringData } = parsed.data
  const written = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')])
  const object: Secret = { apiVersion, kind, metadata, type: type ?? 'Opaque', data: { ...data, ...Object.fromEntries(written) } }
  return { ok: true, object }
}

function judgeNamespace(document: unknown): JudgedManifest {
  const parsed = namespaceManifest.safeParse(document, { reportInput: true })
  if (!parsed.success) return { ok: false, faults: schemaFaults(parsed.error.issues) }
  const { apiVersion, kind, metadata } = parsed.data
  return { ok: true, object: namespaceObject(metadata.name, metadata.labels, { apiVersion, kind }) }
}

/** A Namespace with the label that every real one has. */
export function namespaceObject(
  name: string,
  labels: Readonly<Record<string, string>> = {},
  type = { apiVersion: 'v1', kind: 'Namespace' },
): KubeObject {
  return { ...type, metadata: { name, labels: { ...labels, 'kubernetes.io/metadata.name': name } } }
}

function isOurs(object: KubeObject): object is ApiKey | ServedModel {
  return object.kind === apiKeys.kind || object.kind === servedModels.kind
}
