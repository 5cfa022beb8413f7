/**
 * Kubernetes objects in memory, with the rules of the real API server as far as reconcile code can notice them: the behaviour suite
 * `test/contract/kube-port.suite.ts` runs on both. The store knows no kind by name. The rules for Secrets and for our custom resources (a
 * status of their own, a generation) are in `prepare*` below.
 */
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  KubeError,
  refKey,
  refOf,
  type CreateOptions,
  type Informer,
  type KubeErrorCode,
  type KubeObject,
  type KubePort,
  type ObjectMeta,
  type ObjectRef,
  type PatchOperation,
  type Preconditions,
  type Resource,
} from '#kube/port.ts'
import { API_GROUP } from '#api/metadata.ts'
import { applyJsonPatch, PatchError } from './json-patch.ts'
import { ObjectInformer } from './object-informer.ts'

/** The change of one object in one step; `after` undefined = removed. */
export interface StoreChange {
  readonly resource: Resource
  readonly ref: ObjectRef
  readonly before: KubeObject | undefined
  readonly after: KubeObject | undefined
}

/** What the store needs. */
export interface ObjectStoreOptions {
  readonly now?: () => number
  readonly newUid?: () => string
  /** Called before a change is visible. If it throws, nothing changes and the call rejects as Unreachable. */
  readonly persist?: (change: StoreChange) => void
}

/** One stored object, for `restore`. */
export interface StoredObject {
  readonly resource: Resource
  readonly object: KubeObject
}

type Table = Map<string, KubeObject>
type Loose = KubeObject & { readonly spec?: unknown; readonly status?: unknown; readonly data?: unknown; readonly stringData?: unknown }

/** KubePort in memory, and its informers. The returned objects are frozen. */
export class ObjectStore implements KubePort {
  readonly #now: () => number
  readonly #newUid: () => string
  readonly #persist: (change: StoreChange) => void
  readonly #tables = new Map<string, { resource: Resource; objects: Table; informer: ObjectInformer }>()
  /** uid → namespace of every object, for garbage collection. */
  readonly #homes = new Map<string, string>()
  #version = 0

  constructor(options: ObjectStoreOptions = {}) {
    this.#now = options.now ?? Date.now
    this.#newUid = options.newUid ?? randomUUID
    this.#persist = options.persist ?? (() => undefined)
  }

  /** Restores the objects of an earlier process before the first use of the store; then collects children whose owners were deleted. */
  restore(stored: readonly StoredObject[]): void {
    for (const { resource, object } of stored) {
      this.#version = Math.max(this.#version, Number(object.metadata.resourceVersion ?? 0))
      this.#table(resource).objects.set(refKey(refOf(object)), deepFreeze(object))
      this.#homes.set(object.metadata.uid ?? '', object.metadata.namespace ?? '')
    }
    for (const { resource, object } of stored) this.#collectIfOrphan(resource, object)
  }

  /** The cache of one kind, which is never behind. Listeners get every present object first. */
  informer<T extends KubeObject>(resource: Resource<T>): Informer<T> {
    return this.#table(resource).informer as unknown as Informer<T> // the table only has objects that were created as T
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T | undefined> {
    const present = this.#present(resource, ref)
    return present === undefined ? undefined : typed(resource, present)
  }

  async list<T extends KubeObject>(resource: Resource<T>, namespace: string, labelSelector = ''): Promise<readonly T[]> {
    const all = [...this.#table(resource).objects.values()]
    const within = namespace === '' ? all : all.filter((object) => object.metadata.namespace === namespace)
    const chosen = within.filter(({ metadata }) => hasLabels(metadata, labelSelector))
    return chosen.map((object) => typed(resource, object))
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options: CreateOptions = {}): Promise<T> {
    const ref = refOf(object)
    if (this.#present(resource, ref) !== undefined) throw refused('AlreadyExists', 409, 'create', resource, ref, 'it exists already')
    const { deletionTimestamp: _ignored, ...given } = object.metadata
    const metadata: ObjectMeta = {
      ...given,
      uid: this.#newUid(),
      creationTimestamp: this.#timestamp(),
      ...(hasStatus(resource) ? { generation: 1 } : {}),
    }
    if (options.dryRun) return typed(resource, deepFreeze(plain({ ...prepare(resource, object), metadata })))
    const created = this.#store(resource, undefined, { ...prepare(resource, object), metadata })
    this.#collectIfOrphan(resource, created)
    return typed(resource, created)
  }

  async update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const ref = refOf(object)
    const before = this.#require('update', resource, ref)
    if (object.metadata.resourceVersion === undefined && hasStatus(resource)) {
      throw refused('Invalid', 422, 'update', resource, ref, 'metadata.resourceVersion: must be specified for an update')
    }
    assertSame('update', resource, before, object.metadata)
    return typed(resource, this.#replace('update', resource, before, object))
  }

  replace<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Pick<KubeObject, 'metadata'>> {
    return this.update(resource, object)
  }

  async patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, operations: readonly PatchOperation[]): Promise<T> {
    const before = this.#require('patch', resource, ref)
    try {
      return typed(resource, this.#replace('patch', resource, before, applyJsonPatch(before, operations)))
    } catch (error) {
      if (error instanceof PatchError) throw refused('Invalid', 422, 'patch', resource, ref, error.message)
      throw error
    }
  }

  async applyStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const before = this.#require('apply status of', resource, refOf(object))
    assertSame('apply status of', resource, before, object.metadata)
    const { status: _old, ...rest } = before as Loose
    const status = plain((object as Loose).status)
    return typed(resource, this.#store(resource, before, { ...rest, ...(status === undefined ? {} : { status }) }))
  }

  async remove<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    preconditions: Preconditions = {},
  ): Promise<'deleted' | 'absent'> {
    const before = this.#present(resource, ref)
    if (before === undefined) return 'absent'
    assertSame('delete', resource, before, preconditions)
    if ((before.metadata.finalizers ?? []).length === 0) this.#drop(resource, before)
    else if (before.metadata.deletionTimestamp === undefined) this.#markDeleted(resource, before)
    return 'deleted'
  }

  #replace(verb: string, resource: Resource, before: KubeObject, wanted: KubeObject): KubeObject {
    const merged = this.#withOwnMetadata(resource, before, prepare(resource, wanted, before))
    const finalizers = merged.metadata.finalizers ?? []
    if (before.metadata.deletionTimestamp !== undefined) {
      const known = before.metadata.finalizers ?? []
      const added = finalizers.find((name) => !known.includes(name))
      if (added !== undefined)
        throw refused(
          'Invalid',
          422,
          verb,
          resource,
          refOf(before),
          `finalizer ${added} cannot be added to an object that is being deleted`,
        )
      if (finalizers.length === 0) {
        this.#drop(resource, before)
        return deepFreeze(merged)
      }
    }
    const stored = this.#store(resource, before, merged)
    this.#collectIfOrphan(resource, stored)
    return stored
  }

  /** Sets the metadata that a client cannot change, and the generation, which counts changes outside of metadata and status. */
  #withOwnMetadata(resource: Resource, before: KubeObject, wanted: KubeObject): KubeObject {
    const { name, namespace, uid, creationTimestamp, deletionTimestamp, generation } = before.metadata
    const own = { name, namespace, uid, creationTimestamp, deletionTimestamp }
    const next = hasStatus(resource) ? { generation: (generation ?? 0) + (sameContent(before, wanted) ? 0 : 1) } : {}
    return { ...wanted, metadata: plain<ObjectMeta>(Object.assign({}, wanted.metadata, own, next)) } // plain drops undefined fields
  }

  #markDeleted(resource: Resource, before: KubeObject): void {
    const generation = before.metadata.generation
    const marked = { ...before.metadata, deletionTimestamp: this.#timestamp() }
    this.#store(resource, before, { ...before, metadata: generation === undefined ? marked : { ...marked, generation: generation + 1 } })
  }

  /** Stores a new state under the next version. Like etcd, does not write an equal one. */
  #store(resource: Resource, before: KubeObject | undefined, wanted: KubeObject): KubeObject {
    const resourceVersion = before?.metadata.resourceVersion ?? ''
    const unchanged = plain({ ...wanted, metadata: { ...wanted.metadata, resourceVersion } })
    if (before !== undefined && isDeepStrictEqual(unchanged, before)) return before
    const after = plain({ ...wanted, metadata: { ...wanted.metadata, resourceVersion: String(this.#version + 1) } })
    this.#commit({ resource, ref: refOf(after), before, after })
    return after
  }

  #drop(resource: Resource, before: KubeObject): void {
    this.#commit({ resource, ref: refOf(before), before, after: undefined })
    const { uid } = before.metadata
    for (const { resource: kind, objects } of [...this.#tables.values()]) {
      const children = [...objects.values()].filter((object) => object.metadata.ownerReferences?.some((owner) => owner.uid === uid))
      for (const child of children) this.#collectIfOrphan(kind, child)
    }
  }

  /** Garbage collection: deletes an object with owners if none of them exists (in the same namespace or cluster-scoped). */
  #collectIfOrphan(resource: Resource, object: KubeObject): void {
    if (object.metadata.deletionTimestamp !== undefined || !isOrphan(object, this.#homes)) return
    if ((object.metadata.finalizers ?? []).length > 0) this.#markDeleted(resource, object)
    else this.#drop(resource, object)
  }

  #commit(change: StoreChange): void {
    const { resource, ref, before, after } = change
    try {
      this.#persist(change)
    } catch (cause) {
      throw refused('Unreachable', 0, 'store', resource, ref, cause instanceof Error ? cause.message : 'it could not be written', cause)
    }
    this.#version += 1
    const table = this.#table(resource)
    if (after === undefined) table.objects.delete(refKey(ref))
    else table.objects.set(refKey(ref), deepFreeze(after))
    if (after === undefined) this.#homes.delete(before?.metadata.uid ?? '')
    else this.#homes.set(after.metadata.uid ?? '', after.metadata.namespace ?? '')
    table.informer.notify(before, after)
  }

  #table(resource: Resource): { resource: Resource; objects: Table; informer: ObjectInformer } {
    const id = `${resource.group}/${resource.plural}`
    const known = this.#tables.get(id)
    if (known !== undefined) return known
    const objects: Table = new Map()
    const table = { resource, objects, informer: new ObjectInformer(objects) }
    this.#tables.set(id, table)
    return table
  }

  #present(resource: Resource, ref: ObjectRef): KubeObject | undefined {
    return this.#table(resource).objects.get(refKey(ref))
  }

  #require(verb: string, resource: Resource, ref: ObjectRef): KubeObject {
    const present = this.#present(resource, ref)
    if (present === undefined) throw refused('NotFound', 404, verb, resource, ref, 'there is no such object')
    return present
  }

  #timestamp(): string {
    return new Date(this.#now()).toISOString().replace(/\.\d+Z$/, 'Z') // metav1.Time has whole seconds
  }
}

/** Our custom resources have the status subresource and with it a generation; of the built-in kinds we only use those without. */
/** @param selector `key=value`; '' selects all */
function hasLabels({ labels }: ObjectMeta, selector: string): boolean {
  const [key = '', value] = selector.split('=')
  return value === undefined || labels?.[key] === value
}

function hasStatus(resource: Resource): boolean {
  return resource.group === API_GROUP
}

/** The part of a write that the main endpoint accepts: no status of custom resources, `stringData` folded into `data`. */
function prepare(resource: Resource, wanted: KubeObject, before?: KubeObject): KubeObject {
  const { status, stringData, ...rest } = plain(wanted) as Loose
  if (hasStatus(resource)) {
    const kept = (before as Loose | undefined)?.status
    return kept === undefined ? rest : ({ ...rest, status: kept } as KubeObject)
  }
  const encoded = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(String(text)).toString('base64')])
  const data = encoded.length === 0 ? {} : { data: { ...Object(rest.data ?? {}), ...Object.fromEntries(encoded) } }
  return { ...rest, ...(status === undefined ? {} : { status }), ...data }
}

function sameContent(before: KubeObject, wanted: KubeObject): boolean {
  const { metadata: _a, status: _b, ...left } = before as Loose
  const { metadata: _c, status: _d, ...right } = wanted as Loose
  return isDeepStrictEqual(left, right)
}

function assertSame(verb: string, resource: Resource, present: KubeObject, expected: Preconditions): void {
  const { uid, resourceVersion } = present.metadata
  if (expected.uid !== undefined && expected.uid !== uid)
    throw refused('Conflict', 409, verb, resource, refOf(present), 'it is another object: the uid differs')
  if (expected.resourceVersion !== undefined && expected.resourceVersion !== resourceVersion) {
    throw refused('Conflict', 409, verb, resource, refOf(present), 'it has been changed since')
  }
}

function isOrphan(object: KubeObject, homes: ReadonlyMap<string, string>): boolean {
  const namespace = object.metadata.namespace ?? ''
  const owners = object.metadata.ownerReferences ?? []
  const isAbsent = (home: string | undefined): boolean => home === undefined || (home !== '' && home !== namespace)
  return owners.length > 0 && owners.every(({ uid }) => isAbsent(homes.get(uid)))
}

/** A copy as it would come back over the wire: without undefined fields and without objects shared with the caller. */
function plain<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T)
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}

function typed<T extends KubeObject>(_resource: Resource<T>, object: KubeObject): T {
  return object as T // the table of a resource only has objects of T: writers are typed, manifests validated
}

function refused(code: KubeErrorCode, status: number, ...[verb, resource, ref, reason, cause]: RefusalParts): KubeError {
  return new KubeError(code, status, `${verb} ${resource.plural} ${refKey(ref)}: ${reason}`, { cause, namespace: ref.namespace })
}

type RefusalParts = [verb: string, resource: Resource, ref: ObjectRef, reason: string, cause?: unknown]
