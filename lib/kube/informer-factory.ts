import { Reflector, type ReflectorDeps, type ReflectorScope } from './reflector.ts'
import type { Informer, KubeObject, ObjectRef, Resource } from './port.ts'

/** How an informer starts. */
export interface InformerOptions {
  /** Whether the start goes on if the API server refuses a cluster-wide list. After a refused list of one namespace it always goes on. */
  readonly mayBeRefused?: boolean
}

/** Creates informers for the namespaces that the operator watches, and starts and stops all of them together. */
export class InformerFactory {
  readonly #deps: ReflectorDeps
  readonly #namespaces: readonly string[]
  readonly #reflectors: Array<{ start(): void; stop(): void; readonly synced: Promise<void>; readonly dead: boolean }> = []

  /** @param namespaces to watch; empty = all, by one watch of the whole cluster */
  constructor(deps: ReflectorDeps, namespaces: readonly string[]) {
    this.#deps = deps
    this.#namespaces = namespaces
  }

  /** Creates an informer, which `start` starts. With several namespaces the informer merges one watch per namespace. */
  createInformer<T extends KubeObject>(resource: Resource<T>, options: InformerOptions = {}): Informer<T> {
    const namespaces = resource.namespaced && this.#namespaces.length > 0 ? this.#namespaces : ['']
    const scopeOf = (namespace: string): ReflectorScope => ({ namespace, mayBeRefused: namespace !== '' || options.mayBeRefused === true })
    const reflectors = new Map(namespaces.map((each) => [each, new Reflector(resource, scopeOf(each), this.#deps)]))
    this.#reflectors.push(...reflectors.values())
    const [only] = reflectors.values()
    return reflectors.size === 1 && only ? only : new MergedInformer(reflectors)
  }

  /** Begins to list and watch; call it after all listeners are subscribed. */
  start(): void {
    for (const reflector of this.#reflectors) reflector.start()
  }

  /** Ends all watches, silently and for good. */
  stop(): void {
    for (const reflector of this.#reflectors) reflector.stop()
  }

  /** Resolves when every informer created so far is synced. */
  async synced(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.synced))
  }

  /** Whether an informer has stopped working so that only a restart helps: then /livez fails. */
  get dead(): boolean {
    return this.#reflectors.some((reflector) => reflector.dead)
  }
}

/** Several namespaces as one informer. */
class MergedInformer<T extends KubeObject> implements Informer<T> {
  readonly synced: Promise<void>
  readonly #byNamespace: ReadonlyMap<string, Informer<T>>

  constructor(byNamespace: ReadonlyMap<string, Informer<T>>) {
    this.#byNamespace = byNamespace
    this.synced = Promise.all([...byNamespace.values()].map((informer) => informer.synced)).then(() => undefined)
  }

  isSynced(namespace: string): boolean {
    return this.#byNamespace.get(namespace)?.isSynced(namespace) ?? false
  }

  get(ref: ObjectRef): T | undefined {
    return this.#byNamespace.get(ref.namespace)?.get(ref)
  }

  *list(): Iterable<T> {
    for (const informer of this.#byNamespace.values()) yield* informer.list()
  }

  subscribe(listener: (before: T | undefined, after: T | undefined) => void): void {
    for (const informer of this.#byNamespace.values()) informer.subscribe(listener)
  }

  addIndex(name: string, valuesOf: (object: T) => readonly string[]): void {
    for (const informer of this.#byNamespace.values()) informer.addIndex(name, valuesOf)
  }

  *byIndex(name: string, value: string): Iterable<T> {
    for (const informer of this.#byNamespace.values()) yield* informer.byIndex(name, value)
  }
}
