/** Confirms by live reads that objects of the cache are current, where the records are newer: the watch of a standby may have been cut off. */
import { type KubeObject, KubeError, type KubePort, refOf, type Resource } from '#kube/port.ts'
import type { OwnWrites } from '#kube/own-writes.ts'

export class LiveReads {
  readonly #deps: { readonly kube: KubePort; readonly ownWrites: OwnWrites }
  /** Resource versions that were read live although their generation is older, by uid: the cluster was restored from a backup. */
  readonly #confirmed = new Map<string, string | undefined>()

  constructor(deps: { readonly kube: KubePort; readonly ownWrites: OwnWrites }) {
    this.#deps = deps
  }

  /** Whether the object may be older than its record: to trust it would lift a suspension, or the end of a deleted Account. */
  isStale({ metadata }: KubeObject, former: { readonly generation: number; readonly state?: string } | undefined): boolean {
    if (former === undefined || !isOlder(metadata, former)) return false
    const confirmed = this.#confirmed.get(metadata.uid ?? '')
    return confirmed === undefined || confirmed !== metadata.resourceVersion
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

function isOlder({ generation = 0 }: KubeObject['metadata'], former: { readonly generation: number; readonly state?: string }): boolean {
  return former.state === 'Deleted' || generation < former.generation
}
