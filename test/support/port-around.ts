/** Wraps a Kubernetes port with a hook that records, delays or refuses calls, or loses their answers. */
import type { KubeObject, KubePort, ObjectRef, PatchOperation, Preconditions, CreateOptions, Resource } from '#kube/port.ts'

/** One call, before or after it takes effect. */
export interface PortCall {
  readonly verb: keyof KubePort
  readonly plural: string
  readonly namespace: string
  readonly name: string
  readonly isDryRun?: boolean
}

/** Runs around every call. */
export type AroundCall = <R>(call: PortCall, run: () => Promise<R>) => Promise<R>

/** @returns the port, with `around` called for each call */
export function portAround(port: KubePort, around: AroundCall): KubePort {
  const of = (verb: keyof KubePort, { plural }: Resource, { namespace, name }: ObjectRef): PortCall => ({ verb, plural, namespace, name })
  const about = (verb: keyof KubePort, resource: Resource, { metadata }: KubeObject): PortCall =>
    of(verb, resource, { namespace: metadata.namespace ?? '', name: metadata.name })
  return {
    get: (resource, ref) => around(of('get', resource, ref), () => port.get(resource, ref)),
    list: (resource, namespace, selector) =>
      around(of('list', resource, { namespace, name: '' }), () => port.list(resource, namespace, selector)),
    create: <T extends KubeObject>(resource: Resource<T>, object: T, options: CreateOptions = {}) =>
      around({ ...about('create', resource, object), isDryRun: options.dryRun === true }, () => port.create(resource, object, options)),
    update: (resource, object) => around(about('update', resource, object), () => port.update(resource, object)),
    replace: (resource, object) => around(about('update', resource, object), () => port.replace(resource, object)),
    patch: (resource: Resource, ref: ObjectRef, operations: readonly PatchOperation[]) =>
      around(of('patch', resource, ref), () => port.patch(resource, ref, operations)) as Promise<never>,
    applyStatus: (resource, object) => around(about('applyStatus', resource, object), () => port.applyStatus(resource, object)),
    remove: (resource: Resource, ref: ObjectRef, preconditions?: Preconditions) =>
      around(of('remove', resource, ref), () => port.remove(resource, ref, preconditions)),
  }
}
