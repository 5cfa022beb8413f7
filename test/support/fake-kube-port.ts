import type { CreateOptions, KubeObject, KubePort, ObjectRef, PatchOperation, Preconditions, Resource } from '#kube/port.ts'
import { refOf } from '#kube/port.ts'
import { ObjectStore } from '../../standalone/object-store.ts'

/** One call, before or after it takes effect. A replacement counts as an update. */
export interface PortCall {
  readonly verb: keyof KubePort
  readonly plural: string
  readonly namespace: string
  readonly name: string
  readonly isDryRun?: boolean
}

type AroundCall = <R>(call: PortCall, run: () => Promise<R>) => Promise<R>

/** A Kubernetes port with a hook that records, delays or refuses calls, or loses their answers. */
export class PortAround implements KubePort {
  readonly #port: KubePort
  readonly #around: AroundCall

  constructor(port: KubePort, around: AroundCall) {
    this.#port = port
    this.#around = around
  }

  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T | undefined> {
    return this.#around(callOf('get', resource, ref), () => this.#port.get(resource, ref))
  }

  list<T extends KubeObject>(resource: Resource<T>, namespace: string, labelSelector?: string): Promise<readonly T[]> {
    return this.#around(callOf('list', resource, { namespace, name: '' }), () => this.#port.list(resource, namespace, labelSelector))
  }

  create<T extends KubeObject>(resource: Resource<T>, object: T, options: CreateOptions = {}): Promise<T> {
    const call = { ...callOf('create', resource, refOf(object)), isDryRun: options.dryRun === true }
    return this.#around(call, () => this.#port.create(resource, object, options))
  }

  update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Pick<KubeObject, 'metadata'>> {
    return this.#around(callOf('update', resource, refOf(object)), () => this.#port.update(resource, object))
  }

  patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, operations: readonly PatchOperation[]): Promise<T> {
    return this.#around(callOf('patch', resource, ref), () => this.#port.patch(resource, ref, operations))
  }

  applyStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.#around(callOf('applyStatus', resource, refOf(object)), () => this.#port.applyStatus(resource, object))
  }

  remove<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, preconditions?: Preconditions): Promise<'deleted' | 'absent'> {
    return this.#around(callOf('remove', resource, ref), () => this.#port.remove(resource, ref, preconditions))
  }
}

export class FakeKubePort extends PortAround {
  readonly store: ObjectStore
  readonly calls: PortCall[] = []
  /** Runs before a call takes effect; may throw or wait. */
  before: (call: PortCall) => void | Promise<void> = () => undefined
  /** Runs after a call has taken effect. A throw is a lost answer. */
  after: (call: PortCall) => void | Promise<void> = () => undefined

  constructor(store = new ObjectStore()) {
    super(store, async (call, run) => {
      this.calls.push(call)
      await this.before(call)
      const answer = await run()
      await this.after(call)
      return answer
    })
    this.store = store
  }
}

function callOf(verb: keyof KubePort, { plural }: Resource, { namespace, name }: ObjectRef): PortCall {
  return { verb, plural, namespace, name }
}
