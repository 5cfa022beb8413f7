/** The built-in kinds that the operator reads or writes. Headgate's own kinds are in `../api/resources.ts`. */
import { apiVersionOf, type KubeObject, type ObjectMeta, type Resource } from './port.ts'
import { SharedTexts } from './shared-texts.ts'

/** A Secret as the API returns it: values in base64. */
export interface Secret extends KubeObject {
  readonly type?: string
  readonly data?: Readonly<Record<string, string>>
}

/** The part of a Service that a backend needs. */
export interface Service extends KubeObject {
  readonly spec?: {
    readonly type?: string
    readonly ports?: ReadonlyArray<{ readonly name?: string; readonly port: number; readonly protocol?: string }>
  }
}

/** Endpoints of one Service (discovery.k8s.io/v1). */
export interface EndpointSlice extends KubeObject {
  readonly addressType: string
  readonly endpoints?: ReadonlyArray<{
    readonly addresses: readonly string[]
    readonly conditions?: { readonly ready?: boolean | null; readonly serving?: boolean | null; readonly terminating?: boolean | null }
    readonly targetRef?: { readonly kind?: string; readonly namespace?: string; readonly name?: string }
  }>
  readonly ports?: ReadonlyArray<{ readonly name?: string | null; readonly port?: number | null; readonly protocol?: string | null }>
}

/** A Namespace, read for its labels. */
export interface Namespace extends KubeObject {
  readonly status?: { readonly phase?: string }
}

/** Leader election record (coordination.k8s.io/v1). */
export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string | null
    readonly leaseDurationSeconds?: number | null
    readonly acquireTime?: string | null
    readonly renewTime?: string | null
    readonly leaseTransitions?: number | null
  }
}

/** events.k8s.io/v1 */
export interface KubeEvent extends KubeObject {
  readonly eventTime: string
  readonly reportingController: string
  readonly reportingInstance: string
  readonly action: string
  readonly reason: string
  readonly type: 'Normal' | 'Warning'
  readonly note?: string
  readonly regarding?: { apiVersion: string; kind: string; namespace: string; name: string; uid: string }
  readonly series?: { readonly count: number; readonly lastObservedTime: string } | null
}

/** The label by which an EndpointSlice names its Service. */
export const SERVICE_LABEL = 'kubernetes.io/service-name'

export const secrets: Resource<Secret> = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true }
export const services: Resource<Service> = {
  group: '',
  version: 'v1',
  plural: 'services',
  kind: 'Service',
  namespaced: true,
  cached: ({ metadata, spec }) => ({
    metadata: identified(metadata),
    ...(spec && {
      spec: { ...pick(spec, 'type'), ...(spec.ports && { ports: spec.ports.map((port) => pick(port, 'name', 'port', 'protocol')) }) },
    }),
  }),
}
export const namespaces: Resource<Namespace> = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false }
export const endpointSlices: Resource<EndpointSlice> = {
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  namespaced: true,
  cached: ({ metadata, addressType, endpoints, ports }) => ({
    metadata: { ...identified(metadata), labels: pick(metadata.labels ?? {}, SERVICE_LABEL) },
    addressType,
    ...(endpoints && { endpoints: endpoints.map((one) => pick(one, 'addresses', 'conditions', 'targetRef')) }),
    ...(ports && { ports: ports.map((port) => pick(port, 'name', 'port', 'protocol')) }),
  }),
}
export const leases: Resource<Lease> = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true }
export const events: Resource<KubeEvent> = { group: 'events.k8s.io', version: 'v1', plural: 'events', kind: 'Event', namespaced: true }

/** The format of times in Leases and Events. They are for users; no decision depends on them. @param ms since 1970 */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}

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

/**
 * The form in which caches keep an object: the fields that the resource names, without the annotation in which kubectl repeats the whole object.
 */
export function cacheable<T extends KubeObject>(resource: Resource<T>, object: T): T {
  if (resource.cached) return { ...resource.cached(object), apiVersion: apiVersionOf(resource), kind: resource.kind } as T // T without fields that nobody reads
  const slim = normalized(resource, object)
  shareConditions(slim)
  const { annotations } = slim.metadata
  if (annotations?.[LAST_APPLIED] === undefined) return slim
  const { [LAST_APPLIED]: _lastApplied, ...kept } = annotations
  return { ...slim, metadata: { ...slim.metadata, annotations: kept } }
}

const shared = new SharedTexts()

/** Conditions of thousands of objects have the same words, which each parsed object would keep for itself. The object is fresh from the wire. */
function shareConditions(object: object): void {
  const { conditions } = (object as { readonly status?: { readonly conditions?: unknown } }).status ?? {}
  if (!Array.isArray(conditions)) return
  for (const condition of conditions as Array<Record<string, unknown> | null>)
    for (const [field, value] of Object.entries(condition ?? {}))
      if (condition && typeof value === 'string') condition[field] = shared.of(value)
}

/** The metadata by which a cache tells objects and their versions apart. */
function identified(metadata: ObjectMeta): ObjectMeta {
  return pick(metadata, 'name', 'namespace', 'uid', 'resourceVersion')
}

function pick<T extends object, K extends keyof T>(object: T, ...names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.filter((name) => name in object).map((name) => [name, object[name]])) as Pick<T, K>
}
