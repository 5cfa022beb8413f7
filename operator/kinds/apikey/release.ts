/** Removes the operator's finalizer from ApiKeys, so that they can be deleted without an operator. The keys do not change. */
import { type ApiKey, FINALIZER } from '#api/apikey.ts'
import { apiKeys } from '#api/resources.ts'
import type { Released } from '../kind.ts'
import { isKubeError, refOf } from '#kube/port.ts'
import { inParallel } from '../../loop/in-parallel.ts'
import type { ApiKeyDeps } from './deps.ts'

/** Most concurrent API calls. */
const CALLS = 32
/** Most tries for an object that changes between read and write. */
const TRIES = 5

type ReleaseDeps = Pick<ApiKeyDeps, 'kube'> & {
  /** Called with each released ApiKey. */
  readonly onReleased?: (apiKey: ApiKey) => void
}

/** Releases every ApiKey with the finalizer. A failure does not stop the others. */
export async function releaseAll(keys: Iterable<ApiKey>, deps: ReleaseDeps): Promise<Released> {
  const held = [...keys].filter(isHeld)
  const outcomes = await inParallel(held, CALLS, async (apiKey) => {
    const isReleased = await release(apiKey, deps).catch(() => false)
    if (isReleased) deps.onReleased?.(apiKey)
    return isReleased
  })
  const released = outcomes.filter(Boolean).length
  return { released, failed: outcomes.length - released }
}

function isHeld({ metadata }: ApiKey): boolean {
  return metadata.finalizers?.includes(FINALIZER) === true
}

/** @returns true if the finalizer is removed @throws KubeError */
async function release(apiKey: ApiKey, { kube }: Pick<ApiKeyDeps, 'kube'>): Promise<boolean> {
  let present: ApiKey | undefined = apiKey
  for (let tries = 0; tries < TRIES && present !== undefined && isHeld(present); tries += 1) {
    const index: number = present.metadata.finalizers?.indexOf(FINALIZER) ?? -1
    try {
      await kube.patch(apiKeys, refOf(present), [
        { op: 'test', path: `/metadata/finalizers/${index}`, value: FINALIZER },
        { op: 'remove', path: `/metadata/finalizers/${index}` },
      ])
      return true
    } catch (error) {
      if (isKubeError(error, 'NotFound')) return true
      if (!isKubeError(error, 'Invalid', 'Conflict')) throw error
      present = await kube.get(apiKeys, refOf(present))
    }
  }
  return present === undefined || !isHeld(present)
}
