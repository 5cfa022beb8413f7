/**
 * What the API server does to a manifest before it stores it, for where there is none: schema, defaults, rules. Both use the same zod
 * schemas and the same rule table, and `test/contract/manifests.ts` holds them to the same answers.
 */
import { z } from 'zod'
import type { KubeObject } from '../kube/port.ts'
import { type ApiKey, apiKeySpec } from './apikey.ts'
import { API_KEY_RULES, SERVED_MODEL_RULES } from './cel-rules.ts'
import { objectMetadata } from './manifest-metadata.ts'
import { API_GROUP, API_VERSION } from './metadata.ts'
import type { Fault, RulePlace } from './rule.ts'
import { schemaFaults } from './schema-faults.ts'
import { type ServedModel, servedModelSpec } from './served-model.ts'

/** A valid manifest: defaults filled in, `metadata` reduced to name, namespace, labels and annotations, no status. */
export type Manifest = (ApiKey & { readonly kind: 'ApiKey' }) | (ServedModel & { readonly kind: 'ServedModel' })

/** What came of it. There is at least one fault where it is not ok. */
export type Validated = { readonly ok: true; readonly object: Manifest } | { readonly ok: false; readonly faults: readonly Fault[] }

const apiVersion = `${API_GROUP}/${API_VERSION}` as const
const kinds = ['ApiKey', 'ServedModel'] as const
const identity = z.object({ apiVersion: z.literal(apiVersion), kind: z.enum(kinds) })

const common = { apiVersion: z.literal(apiVersion), metadata: objectMetadata, status: z.unknown().optional() }
const apiKeyManifest = z.strictObject({ ...common, kind: z.literal('ApiKey'), spec: apiKeySpec })
const servedModelManifest = z.strictObject({ ...common, kind: z.literal('ServedModel'), spec: servedModelSpec })

/**
 * Judges one manifest as the API server would with `kubectl apply --validate=strict`: unknown fields are faults.
 * @param document parsed YAML or JSON of one object
 * @param previous the object as it is now: rules about changes are judged against it. Without it the manifest is a new object.
 */
export function validateManifest(document: unknown, previous?: ApiKey | ServedModel): Validated {
  const head = identity.safeParse(document, { reportInput: true })
  if (!head.success) return { ok: false, faults: schemaFaults(head.error.issues) }
  if (head.data.kind === 'ApiKey') {
    const judged = judge(apiKeyManifest, API_KEY_RULES, document, previous && isApiKey(previous) ? previous : undefined)
    return judged.ok ? { ok: true, object: writable(judged.value) } : judged
  }
  const judged = judge(servedModelManifest, SERVED_MODEL_RULES, document, previous && isServedModel(previous) ? previous : undefined)
  return judged.ok ? { ok: true, object: writable(judged.value) } : judged
}

/** Without status: only the operator writes it, and a cluster drops it from a manifest too. */
function writable<K, M, S>({ kind, metadata, spec }: { kind: K; metadata: M; spec: S }) {
  return { apiVersion, kind, metadata, spec }
}

type Judged<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly faults: readonly Fault[] }

/** Schema first; rules are judged on what has passed it, as in the cluster. */
function judge<Document, T extends Document>(
  schema: z.ZodType<T>,
  rules: readonly RulePlace<Document>[],
  document: unknown,
  previous: Document | undefined,
): Judged<T> {
  const unknownFields = issuesOf(schema, document).filter((issue) => issue.code === 'unrecognized_keys')
  const parsed = schema.safeParse(withoutNulls(document), { reportInput: true })
  const others = (parsed.error?.issues ?? []).filter((issue) => issue.code !== 'unrecognized_keys')
  const faults = schemaFaults([...unknownFields, ...others])
  if (!parsed.success || faults.length > 0) return { ok: false, faults }
  const broken = rules.flatMap((place) => place.faults(parsed.data, previous))
  return broken.length > 0 ? { ok: false, faults: broken } : { ok: true, value: parsed.data }
}

function issuesOf(schema: z.ZodType, document: unknown): readonly z.core.$ZodIssue[] {
  return schema.safeParse(document, { reportInput: true }).error?.issues ?? []
}

/**
 * The API server reads a null field as an absent one, before it fills in defaults. Nulls in lists stay, and are refused. Unknown fields
 * must be looked for before this: a misspelt field that is null is misspelt still.
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

function isApiKey(object: KubeObject): object is ApiKey {
  return object.kind === 'ApiKey'
}

function isServedModel(object: KubeObject): object is ServedModel {
  return object.kind === 'ServedModel'
}
