import {
  KubeError,
  refOf,
  type KubeErrorCode,
  type KubeObject,
  type KubePort,
  type ObjectRef,
  type PatchOperation,
  type Preconditions,
  type Resource,
} from '#kube/port.ts'
import { FakeObjectStore, FakeRefusal, type FakeObject } from './fake-object-store.ts'

const CODES: Readonly<Record<string, KubeErrorCode>> = {
  NotFound: 'NotFound',
  AlreadyExists: 'AlreadyExists',
  Conflict: 'Conflict',
  Invalid: 'Invalid',
  Expired: 'Expired',
}

/** One call, before or after it takes effect. */
export interface PortCall {
  readonly verb: keyof KubePort
  readonly plural: string
  readonly name: string
}

/** The Kubernetes port over a FakeObjectStore, without a connection, for tests of the code that uses the port. */
export class FakeKubePort implements KubePort {
  readonly store: FakeObjectStore
  readonly calls: PortCall[] = []
  /** Runs before a call takes effect; may throw or wait. */
  before: (call: PortCall) => void | Promise<void> = () => undefined
  /** Runs after a call has taken effect. A throw is a lost answer. */
  after: (call: PortCall) => void | Promise<void> = () => undefined

  constructor(store = new FakeObjectStore()) {
    this.store = store
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T | undefined> {
    try {
      return await this.#run<T>('get', resource, ref.name, () => this.store.get(resource.plural, ref.namespace, ref.name))
    } catch (error) {
      if (error instanceof KubeError && error.code === 'NotFound') return undefined
      throw error
    }
  }

  async list<T extends KubeObject>(resource: Resource<T>, namespace: string, labelSelector?: string): Promise<readonly T[]> {
    const [label = '', value] = labelSelector?.split('=') ?? []
    const isSelected = ({ metadata }: FakeObject): boolean => value === undefined || metadata.labels?.[label] === value
    return this.#run<readonly T[]>('list', resource, '', () => this.store.list(resource.plural, namespace).filter(isSelected))
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.#run<T>('create', resource, object.metadata.name, () =>
      this.store.create(resource.plural, refOf(object).namespace, plain(object)),
    )
  }

  async update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const { namespace, name } = refOf(object)
    return this.#run<T>('update', resource, name, () => this.store.update(resource.plural, namespace, name, plain(object)))
  }

  replace<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Pick<KubeObject, 'metadata'>> {
    return this.update(resource, object)
  }

  async patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, operations: readonly PatchOperation[]): Promise<T> {
    const list = operations.map((operation) => ({ ...operation }))
    return this.#run<T>('patch', resource, ref.name, () => this.store.patch(resource.plural, ref.namespace, ref.name, list))
  }

  async applyStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const { namespace, name } = refOf(object)
    return this.#run<T>('applyStatus', resource, name, () => this.store.applyStatus(resource.plural, namespace, name, plain(object)))
  }

  async remove<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, preconditions?: Preconditions): Promise<'deleted' | 'absent'> {
    try {
      await this.#run('remove', resource, ref.name, () => this.store.remove(resource.plural, ref.namespace, ref.name, preconditions))
      return 'deleted'
    } catch (error) {
      if (error instanceof KubeError && error.code === 'NotFound') return 'absent'
      throw error
    }
  }

  async #run<R>(verb: keyof KubePort, resource: Resource, name: string, act: () => unknown): Promise<R> {
    const call = { verb, plural: resource.plural, name }
    this.calls.push(call)
    await this.before(call)
    let result: unknown
    try {
      result = structuredClone(act())
    } catch (error) {
      if (!(error instanceof FakeRefusal)) throw error
      throw new KubeError(
        CODES[error.reason] ?? 'Other',
        error.status,
        `${verb} ${resource.plural} ${name}: ${error.status} ${error.reason}`,
      )
    }
    await this.after(call)
    return result as R // the store returns objects as stored
  }
}

function plain(object: KubeObject): FakeObject {
  return structuredClone(object) as unknown as FakeObject
}
