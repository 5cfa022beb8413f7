/** Removes the operator's finalizer from objects of a kind, so that they can be deleted without an operator. Nothing else changes. */
import type { ApiKind } from '#api/kind.ts'
import { isKubeError, type KubeObject, type KubePort, refOf } from '#kube/port.ts'
import { inParallel } from '../loop/in-parallel.ts'

/** Most concurrent API calls. */
const CALLS = 32
/** Most tries for an object that changes between read and write. */
const TRIES = 5

/** Numbers of released objects, and of objects that could not be released. */
export interface Released {
  readonly released: number
  readonly failed: number
}

/** What the release of objects needs. */
export interface ReleaseDeps {
  readonly kube: Pick<KubePort, 'get' | 'patch'>
  /** Called with each released object. */
  readonly onReleased?: (object: KubeObject) => void
}

/** A kind as far as its release is concerned. */
export type ReleasedKind = Pick<ApiKind, 'resource' | 'finalizer'>

/** Releases every object with the finalizer of its kind. A failure does not stop the others. */
export async function releaseAll(kind: ReleasedKind, objects: Iterable<KubeObject>, deps: ReleaseDeps): Promise<Released> {
  const held = [...objects].filter((object) => placeOf(object, kind) >= 0)
  const outcomes = await inParallel(held, CALLS, async (object) => {
    const isReleased = await release(kind, object, deps).catch(() => false)
    if (isReleased) deps.onReleased?.(object)
    return isReleased
  })
  const released = outcomes.filter(Boolean).length
  return { released, failed: outcomes.length - released }
}

/** Adds results up. */
export function totalOf(all: readonly Released[]): Released {
  const sum = (field: keyof Released): number => all.reduce((total, each) => total + each[field], 0)
  return { released: sum('released'), failed: sum('failed') }
}

/** @returns the place of the operator's finalizer; -1 if the object does not have it */
function placeOf({ metadata }: KubeObject, { finalizer }: ReleasedKind): number {
  return finalizer === undefined ? -1 : (metadata.finalizers ?? []).indexOf(finalizer)
}

/** @returns true if the finalizer is removed @throws KubeError */
async function release(kind: ReleasedKind, object: KubeObject, { kube }: ReleaseDeps): Promise<boolean> {
  let present: KubeObject | undefined = object
  for (let tries = 0; tries < TRIES; tries += 1) {
    const place = present === undefined ? -1 : placeOf(present, kind)
    if (present === undefined || place < 0) return true
    const path = `/metadata/finalizers/${place}`
    try {
      const test = { op: 'test', path, value: kind.finalizer } as const
      await kube.patch(kind.resource, refOf(present), [test, { op: 'remove', path }])
      return true
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return true
      if (!isKubeError(error, 'Invalid', 'Conflict')) throw error
      present = await kube.get(kind.resource, refOf(present))
    }
  }
  return present === undefined || placeOf(present, kind) < 0
}
