/**
 * Kubernetes objects in memory, with the rules of the real API server as far as reconcile code can notice them: the behaviour suite
 * `test/contract/kube-port.suite.ts` runs on both. The store knows no kind by name. The rules for Secrets and for our custom resources (a
 * status of their own, a generation) are in `prepare*` below.
 */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { API_GROUP } from '#api/metadata.ts'
import { type ChangeListener, ObjectCache } from '#kube/object-cache.ts'
import { KubeError, namespaceOf, refKey, refOf, uidOf } from '#kube/port.ts'
import type { CreateOptions, Informer, KubeObject, KubePort, ObjectMeta, ObjectRef } from '#kube/port.ts'
import type { PatchOperation, Preconditions, Resource } from '#kube/port.ts'
import { messageOf } from '#platform/message-of.ts'
import { applyJsonPatch, PatchError } from './json-patch.ts'

/** The change of one object in one step; `after` undefined = removed. */
export interface StoreChange {
  readonly resource: Resource
  readonly ref: ObjectRef
  readonly before: KubeObject | undefined
  readonly after: KubeObject | undefined
}

export interface ObjectStoreOptions {
  readonly now?: () => number
  readonly newUid?: () => string
  /** Called before a change is visible. If it throws, nothing changes and the call rejects as Unreachable. */
  readonly persist?: (change: StoreChange) => void
}

export interface StoredObject {
  readonly resource: Resource
  readonly object: KubeObject
}

type Loose = KubeObject & { readonly status?: unknown }

/** KubePort in memory, and its informers. The returned objects are frozen. */
export class ObjectStore implements KubePort {
  readonly #now: () => number
  readonly #newUid: () => string
  readonly #persist: (change: StoreChange) => void
  readonly #tables = new Map<string, ObjectTable>()
  /** uid → namespace of every object, for garbage collection. */
  readonly #homes = new Map<string, string>()
  #version = 0

  constructor({ now = Date.now, newUid = randomUUID, persist = () => undefined }: ObjectStoreOptions = {}) {
    this.#now = now
    this.#newUid = newUid
    this.#persist = persist
  }

  /** Restores the objects of an earlier process before the first use of the store; then collects children whose owners were deleted. */
  restore(stored: readonly StoredObject[]): void {
    for (const { resource, object } of stored) {
      this.#version = Math.max(this.#version, Number(object.metadata.resourceVersion ?? 0))
      this.#table(resource).put(deepFreeze(object))
      this.#homes.set(uidOf(object), namespaceOf(object))
    }
    for (const { resource, object } of stored) this.#collectIfOrphan(resource, object)
  }

  /** The cache of one kind, which is never behind. Listeners get every present object first. */
  informer<T extends KubeObject>(resource: Resource<T>): Informer<T> {
    return this.#table(resource) as Informer as Informer<T> // the table only has objects that were created as T
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T | undefined> {
    return this.informer(resource).get(ref)
  }

  async list<T extends KubeObject>(resource: Resource<T>, namespace: string, labelSelector = ''): Promise<readonly T[]> {
    const [key = '', value] = labelSelector.split('=')
    const isAsked = ({ metadata }: T): boolean =>
      (namespace === '' || metadata.namespace === namespace) && (value === undefined || metadata.labels?.[key] === value)
    return [...this.informer(resource).list()].filter(isAsked)
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options: CreateOptions = {}): Promise<T> {
    const call = { verb: 'create', resource, ref: refOf(object) }
    if (this.#table(resource).get(call.ref) !== undefined) throw refused('AlreadyExists', call, 'it exists already')
    const { deletionTimestamp: _ignored, ...given } = object.metadata
    const metadata = { ...given, uid: this.#newUid(), creationTimestamp: this.#timestamp(), ...(hasStatus(resource) && { generation: 1 }) }
    const wanted = { ...prepare(resource, object), metadata }
    if (options.dryRun) return deepFreeze(plain(wanted))
    const created = this.#store(resource, undefined, wanted)
    this.#collectIfOrphan(resource, created)
    return created
  }

  async update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const call = { verb: 'update', resource, ref: refOf(object) }
    const before = this.#require(call)
    if (object.metadata.resourceVersion === undefined && hasStatus(resource))
      throw refused('Invalid', call, 'metadata.resourceVersion: must be specified for an update')
    assertSame(call, before, object.metadata)
    return this.#replace(call, before, object)
  }

  async patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, operations: readonly PatchOperation[]): Promise<T> {
    const call = { verb: 'patch', resource, ref }
    const before = this.#require(call)
    try {
      return this.#replace(call, before, applyJsonPatch(before, operations))
    } catch (error) {
      if (error instanceof PatchError) throw refused('Invalid', call, error.message)
      throw error
    }
  }

  async applyStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const call = { verb: 'apply status of', resource, ref: refOf(object) }
    const before = this.#require(call)
    assertSame(call, before, object.metadata)
    return this.#store(resource, before, { ...before, status: (object as Loose).status })
  }

  async remove<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    preconditions: Preconditions = {},
  ): Promise<'deleted' | 'absent'> {
    const before = this.#table(resource).get(ref)
    if (before === undefined) return 'absent'
    assertSame({ verb: 'delete', resource, ref }, before, preconditions)
    if (before.metadata.deletionTimestamp === undefined || finalizersOf(before).length === 0) this.#delete(resource, before)
    return 'deleted'
  }

  #replace<T extends KubeObject>(call: Call<T>, before: T, wanted: T): T {
    const { resource } = call
    const merged = withOwnMetadata(resource, before, prepare(resource, wanted, before))
    if (before.metadata.deletionTimestamp !== undefined) {
      const added = finalizersOf(merged).find((name) => !finalizersOf(before).includes(name))
      if (added !== undefined) throw refused('Invalid', call, `finalizer ${added} cannot be added to an object that is being deleted`)
      if (finalizersOf(merged).length === 0) {
        this.#drop(resource, before)
        return deepFreeze(merged)
      }
    }
    const stored = this.#store(resource, before, merged)
    this.#collectIfOrphan(resource, stored)
    return stored
  }

  /** Removes an object, or marks it as long as it has finalizers. */
  #delete(resource: Resource, before: KubeObject): void {
    if (finalizersOf(before).length === 0) return this.#drop(resource, before)
    const { generation } = before.metadata
    const mark = { deletionTimestamp: this.#timestamp(), ...(generation !== undefined && { generation: generation + 1 }) }
    this.#store(resource, before, { ...before, metadata: { ...before.metadata, ...mark } })
  }

  /** Stores a new state under the next version. Like etcd, does not write an equal one. */
  #store<T extends KubeObject>(resource: Resource<T>, before: T | undefined, wanted: T): T {
    const at = (resourceVersion: string): T => plain({ ...wanted, metadata: { ...wanted.metadata, resourceVersion } })
    if (before !== undefined && isDeepStrictEqual(at(before.metadata.resourceVersion ?? ''), before)) return before
    const after = at(String(this.#version + 1))
    this.#commit({ resource, ref: refOf(after), before, after })
    return after
  }

  #drop(resource: Resource, before: KubeObject): void {
    this.#commit({ resource, ref: refOf(before), before, after: undefined })
    for (const table of [...this.#tables.values()]) {
      const children = [...table.list()].filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === before.metadata.uid))
      for (const child of children) this.#collectIfOrphan(table.resource, child)
    }
  }

  /** Garbage collection: deletes an object with owners if none of them exists (in the same namespace or cluster-scoped). */
  #collectIfOrphan(resource: Resource, object: KubeObject): void {
    const { deletionTimestamp, ownerReferences: owners = [] } = object.metadata
    const exists = ({ uid }: { readonly uid: string }): boolean => {
      const home = this.#homes.get(uid)
      return home !== undefined && (home === '' || home === namespaceOf(object))
    }
    if (deletionTimestamp === undefined && owners.length > 0 && !owners.some(exists)) this.#delete(resource, object)
  }

  #commit(change: StoreChange): void {
    const { resource, ref, before, after } = change
    try {
      this.#persist(change)
    } catch (cause) {
      throw refused('Unreachable', { verb: 'store', resource, ref }, messageOf(cause), cause)
    }
    this.#version += 1
    if (before) this.#homes.delete(uidOf(before))
    if (after) this.#homes.set(uidOf(after), namespaceOf(after))
    if (after) this.#table(resource).put(deepFreeze(after))
    else if (before) this.#table(resource).remove(before)
  }

  #table(resource: Resource): ObjectTable {
    const id = `${resource.group}/${resource.plural}`
    const table = this.#tables.get(id) ?? new ObjectTable(resource)
    this.#tables.set(id, table)
    return table
  }

  #require<T extends KubeObject>({ verb, resource, ref }: Call<T>): T {
    const present = this.informer(resource).get(ref)
    if (present === undefined) throw refused('NotFound', { verb, resource, ref }, 'there is no such object')
    return present
  }

  #timestamp(): string {
    return new Date(this.#now()).toISOString().replace(/\.\d+Z$/, 'Z') // metav1.Time has whole seconds
  }
}

/** The objects of one kind. As an informer it is never behind, because it is the store itself. */
class ObjectTable extends ObjectCache<KubeObject> implements Informer {
  readonly synced = Promise.resolve()
  readonly resource: Resource

  constructor(resource: Resource) {
    super((error) => {
      throw error
    })
    this.resource = resource
  }

  isSynced(): boolean {
    return true
  }

  override subscribe(listener: ChangeListener<KubeObject>): void {
    super.subscribe(listener)
    for (const object of [...this.list()]) listener(undefined, object)
  }
}

/** Our custom resources have the status subresource and with it a generation; of the built-in kinds we only use those without. */
function hasStatus(resource: Resource): boolean {
  return resource.group === API_GROUP
}

/** The part of a write that the main endpoint accepts: no status of custom resources. */
function prepare<T extends KubeObject>(resource: Resource, wanted: T, before?: T): T {
  return plain(hasStatus(resource) ? { ...wanted, status: (before as Loose | undefined)?.status } : wanted)
}

/** Sets the metadata that a client cannot change, and the generation, which counts changes outside of metadata and status. */
function withOwnMetadata<T extends KubeObject>(resource: Resource, before: T, wanted: T): T {
  const { name, namespace, uid, creationTimestamp, deletionTimestamp, generation = 0 } = before.metadata
  const own = { name, namespace, uid, creationTimestamp, deletionTimestamp }
  const next = hasStatus(resource)
    ? { generation: isDeepStrictEqual(contentOf(before), contentOf(wanted)) ? generation : generation + 1 }
    : {}
  return { ...wanted, metadata: plain<ObjectMeta>(Object.assign({}, wanted.metadata, own, next)) } // plain drops undefined fields
}

function contentOf(object: KubeObject): object {
  const { metadata: _metadata, status: _status, ...content } = object as Loose
  return content
}

function finalizersOf({ metadata }: KubeObject): readonly string[] {
  return metadata.finalizers ?? []
}

/** A call, for the message of its refusal. */
interface Call<T extends KubeObject = KubeObject> {
  readonly verb: string
  readonly resource: Resource<T>
  readonly ref: ObjectRef
}

function assertSame(call: Call, { metadata }: KubeObject, { uid, resourceVersion }: Preconditions): void {
  if (uid !== undefined && uid !== metadata.uid) throw refused('Conflict', call, 'it is another object: the uid differs')
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
    throw refused('Conflict', call, 'it has been changed since')
}

const HTTP_STATUS = { AlreadyExists: 409, Conflict: 409, Invalid: 422, NotFound: 404, Unreachable: 0 } as const

function refused(code: keyof typeof HTTP_STATUS, { verb, resource, ref }: Call, reason: string, cause?: unknown): KubeError {
  const message = `${verb} ${resource.plural} ${refKey(ref)}: ${reason}`
  return new KubeError(code, HTTP_STATUS[code], message, { cause, namespace: ref.namespace })
}

/** A copy as it would come back over the wire: without undefined fields and without objects shared with the caller. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}
