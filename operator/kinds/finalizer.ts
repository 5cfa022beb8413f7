/** Sets the operator's finalizer on an object of a kind, and removes it. */
import type { ApiKind } from '#api/kind.ts'
import { isKubeError, KubeError, type KubeObject, type KubePort, refOf } from '#kube/port.ts'

export type HeldKind<T extends KubeObject = KubeObject> = Pick<ApiKind<T>, 'resource' | 'finalizer'>
type Patches = Pick<KubePort, 'patch'>

export function isHeld({ metadata }: KubeObject, { finalizer = '' }: Pick<HeldKind, 'finalizer'>): boolean {
  return metadata.finalizers?.includes(finalizer) === true
}

/** @returns the object with the finalizer @throws KubeError; Conflict if the given object is outdated */
export async function addFinalizer<T extends KubeObject>({ resource, finalizer }: HeldKind<T>, object: T, kube: Patches): Promise<T> {
  const { finalizers, resourceVersion } = object.metadata
  return await kube
    .patch(resource, refOf(object), [
      { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
      finalizers
        ? { op: 'add', path: '/metadata/finalizers/-', value: finalizer }
        : { op: 'add', path: '/metadata/finalizers', value: [finalizer] },
    ])
    .catch(asConflict)
}

/** An object that is already absent counts as released. @throws KubeError; Conflict if the given object is outdated */
export async function removeFinalizer({ resource, finalizer = '' }: HeldKind, object: KubeObject, kube: Patches): Promise<void> {
  const path = `/metadata/finalizers/${object.metadata.finalizers?.indexOf(finalizer) ?? -1}`
  try {
    await kube.patch(resource, refOf(object), [
      { op: 'test', path, value: finalizer },
      { op: 'remove', path },
    ])
  } catch (error) {
    if (!isKubeError(error, 'NotFound')) asConflict(error)
  }
}

/** The API server answers 422 if a `test` of a patch fails, because the object is outdated. A Conflict is tried again at once. */
export function asConflict(error: unknown): never {
  if (!isKubeError(error, 'Invalid')) throw error
  throw new KubeError('Conflict', error.status, error.message, { cause: error })
}
