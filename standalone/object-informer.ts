import { refKey, type Informer, type KubeObject, type ObjectRef } from '../operator/kube/port.ts'

type Listener = (before: KubeObject | undefined, after: KubeObject | undefined) => void

/** Informer over a table of the ObjectStore: the cache is the truth itself, so it is never behind. */
export class ObjectInformer implements Informer {
  readonly synced = Promise.resolve()
  readonly #objects: ReadonlyMap<string, KubeObject>
  readonly #listeners: Listener[] = []

  constructor(objects: ReadonlyMap<string, KubeObject>) {
    this.#objects = objects
  }

  get(ref: ObjectRef): KubeObject | undefined {
    return this.#objects.get(refKey(ref))
  }

  list(): Iterable<KubeObject> {
    return this.#objects.values()
  }

  /** Present objects come first as additions, as they do when a watch begins with a list. */
  subscribe(listener: Listener): void {
    this.#listeners.push(listener)
    for (const object of [...this.#objects.values()]) listener(undefined, object)
  }

  /** Tells the listeners of one change; they only enqueue. */
  notify(before: KubeObject | undefined, after: KubeObject | undefined): void {
    for (const listener of this.#listeners) listener(before, after)
  }
}
