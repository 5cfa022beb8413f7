import { ObjectCache } from './object-cache.ts'
import type { Informer, KubeObject, ObjectRef, Resource } from './port.ts'
import { Reflector, type ReflectorDeps, type ReflectorScope } from './reflector.ts'
import { resourceName } from './resources.ts'

/** Creates informers for the namespaces that the operator watches, and starts and stops all of them together. */
export class InformerFactory {
  readonly #deps: ReflectorDeps
  readonly #namespaces: readonly string[]
  readonly #reflectors: Array<Pick<Reflector<KubeObject>, 'start' | 'stop' | 'synced' | 'dead'>> = []

  /** @param namespaces to watch; empty = all, by one watch of the whole cluster */
  constructor(deps: ReflectorDeps, namespaces: readonly string[]) {
    this.#deps = deps
    this.#namespaces = namespaces
  }

  /**
   * Creates an informer. `start` starts it. If several namespaces are watched, each has a watch of its own.
   * @param options.mayBeRefused the start goes on if the API server refuses a cluster-wide list. After a refused list of one namespace it always
   * goes on
   */
  createInformer<T extends KubeObject>(resource: Resource<T>, options: { readonly mayBeRefused?: boolean } = {}): Informer<T> {
    const namespaces = resource.namespaced && this.#namespaces.length > 0 ? this.#namespaces : ['']
    const scopes = namespaces.map((namespace) => ({ namespace, mayBeRefused: namespace !== '' || options.mayBeRefused === true }))
    const cache = new WatchedCache(resource, scopes, this.#deps)
    this.#reflectors.push(...cache.reflectors.values())
    return cache
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

/** A cache with one reflector per namespace. */
class WatchedCache<T extends KubeObject> extends ObjectCache<T> implements Informer<T> {
  readonly synced: Promise<void>
  readonly reflectors: ReadonlyMap<string, Reflector<T>>

  constructor(resource: Resource<T>, scopes: readonly ReflectorScope[], deps: ReflectorDeps) {
    const where = { resource: resourceName(resource) }
    super((error) => deps.logger.error({ ...where, err: error }, 'a listener of the watch threw'))
    this.reflectors = new Map(scopes.map((scope) => [scope.namespace, new Reflector(resource, scope, this, deps)]))
    this.synced = Promise.all([...this.reflectors.values()].map(({ synced }) => synced)).then(() => undefined)
  }

  drop(ref: ObjectRef): void {
    this.forget(ref)
  }

  isSynced(namespace: string): boolean {
    return (this.reflectors.get('') ?? this.reflectors.get(namespace))?.isSynced ?? false
  }
}
