import { Reflector, type ReflectorDeps } from './reflector.ts'
import type { Informer, KubeObject, ObjectRef, Resource } from './port.ts'

/** Narrows what an informer sees. */
export interface InformerOptions {
  /** One namespace, whatever the scope of the operator is. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

/** Makes informers for the namespaces that the operator watches, starts and stops them together. */
export class InformerFactory {
  readonly #deps: ReflectorDeps
  readonly #namespaces: readonly string[]
  readonly #reflectors: Array<{ start(): void; stop(): void; readonly synced: Promise<void>; readonly dead: boolean }> = []

  /** @param namespaces to watch; empty = all, by one watch of the whole cluster */
  constructor(deps: ReflectorDeps, namespaces: readonly string[]) {
    this.#deps = deps
    this.#namespaces = namespaces
  }

  /** An informer that `start` will start. With several namespaces it merges one watch of each. */
  createInformer<T extends KubeObject>(resource: Resource<T>, options: InformerOptions = {}): Informer<T> {
    const { namespace, ...selectors } = options
    const scope = namespace === undefined ? this.#namespaces : [namespace]
    const namespaces = resource.namespaced && scope.length > 0 ? scope : ['']
    const reflectors = new Map(namespaces.map((each) => [each, new Reflector(resource, { namespace: each, ...selectors }, this.#deps)]))
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

  /** Resolves when every informer made so far has its first list. */
  async synced(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.synced))
  }

  /** Whether some informer has stopped working in a way that only a restart cures: then /livez fails. */
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

  get(ref: ObjectRef): T | undefined {
    return this.#byNamespace.get(ref.namespace)?.get(ref)
  }

  *list(): Iterable<T> {
    for (const informer of this.#byNamespace.values()) yield* informer.list()
  }

  subscribe(listener: (before: T | undefined, after: T | undefined) => void): void {
    for (const informer of this.#byNamespace.values()) informer.subscribe(listener)
  }
}
