import { apiVersionOf, type KubeObject, type Resource } from './port.ts'

/** The part of a resource that a call concerns: a namespace ('' = all, or cluster-scoped), one object, or one of its subresources. */
export interface Target {
  readonly namespace: string
  readonly name?: string
  readonly subresource?: string
}

/** Path of a resource below the server's root. @param query undefined entries are omitted */
export function resourcePath(resource: Resource, target: Target, query: Readonly<Record<string, string | undefined>> = {}): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`
  const parts = [
    ...(resource.namespaced && target.namespace !== '' ? ['namespaces', target.namespace] : []),
    resource.plural,
    ...(target.name === undefined ? [] : [target.name]),
    ...(target.subresource === undefined ? [] : [target.subresource]),
  ]
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, value)
  return `${root}/${parts.map(encodeURIComponent).join('/')}${search.size > 0 ? `?${search.toString()}` : ''}`
}

/** Plural with group, as in RBAC rules and error messages. */
export function resourceName(resource: Resource): string {
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`
}

/**
 * The form in which callers get an object: with the kind, which lists of built-in kinds omit, and without managedFields, which take 20 to 40 %
 * of the bytes, and with which an apply would be refused.
 */
export function normalized<T extends KubeObject>(resource: Resource<T>, object: T): T {
  const { managedFields: _managedFields, ...metadata } = object.metadata as T['metadata'] & { managedFields?: unknown }
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind, metadata }
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** The form in which caches keep an object: without the annotation in which kubectl repeats the whole object. */
export function cacheable<T extends KubeObject>(resource: Resource<T>, object: T): T {
  const slim = normalized(resource, object)
  const { annotations } = slim.metadata
  if (annotations?.[LAST_APPLIED] === undefined) return slim
  const { [LAST_APPLIED]: _lastApplied, ...kept } = annotations
  return { ...slim, metadata: { ...slim.metadata, annotations: kept } }
}
