import { ObjectIndex } from '#kube/object-cache.ts'
import { refKey, type Informer, type KubeObject, type ObjectRef } from '#kube/port.ts'

type Listener = (before: KubeObject | undefined, after: KubeObject | undefined) => void

/** Informer over a table of the ObjectStore. The cache is the store itself, so it is never behind. */
export class ObjectInformer implements Informer {
  readonly synced = Promise.resolve()
  readonly #objects: ReadonlyMap<string, KubeObject>
  readonly #listeners: Listener[] = []
  readonly #index = new ObjectIndex<KubeObject>()

  constructor(objects: ReadonlyMap<string, KubeObject>) {
    this.#objects = objects
  }

  isSynced(): boolean {
    return true
  }

  addIndex(name: string, valuesOf: (object: KubeObject) => readonly string[]): void {
    this.#index.add(name, valuesOf, this.list())
  }

  byIndex(name: string, value: string): Iterable<KubeObject> {
    return this.#index.get(name, value)
  }

  get(ref: ObjectRef): KubeObject | undefined {
    return this.#objects.get(refKey(ref))
  }

  list(): Iterable<KubeObject> {
    return this.#objects.values()
  }

  /** Reports present objects first, as additions, like a watch that begins with a list. */
  subscribe(listener: Listener): void {
    this.#listeners.push(listener)
    for (const object of [...this.#objects.values()]) listener(undefined, object)
  }

  /** Passes one change on to the listeners; they only enqueue. */
  notify(before: KubeObject | undefined, after: KubeObject | undefined): void {
    this.#index.change(before, after)
    for (const listener of this.#listeners) listener(before, after)
  }
}
