/** Confirms by live reads that objects of the cache are current, where the records are newer: the watch of a standby may have been cut off. */
import { type KubeObject, KubeError, type KubePort, refOf, type Resource } from '#kube/port.ts'
import type { OwnWrites } from '#kube/own-writes.ts'
import { inParallel } from '../loop/in-parallel.ts'

/** Maximum number of concurrent reads of a start. */
const READS = 32

/** The record of an object, as far as it says whether the object is outdated. */
type Former = { readonly generation: number; readonly state?: string } | undefined

interface LiveReadsDeps {
  readonly kube: KubePort
  readonly ownWrites: OwnWrites
}

/** Reads live all objects of a start that are older than their records. What was deleted is left to its watch. @throws KubeError */
export async function refresh<T extends KubeObject>(
  resource: Resource<T>,
  objects: Iterable<T>,
  formerOf: (object: T) => Former,
  { kube, ownWrites }: LiveReadsDeps,
): Promise<void> {
  const outdated = [...objects].filter((object) => isOlder(object, formerOf(object)))
  await inParallel(outdated, READS, async (object) => {
    const live = await kube.get(resource, refOf(object))
    if (live !== undefined && live.metadata.uid === object.metadata.uid) ownWrites.remember(live)
  })
}

export class LiveReads {
  readonly #deps: LiveReadsDeps
  /** Resource versions that were read live although their generation is older, by uid: the cluster was restored from a backup. */
  readonly #confirmed = new Map<string, string | undefined>()

  constructor(deps: LiveReadsDeps) {
    this.#deps = deps
  }

  /** Whether the object may be older than its record: to trust it would lift a suspension, or the end of a deleted Account. */
  isStale(object: KubeObject, former: Former): boolean {
    if (!isOlder(object, former)) return false
    const { uid = '', resourceVersion } = object.metadata
    const confirmed = this.#confirmed.get(uid)
    return confirmed === undefined || confirmed !== resourceVersion
  }

  /** @throws KubeError; Conflict if the object was deleted or replaced, which the watch will deliver */
  async read<T extends KubeObject>(resource: Resource<T>, object: T): Promise<void> {
    const live = await this.#deps.kube.get(resource, refOf(object))
    if (live === undefined || live.metadata.uid !== object.metadata.uid)
      throw new KubeError(
        'Conflict',
        0,
        `${resource.kind} ${object.metadata.name} was deleted, and the cache does not show the deletion yet`,
      )
    this.#confirmed.set(live.metadata.uid ?? '', live.metadata.resourceVersion)
    this.#deps.ownWrites.remember(live)
  }
}

function isOlder({ metadata: { generation = 0 } }: KubeObject, former: Former): boolean {
  return former !== undefined && (former.state === 'Deleted' || generation < former.generation)
}
