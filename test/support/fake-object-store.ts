import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

/** An object as JSON. The store reads only its metadata. */
export interface FakeObject {
  apiVersion?: string
  kind?: string
  metadata: FakeMeta
  [field: string]: unknown
}

interface FakeMeta {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  creationTimestamp?: string
  deletionTimestamp?: string
  generation?: number
  labels?: Record<string, string>
  finalizers?: string[]
  [field: string]: unknown
}

/** One change, as a watch reports it. */
export interface FakeChange {
  readonly rv: number
  readonly collection: string
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: FakeObject
}

/** A refusal, to be sent as a Status. */
export class FakeRefusal extends Error {
  readonly status: number
  readonly reason: string

  constructor(status: number, reason: string, message = reason) {
    super(message)
    this.status = status
    this.reason = reason
  }
}

interface Operation {
  op: string
  path: string
  value?: unknown
}

/** Objects with the rules of the real API that clients rely on: one growing resourceVersion, optimistic locking, finalizers, preconditions. */
export class FakeObjectStore {
  readonly #objects = new Map<string, FakeObject>()
  readonly #listeners = new Set<(change: FakeChange) => void>()
  #history: FakeChange[] = []
  #version = 100
  #compacted = 0

  get version(): number {
    return this.#version
  }

  /** Forgets all history: an older watch or continue token is answered with 410. */
  compact(): void {
    this.#history = []
    this.#compacted = this.#version
  }

  /** Lowers the version, as a restore of etcd from a backup does: versions continue from a lower number. */
  rewind(version: number): void {
    this.#version = version
    this.#history = []
    this.#compacted = 0
  }

  onChange(listener: (change: FakeChange) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** @throws FakeRefusal 410 when the history does not reach back that far */
  changesAfter(version: number): readonly FakeChange[] {
    if (version < this.#compacted) throw new FakeRefusal(410, 'Expired', `too old resource version: ${version} (${this.#compacted})`)
    return this.#history.filter((change) => change.rv > version)
  }

  list(collection: string, namespace: string): FakeObject[] {
    const prefix = `${collection} ${namespace === '' ? '' : `${namespace}/`}`
    return [...this.#objects.entries()]
      .filter(([key]) => key.startsWith(prefix))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, object]) => object)
  }

  get(collection: string, namespace: string, name: string): FakeObject {
    const object = this.#objects.get(keyOf(collection, namespace, name))
    if (!object) throw new FakeRefusal(404, 'NotFound')
    return object
  }

  create(collection: string, namespace: string, object: FakeObject): FakeObject {
    const key = keyOf(collection, namespace, object.metadata.name)
    if (this.#objects.has(key)) throw new FakeRefusal(409, 'AlreadyExists')
    const created: FakeMeta = { ...object.metadata, uid: randomUUID(), generation: 1, creationTimestamp: new Date(0).toISOString() }
    if (namespace !== '') created.namespace = namespace
    return this.#store('ADDED', collection, key, { ...object, metadata: created })
  }

  update(collection: string, namespace: string, name: string, object: FakeObject): FakeObject {
    const current = this.get(collection, namespace, name)
    const wanted = object.metadata.resourceVersion
    if (wanted !== undefined && wanted !== current.metadata.resourceVersion) throw new FakeRefusal(409, 'Conflict')
    return this.#replace(collection, namespace, name, object)
  }

  patch(collection: string, namespace: string, name: string, operations: readonly Operation[]): FakeObject {
    const copy = structuredClone(this.get(collection, namespace, name))
    for (const operation of operations) applyOperation(copy, operation)
    return this.#replace(collection, namespace, name, copy)
  }

  applyStatus(collection: string, namespace: string, name: string, applied: FakeObject): FakeObject {
    const current = this.get(collection, namespace, name)
    if (applied.metadata.uid !== undefined && applied.metadata.uid !== current.metadata.uid) throw new FakeRefusal(409, 'Conflict')
    return this.#replace(collection, namespace, name, { ...current, status: applied['status'] })
  }

  remove(collection: string, namespace: string, name: string, preconditions: { uid?: string; resourceVersion?: string } = {}): FakeObject {
    const current = this.get(collection, namespace, name)
    const { uid, resourceVersion } = preconditions
    if (uid !== undefined && uid !== current.metadata.uid) throw new FakeRefusal(409, 'Conflict')
    if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion) throw new FakeRefusal(409, 'Conflict')
    const held = (current.metadata.finalizers ?? []).length > 0
    if (!held) return this.#store('DELETED', collection, keyOf(collection, namespace, name), current)
    return this.#replace(collection, namespace, name, {
      ...current,
      metadata: { ...current.metadata, deletionTimestamp: current.metadata.deletionTimestamp ?? new Date(0).toISOString() },
    })
  }

  #replace(collection: string, namespace: string, name: string, object: FakeObject): FakeObject {
    const key = keyOf(collection, namespace, name)
    const current = this.get(collection, namespace, name)
    const { resourceVersion, uid, creationTimestamp, generation, namespace: its } = current.metadata
    const next: FakeObject = {
      ...object,
      metadata: { ...object.metadata, ...defined({ resourceVersion, uid, creationTimestamp, generation, namespace: its }) },
    }
    if (isDeepStrictEqual(next, current)) return current // a write that changes nothing keeps the version
    if (next.metadata.deletionTimestamp !== undefined && (next.metadata.finalizers ?? []).length === 0) {
      return this.#store('DELETED', collection, key, next)
    }
    if (!isDeepStrictEqual(next['spec'], current['spec'])) next.metadata.generation = (generation ?? 0) + 1
    return this.#store('MODIFIED', collection, key, next)
  }

  #store(type: FakeChange['type'], collection: string, key: string, object: FakeObject): FakeObject {
    this.#version += 1
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } }
    if (type === 'DELETED') this.#objects.delete(key)
    else this.#objects.set(key, stored)
    const change = { rv: this.#version, collection, type, object: stored }
    this.#history.push(change)
    for (const listener of this.#listeners) listener(change)
    return stored
  }
}

function keyOf(collection: string, namespace: string, name: string): string {
  return `${collection} ${namespace}/${name}`
}

function defined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

/** RFC 6902, as far as the operator uses it: objects and the ends of arrays. */
function applyOperation(root: object, { op, path, value }: Operation): void {
  const parts = path.split('/').slice(1).map(unescaped)
  const last = parts.pop() ?? ''
  const holder = holderOf(root, parts)
  const isThere = last in holder
  if (op === 'test' && !isDeepStrictEqual(holder[last], value)) throw new FakeRefusal(422, 'Invalid')
  if ((op === 'remove' || op === 'replace') && !isThere) throw new FakeRefusal(422, 'Invalid')
  if (op === 'remove') removeFrom(holder, last)
  if (op === 'replace') holder[last] = value
  if (op === 'add') addTo(holder, last, value)
}

function holderOf(root: object, parts: readonly string[]): Record<string, unknown> {
  let holder = root as Record<string, unknown>
  for (const part of parts) {
    const next = holder[part]
    if (typeof next !== 'object' || next === null) throw new FakeRefusal(422, 'Invalid')
    holder = next as Record<string, unknown>
  }
  return holder
}

function removeFrom(parent: Record<string, unknown> | unknown[], key: string): void {
  if (Array.isArray(parent)) parent.splice(Number(key), 1)
  else delete parent[key]
}

function addTo(parent: Record<string, unknown> | unknown[], key: string, value: unknown): void {
  if (Array.isArray(parent)) parent.splice(key === '-' ? parent.length : Number(key), 0, value)
  else parent[key] = value
}

function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}
