/**
 * Removes the operator's finalizer from objects of a kind, so that they can be deleted without an operator: for an uninstall, and in
 * namespaces that the administrator has given up. Nothing else changes.
 */
import { sleep } from '#platform/clock.ts'
import { messageOf } from '#platform/message-of.ts'
import { isKubeError, type KubeObject, type KubePort, refOf } from '#kube/port.ts'
import { inParallel } from '../loop/in-parallel.ts'
import { type HeldKind, isHeld, removeFinalizer } from './finalizer.ts'
import type { OperatorContext } from './kind.ts'

/** Maximum number of concurrent API calls. */
const CALLS = 32
/** Maximum number of tries for an object that changes between read and write. */
const TRIES = 5
/** Time after which a former namespace is tried again, ms, and how often. */
const AGAIN_MS = 60_000
const NAMESPACE_TRIES = 10

/** Numbers of released objects, and of objects that could not be released. */
export interface Released {
  readonly released: number
  readonly failed: number
}

export interface ReleaseDeps {
  readonly kube: Pick<KubePort, 'get' | 'patch'>
  readonly onReleased?: (object: KubeObject) => void
  /** Called after each object, whether it could be released or not. */
  readonly onDone?: () => void
}

/** How far a release has come. */
export interface ReleaseProgress {
  readonly done: number
  readonly total: number
}

export interface ReleasedKind {
  readonly kind: HeldKind
  readonly objects: readonly KubeObject[]
}

/** Releases the objects of several kinds. @param onProgress called after each object */
export async function releaseEvery(
  kinds: readonly ReleasedKind[],
  { kube }: Pick<ReleaseDeps, 'kube'>,
  onProgress: (progress: ReleaseProgress) => void,
): Promise<Released> {
  const total = kinds.reduce((sum, { kind, objects }) => sum + objects.filter((object) => isHeld(object, kind)).length, 0)
  let done = 0
  onProgress({ done, total })
  const onDone = (): void => onProgress({ done: ++done, total })
  return totalOf(await Promise.all(kinds.map(({ kind, objects }) => releaseAll(kind, objects, { kube, onDone }))))
}

/** Releases every object with the finalizer of its kind. A failure does not stop the others. */
export async function releaseAll(kind: HeldKind, objects: Iterable<KubeObject>, deps: ReleaseDeps): Promise<Released> {
  const held = [...objects].filter((object) => isHeld(object, kind))
  const outcomes = await inParallel(held, CALLS, async (object) => {
    const isReleased = await release(kind, object, deps).catch(() => false)
    if (isReleased) deps.onReleased?.(object)
    deps.onDone?.()
    return isReleased
  })
  const released = outcomes.filter(Boolean).length
  return { released, failed: outcomes.length - released }
}

export type FormerNamespacesDeps = Pick<OperatorContext, 'kube' | 'clock' | 'log' | 'settings' | 'recordEvent'>

/**
 * Releases all objects in namespaces that the administrator has given up. Their keys end as orphans of the keyring. Never rejects: a failure is logged
 * with the remedy. A namespace that is watched again may still be on the list.
 * @param stopped ends the tries
 */
export async function releaseFormer(kinds: readonly HeldKind[], deps: FormerNamespacesDeps, stopped: AbortSignal): Promise<void> {
  const held = kinds.filter(({ resource, finalizer }) => finalizer !== undefined && resource.namespaced)
  const { watchNamespaces, formerNamespaces } = deps.settings
  const left = watchNamespaces.length === 0 ? [] : formerNamespaces.filter((namespace) => !watchNamespaces.includes(namespace))
  await Promise.all(held.flatMap((kind) => left.map((namespace) => releaseNamespace(kind, namespace, deps, stopped))))
}

async function releaseNamespace(kind: HeldKind, namespace: string, deps: FormerNamespacesDeps, stopped: AbortSignal): Promise<void> {
  const { kube, log, clock, recordEvent } = deps
  const those = `${kind.resource.kind}s of namespace ${namespace}, which scope.formerNamespaces names,`
  const note = 'scope.formerNamespaces names the namespace: the key is revoked and its finalizer removed.'
  for (let tries = 0; tries < NAMESPACE_TRIES && !stopped.aborted; tries += 1) {
    try {
      const objects = await kube.list(kind.resource, namespace)
      const { released, failed } = await releaseAll(kind, objects, { kube, onReleased: (object) => recordEvent(object, 'Released', note) })
      if (released > 0) log.info(`${released} ${those} were released`)
      if (failed === 0) return
      log.warn(`${failed} ${those} could not be released; tried again`)
    } catch (error) {
      log.warn(
        `the ${those} cannot be released (${messageOf(error)}); the chart makes the operator's Role there from scope.formerNamespaces`,
      )
    }
    await sleep(clock, AGAIN_MS, stopped)
  }
}

function totalOf(all: readonly Released[]): Released {
  const sum = (field: keyof Released): number => all.reduce((total, each) => total + each[field], 0)
  return { released: sum('released'), failed: sum('failed') }
}

/** @returns true if the finalizer is removed @throws KubeError */
async function release(kind: HeldKind, object: KubeObject, { kube }: ReleaseDeps): Promise<boolean> {
  let present: KubeObject | undefined = object
  for (let tries = 0; tries < TRIES && present !== undefined && isHeld(present, kind); tries += 1) {
    try {
      await removeFinalizer(kind, present, kube)
      return true
    } catch (error) {
      if (!isKubeError(error, 'Conflict')) throw error
      present = await kube.get(kind.resource, refOf(present))
    }
  }
  return present === undefined || !isHeld(present, kind)
}
