/**
 * The part of Kubernetes that reconcile code uses. Implementations: the real API (`raw-client.ts` + `reflector.ts`) and a
 * directory of manifests (`standalone/`). Objects are plain JSON, never typed classes, so unknown fields survive.
 */

/** The fields of metadata that the operator reads. */
export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
}

/** For garbage collection: Kubernetes deletes the child with its owner. */
export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

/** Any Kubernetes object. */
export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
}

/** A kind of object, and its place in the API. `T` types the objects, which the API server has validated except for their status. */
export interface Resource<T extends KubeObject = KubeObject> {
  /** '' for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
  /** The fields that caches keep, beside apiVersion and kind; default all. */
  cached?(object: T): Omit<T, 'apiVersion' | 'kind'>
  /** Never set: the property carries only the type. */
  readonly _type?: T
}

/** Namespace and name; namespace is '' for cluster-scoped objects. */
export interface ObjectRef {
  readonly namespace: string
  readonly name: string
}

/** One JSON-Patch operation (RFC 6902). */
export type PatchOperation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }

/** Preconditions, so that a delete affects only the intended object. */
export interface Preconditions {
  readonly uid?: string
  readonly resourceVersion?: string
}

/** How an object is created. */
export interface CreateOptions {
  readonly dryRun?: boolean
}

/** Calls that read or change objects. All reject with KubeError. */
export interface KubePort {
  /** A live read, past every cache. @returns undefined when there is no such object */
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T | undefined>
  /** All objects of one namespace, or of all namespaces (''): a live read, in pages. @param labelSelector `key=value`; default all objects */
  list<T extends KubeObject>(resource: Resource<T>, namespace: string, labelSelector?: string): Promise<readonly T[]>
  /** @param options.dryRun the server checks quota, admission and schema, and stores nothing */
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: CreateOptions): Promise<T>
  /** PUT; `metadata.resourceVersion` guards it. The answer is the metadata alone, since a full answer of a large object costs time. */
  update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Pick<KubeObject, 'metadata'>>
  /** JSON-Patch. A failed `test` is KubeError Conflict or Invalid. */
  patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, operations: readonly PatchOperation[]): Promise<T>
  /** Server-side apply of the whole status under our field manager; of the rest of `object` only name, namespace and uid count. */
  applyStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T>
  /** @returns 'absent' if there was no such object, which is not an error */
  remove<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, preconditions?: Preconditions): Promise<'deleted' | 'absent'>
}

/** A cache of one kind, kept current by a watch. Values are shared: never change them. */
export interface Informer<T extends KubeObject = KubeObject> {
  /**
   * Resolves when every namespace has its first list or was refused it, because a Role is missing. Check `isSynced` before an absent object
   * counts as deleted.
   */
  readonly synced: Promise<void>
  /** Whether the first list of a namespace is in. */
  isSynced(namespace: string): boolean
  get(ref: ObjectRef): T | undefined
  list(): Iterable<T>
  /** Called for every add, change and removal, with the object before and after (undefined = absent). Must only enqueue. */
  subscribe(listener: (before: T | undefined, after: T | undefined) => void): void
  /** Adds an index of the objects by the values that `valuesOf` returns. @throws Error if the name belongs to another function */
  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void
  /** Objects under a value of an index. @throws Error for an index that does not exist */
  byIndex(name: string, value: string): Iterable<T>
  /**
   * Frees the memory of an object that needs no more work. Nobody is notified, and its deletion will not be; a later change or list adds the
   * object again. Absent where the cache is the store itself.
   */
  drop?(ref: ObjectRef): void
}

/** Why a call failed, as one word for decisions. */
export type KubeErrorCode =
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Invalid'
  | 'Forbidden'
  | 'QuotaExceeded' // 403 by a ResourceQuota
  | 'AdmissionDenied' // by a ValidatingAdmissionPolicy or a webhook
  | 'Unauthorized'
  | 'Expired' // 410: the resource version is too old
  | 'NamespaceTerminating'
  | 'TooManyRequests'
  | 'Unreachable' // no usable answer: network, time-out, 5xx, or an API server that does not know a new kind yet
  | 'Other'

/** Details of a failed call beyond code, status and message. */
type KubeErrorDetails = Partial<Pick<KubeError, 'cause' | 'retryAfterSeconds' | 'namespace' | 'policy' | 'reason'>>

/** A failed call. The message names verb, resource, object and the server's reason, but never a body, which may hold a Secret. */
export class KubeError extends Error {
  override readonly name: string = 'KubeError'
  readonly code: KubeErrorCode
  /** HTTP status; 0 when there was no answer. */
  readonly status: number
  /** Seconds that the server asks to wait. */
  readonly retryAfterSeconds: number | undefined
  /** Namespace of the object that was asked for. */
  readonly namespace: string | undefined
  /** AdmissionDenied: name of the policy or webhook. */
  readonly policy: string | undefined
  /** The message of a quota, policy or webhook, safe to show: at most 300 characters, without Credentials. */
  readonly reason: string | undefined

  constructor(code: KubeErrorCode, status: number, message: string, details: KubeErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.status = status
    this.retryAfterSeconds = details.retryAfterSeconds
    this.namespace = details.namespace
    this.policy = details.policy
    this.reason = details.reason
  }
}

/** @returns whether `error` is a KubeError of one of these codes */
export function isKubeError(error: unknown, ...codes: readonly KubeErrorCode[]): error is KubeError {
  return error instanceof KubeError && (codes.length === 0 || codes.includes(error.code))
}

/** @returns ms that the API server asks to wait before the next try; undefined if it does not ask */
export function retryAfterMs(error: unknown): number | undefined {
  return isKubeError(error) && error.retryAfterSeconds !== undefined ? error.retryAfterSeconds * 1000 : undefined
}

/** apiVersion of the objects of a resource. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
}

/** `namespace/name`, the form used in queues and logs. */
export function refKey(ref: ObjectRef): string {
  return `${ref.namespace}/${ref.name}`
}

/** The name as a person reads it: without a slash for a cluster-scoped object. */
export function shownRef({ namespace, name }: ObjectRef): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

/** Namespace and name of an object. */
export function refOf(object: KubeObject): ObjectRef {
  return { namespace: object.metadata.namespace ?? '', name: object.metadata.name }
}

/** metadata.uid; '' for an object that the API has not stored yet. */
export function uidOf(object: KubeObject): string {
  return object.metadata.uid ?? ''
}

/** metadata.namespace; '' for a cluster-scoped object. */
export function namespaceOf(object: KubeObject): string {
  return object.metadata.namespace ?? ''
}

/** metadata.creationTimestamp in ms since 1970; 0 for an object that the API has not stored yet. */
export function createdMs(object: KubeObject): number {
  return Date.parse(object.metadata.creationTimestamp ?? '') || 0
}

/** Identifies one object, and no other object with the same name: for an apply, which must not carry a resourceVersion. */
export function identityOf({ metadata: { name, namespace, uid } }: KubeObject): ObjectMeta {
  return { name, ...(namespace === undefined ? {} : { namespace }), ...(uid === undefined ? {} : { uid }) }
}
