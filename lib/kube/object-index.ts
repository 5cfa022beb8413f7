import { refKey, refOf, type KubeObject } from './port.ts'

/** The values under which an index finds an object. */
export type IndexFunction<T> = (object: T) => readonly string[]

/** Named indexes over the objects of one kind, as client-go's Indexer has them. */
export class ObjectIndex<T extends KubeObject> {
  readonly #indexes = new Map<string, { readonly valuesOf: IndexFunction<T>; readonly entries: Map<string, Map<string, T>> }>()

  /** Adds an index, once. @param present the known objects. @throws Error if the name belongs to another function */
  add(name: string, valuesOf: IndexFunction<T>, present: Iterable<T>): void {
    const taken = this.#indexes.get(name)
    if (taken?.valuesOf === valuesOf) return
    if (taken) throw new Error(`the index ${name} was added twice, by two functions`)
    this.#indexes.set(name, { valuesOf, entries: new Map() })
    for (const object of present) this.#insert(name, object)
  }

  /** Objects under a value. @throws Error for an index that does not exist */
  *get(name: string, value: string): Iterable<T> {
    const index = this.#indexes.get(name)
    if (!index) throw new Error(`there is no index ${name}`)
    yield* index.entries.get(value)?.values() ?? []
  }

  /** Follows a change of one object. */
  change(before: T | undefined, after: T | undefined): void {
    for (const name of this.#indexes.keys()) {
      if (before) this.#remove(name, before)
      if (after) this.#insert(name, after)
    }
  }

  #insert(name: string, object: T): void {
    const index = this.#indexes.get(name)
    for (const value of index?.valuesOf(object) ?? []) {
      const objects = index?.entries.get(value) ?? new Map<string, T>()
      objects.set(refKey(refOf(object)), object)
      index?.entries.set(value, objects)
    }
  }

  #remove(name: string, object: T): void {
    const index = this.#indexes.get(name)
    for (const value of index?.valuesOf(object) ?? []) {
      const objects = index?.entries.get(value)
      objects?.delete(refKey(refOf(object)))
      if (objects?.size === 0) index?.entries.delete(value)
    }
  }
}
