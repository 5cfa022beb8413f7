import type { Clock } from '#platform/clock.ts'
import { isOlderVersion } from './object-cache.ts'
import type { KubeObject } from './port.ts'

/** Maximum number of writes in memory. Above it the oldest is forgotten, which costs at most one conflict. */
const MAX_REMEMBERED = 4_096
/** Age from which an undelivered write no longer counts as lag of the watch, ms: the watch is broken, or the object is deleted. */
const OVERDUE_MS = 5_000

interface Written {
  readonly object: KubeObject
  /** ms, monotonic. */
  readonly atMs: number
}

/**
 * Read-your-writes over a cache that lags: after a write, the object in the answer of the API server is newer than the cached object until
 * the watch delivers it.
 */
export class OwnWrites {
  readonly #clock: Clock
  /** Oldest first. */
  readonly #written = new Map<string, Written>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Remembers the object that the API server returned for a write. */
  remember(object: KubeObject): void {
    const { uid } = object.metadata
    if (uid === undefined) return
    const former = this.#written.get(uid)?.object
    if (former && isOlderVersion(object.metadata.resourceVersion, former.metadata.resourceVersion)) return
    this.#written.delete(uid)
    this.#written.set(uid, { object, atMs: this.#clock.monotonic() })
    if (this.#written.size <= MAX_REMEMBERED) return
    for (const oldest of this.#written.keys()) return this.forget(oldest)
  }

  /** @returns the newer of two objects: the cached object, and the one that the API server returned for a write of this process */
  newest<T extends KubeObject>(cached: T): T {
    const { uid, resourceVersion } = cached.metadata
    const written = uid === undefined ? undefined : this.#written.get(uid)?.object
    if (!written) return cached
    if (isOlderVersion(resourceVersion, written.metadata.resourceVersion)) return written as T // same uid, hence the same kind
    this.forget(uid)
    return cached
  }

  /** Call this when the watch has delivered an object. @returns whether it is the object of a write that this process remembers */
  delivered(object: KubeObject): boolean {
    const { uid = '', resourceVersion } = object.metadata
    const isOwn = this.#written.get(uid)?.object.metadata.resourceVersion === resourceVersion && resourceVersion !== undefined
    if (this.#written.size > 0) this.newest(object)
    return isOwn
  }

  /** Age of the oldest write of this process that the watch has not delivered, ms; 0 if there is none. */
  get watchLagMs(): number {
    const now = this.#clock.monotonic()
    for (const { atMs } of this.#written.values()) if (now - atMs <= OVERDUE_MS) return now - atMs
    return 0
  }

  /** Call this when the object was deleted. */
  forget(uid: string | undefined): void {
    if (uid !== undefined) this.#written.delete(uid)
  }

  /** Number of writes that are not in the cache yet. */
  get size(): number {
    return this.#written.size
  }
}
