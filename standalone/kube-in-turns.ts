import type { CreateOptions, KubeObject, KubePort, ObjectRef, PatchOperation, Preconditions, Resource } from '#kube/port.ts'
import type { Turns } from './turns.ts'

/**
 * The KubePort of the operator. A call to an API server ends in a later turn of the event loop, a call to the ObjectStore in the same one:
 * thousands of keys would be reconciled in one turn, and no call would be served meanwhile.
 */
export class KubeInTurns implements KubePort {
  readonly #kube: KubePort
  readonly #turns: Turns

  constructor(kube: KubePort, turns: Turns) {
    this.#kube = kube
    this.#turns = turns
  }

  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Promise<T | undefined> {
    await this.#turns.next()
    return this.#kube.get(resource, ref)
  }

  async list<T extends KubeObject>(resource: Resource<T>, namespace: string, labelSelector?: string): Promise<readonly T[]> {
    await this.#turns.next()
    return this.#kube.list(resource, namespace, labelSelector)
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options?: CreateOptions): Promise<T> {
    await this.#turns.next()
    return this.#kube.create(resource, object, options)
  }

  async update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    await this.#turns.next()
    return this.#kube.update(resource, object)
  }

  async replace<T extends KubeObject>(resource: Resource<T>, object: T): Promise<Pick<KubeObject, 'metadata'>> {
    await this.#turns.next()
    return this.#kube.replace(resource, object)
  }

  async patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, operations: readonly PatchOperation[]): Promise<T> {
    await this.#turns.next()
    return this.#kube.patch(resource, ref, operations)
  }

  async applyStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    await this.#turns.next()
    return this.#kube.applyStatus(resource, object)
  }

  async remove<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, preconditions?: Preconditions): Promise<'deleted' | 'absent'> {
    await this.#turns.next()
    return this.#kube.remove(resource, ref, preconditions)
  }
}
