import { namespaceOf, refKey, refOf, type KubeObject, type ObjectRef } from './port.ts'

/** Called for every change, with the object before and after. */
export type ChangeListener<T> = (before: T | undefined, after: T | undefined) => void

/** The objects of one kind, with indexes and listeners. An event that is older than the present object changes nothing. */
export class ObjectCache<T extends KubeObject> {
  readonly #objects = new Map<string, T>()
  readonly #listeners: Array<ChangeListener<T>> = []
  readonly #indexes = new Map<string, ObjectIndex<T>>()
  readonly #onListenerError: (error: unknown) => void

  /** @param onListenerError called when a listener threw; the cache has the event, and the other listeners still run */
  constructor(onListenerError: (error: unknown) => void) {
    this.#onListenerError = onListenerError
  }

  get(ref: ObjectRef): T | undefined {
    return this.#objects.get(refKey(ref))
  }

  list(): Iterable<T> {
    return this.#objects.values()
  }

  subscribe(listener: ChangeListener<T>): void {
    this.#listeners.push(listener)
  }

  /** Indexes all objects, present and future, once. @throws Error if the name belongs to another function */
  addIndex(name: string, valuesOf: IndexFunction<T>): void {
    const taken = this.#indexes.get(name)
    if (taken?.valuesOf === valuesOf) return
    if (taken) throw new Error(`the index ${name} was added twice, by two functions`)
    const index = new ObjectIndex(valuesOf)
    for (const object of this.list()) index.insert(object)
    this.#indexes.set(name, index)
  }

  /** Objects that an index has under a value. @throws Error for an index that does not exist */
  byIndex(name: string, value: string): Iterable<T> {
    const index = this.#indexes.get(name)
    if (!index) throw new Error(`there is no index ${name}`)
    return index.get(value)
  }

  /**
   * Replaces all objects of a namespace ('' = all) by a list. Objects that the list lacks count as deleted. The list wins even if it is older
   * (a restored etcd).
   */
  replace(objects: readonly T[], namespace = ''): void {
    const listed = new Set(objects.map(keyOf))
    for (const [key, object] of this.#objects) {
      if (listed.has(key) || (namespace !== '' && namespaceOf(object) !== namespace)) continue
      this.remove(object)
    }
    for (const object of objects) this.#set(object)
  }

  /** An add or a change. */
  put(object: T): void {
    const before = this.get(refOf(object))
    if (!isOlderVersion(object.metadata.resourceVersion, before?.metadata.resourceVersion)) this.#set(object)
  }

  /** A deletion; `object` is the last state, under the resourceVersion of the deletion itself. */
  remove(object: KubeObject): void {
    const key = keyOf(object)
    const before = this.#objects.get(key)
    if (!before || isOlderVersion(object.metadata.resourceVersion, before.metadata.resourceVersion)) return
    this.#objects.delete(key)
    this.#notify(before, undefined)
  }

  /** Removes an object from memory without notifying the listeners. */
  forget(ref: ObjectRef): void {
    const object = this.get(ref)
    if (object === undefined) return
    this.#objects.delete(refKey(ref))
    for (const index of this.#indexes.values()) index.remove(object)
  }

  #set(object: T): void {
    const key = keyOf(object)
    const before = this.#objects.get(key)
    const isSame = before?.metadata.uid === object.metadata.uid
    if (before && isSame && before.metadata.resourceVersion === object.metadata.resourceVersion) return
    this.#objects.set(key, object)
    if (!before || isSame) return this.#notify(before, object)
    this.#notify(before, undefined) // deleted and created again in between: two different objects that share a name
    this.#notify(undefined, object)
  }

  #notify(before: T | undefined, after: T | undefined): void {
    for (const index of this.#indexes.values()) {
      if (before) index.remove(before)
      if (after) index.insert(after)
    }
    for (const listener of this.#listeners) {
      try {
        listener(before, after)
      } catch (error) {
        this.#onListenerError(error)
      }
    }
  }
}

function keyOf(object: KubeObject): string {
  return refKey(refOf(object))
}

/** Resource versions of one kind are decimal and grow (Kubernetes KEP-5504); any other version never counts as older. */
export function isOlderVersion(version: string | undefined, than: string | undefined): boolean {
  if (!version || !than || !/^\d+$/.test(version) || !/^\d+$/.test(than)) return false
  return version.length === than.length ? version < than : version.length < than.length
}

/** The values under which an index finds an object. */
type IndexFunction<T> = (object: T) => readonly string[]

/** Objects by the values that a function gives, as one index of client-go's Indexer. */
class ObjectIndex<T extends KubeObject> {
  readonly valuesOf: IndexFunction<T>
  /** A value with one object, as nearly always, holds the object alone: a map for each of a hundred thousand uids would need much memory. */
  readonly #entries = new Map<string, T | Map<string, T>>()

  constructor(valuesOf: IndexFunction<T>) {
    this.valuesOf = valuesOf
  }

  get(value: string): Iterable<T> {
    const found = this.#entries.get(value)
    return found instanceof Map ? found.values() : found === undefined ? [] : [found]
  }

  insert(object: T): void {
    for (const value of this.valuesOf(object)) {
      const found = this.#entries.get(value)
      if (found instanceof Map) found.set(keyOf(object), object)
      else if (found === undefined || isSameRef(found, object)) this.#entries.set(value, object)
      else this.#entries.set(value, new Map([found, object].map((one) => [keyOf(one), one])))
    }
  }

  remove(object: T): void {
    for (const value of this.valuesOf(object)) {
      const found = this.#entries.get(value)
      if (found instanceof Map) found.delete(keyOf(object))
      if (found instanceof Map ? found.size === 0 : found !== undefined && isSameRef(found, object)) this.#entries.delete(value)
    }
  }
}

function isSameRef({ metadata: a }: KubeObject, { metadata: b }: KubeObject): boolean {
  return a.name === b.name && a.namespace === b.namespace
}
