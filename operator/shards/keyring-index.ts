import type { KeyringEntry } from '#contract/records/keyring-entry.ts'

/** Index of the keyring: entries by namespace, the size of their policies, and tombstones. Updated with each change. */
export class KeyringIndex {
  readonly #namespaces = new Map<string, Set<string>>()
  readonly #namespaceOf = new Map<string, string>()
  readonly #tombstones = new Map<string, number>()
  readonly #modelBytes = new Map<string, number>()
  readonly #modelBytesIn = new Map<string, number>()
  #revision = 0

  /**
   * Replaces the entry of one key; undefined removes the entry.
   * @param modelBytes bytes of the model names in its policy, durable or pending: the larger of both
   */
  set(uid: string, entry: KeyringEntry | undefined, modelBytes: number): void {
    this.#resize(uid, entry?.namespace, modelBytes)
    if (entry) this.#revision = Math.max(this.#revision, entry.revision)
    this.#move(uid, entry?.namespace)
    if (entry && entry.deletedMs !== null) this.#tombstones.set(uid, entry.deletedMs)
    else this.#tombstones.delete(uid)
  }

  /** Newest revision of any entry, including deleted entries. */
  get revision(): number {
    return this.#revision
  }

  get size(): number {
    return this.#namespaceOf.size
  }

  /** Uids of one namespace. */
  in(namespace: string): ReadonlySet<string> {
    return this.#namespaces.get(namespace) ?? new Set()
  }

  /** Bytes of the model names in all policies of one namespace. */
  modelBytesIn(namespace: string): number {
    return this.#modelBytesIn.get(namespace) ?? 0
  }

  /** Uids of keys that were deleted before this moment, ms since 1970. */
  *deletedBefore(ms: number): IterableIterator<string> {
    for (const [uid, deleted] of this.#tombstones) if (deleted < ms) yield uid
  }

  /** @param namespace undefined = the entry was removed, since the namespace of a key never changes */
  #resize(uid: string, namespace: string | undefined, modelBytes: number): void {
    const place = namespace ?? this.#namespaceOf.get(uid)
    if (place === undefined) return
    const now = namespace === undefined ? 0 : modelBytes
    const total = this.modelBytesIn(place) - (this.#modelBytes.get(uid) ?? 0) + now
    if (total > 0) this.#modelBytesIn.set(place, total)
    else this.#modelBytesIn.delete(place)
    if (now > 0) this.#modelBytes.set(uid, now)
    else this.#modelBytes.delete(uid)
  }

  #move(uid: string, namespace: string | undefined): void {
    const former = this.#namespaceOf.get(uid)
    if (former === namespace) return
    if (former !== undefined) this.#leave(uid, former)
    if (namespace === undefined) return
    this.#namespaceOf.set(uid, namespace)
    const uids = this.#namespaces.get(namespace) ?? new Set()
    this.#namespaces.set(namespace, uids.add(uid))
  }

  #leave(uid: string, namespace: string): void {
    this.#namespaceOf.delete(uid)
    const uids = this.#namespaces.get(namespace)
    uids?.delete(uid)
    if (uids?.size === 0) this.#namespaces.delete(namespace)
  }
}
