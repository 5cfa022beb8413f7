import { isLive, type KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { KeyHash } from '#contract/values/credential.ts'
import { MultiMap } from './multi-map.ts'

interface Indexed {
  readonly namespace: string
  /** ms since 1970; null: not deleted. */
  readonly deletedMs: number | null
  readonly modelBytes: number
  readonly hashes: readonly KeyHash[]
}

/** Index of the keyring. Updated with each change. */
export class KeyringIndex {
  readonly #keys = new Map<string, Indexed>()
  readonly #uidsIn = new MultiMap<string>()
  readonly #modelBytesIn = new Map<string, number>()
  readonly #holders = new MultiMap<KeyHash>()
  readonly #tombstones = new Set<string>()
  #revision = 0

  /** Sets the known entries of one key, durable and pending. @returns hashes that the key no longer has */
  set(uid: string, durable: KeyringEntry | undefined, pending: KeyringEntry | undefined): readonly KeyHash[] {
    const former = this.#keys.get(uid)
    const entry = durable ?? pending
    const now = entry && {
      namespace: entry.namespace,
      deletedMs: entry.deletedMs,
      modelBytes: Math.max(modelBytesOf(durable), modelBytesOf(pending)),
      hashes: [...new Set([...liveHashes(durable), ...liveHashes(pending)])],
    }
    this.#revision = Math.max(this.#revision, entry?.revision ?? 0)
    if (former) this.#delete(uid, former)
    if (now) this.#add(uid, now)
    return (former?.hashes ?? []).filter((hash) => now?.hashes.includes(hash) !== true)
  }

  /** Newest revision of any entry, including deleted entries. */
  get revision(): number {
    return this.#revision
  }

  countIn(namespace: string): number {
    return this.#uidsIn.count(namespace)
  }

  /** Bytes of the model names in the policy of one key: durable or pending, whichever is larger. */
  modelBytes(uid: string): number {
    return this.#keys.get(uid)?.modelBytes ?? 0
  }

  /** Bytes of the model names in all policies of one namespace. */
  modelBytesIn(namespace: string): number {
    return this.#modelBytesIn.get(namespace) ?? 0
  }

  holdersOf(hash: KeyHash): Iterable<string> {
    return this.#holders.get(hash)
  }

  /** Uids of keys that were deleted before this moment, ms since 1970. */
  *deletedBefore(ms: number): IterableIterator<string> {
    for (const uid of this.#tombstones) if ((this.#keys.get(uid)?.deletedMs ?? Infinity) < ms) yield uid
  }

  #add(uid: string, now: Indexed): void {
    this.#keys.set(uid, now)
    this.#uidsIn.add(now.namespace, uid)
    this.#resize(now.namespace, now.modelBytes)
    for (const hash of now.hashes) this.#holders.add(hash, uid)
    if (now.deletedMs !== null) this.#tombstones.add(uid)
  }

  #delete(uid: string, former: Indexed): void {
    this.#keys.delete(uid)
    this.#uidsIn.delete(former.namespace, uid)
    this.#resize(former.namespace, -former.modelBytes)
    for (const hash of former.hashes) this.#holders.delete(hash, uid)
    this.#tombstones.delete(uid)
  }

  #resize(namespace: string, bytes: number): void {
    const total = this.modelBytesIn(namespace) + bytes
    if (total > 0) this.#modelBytesIn.set(namespace, total)
    else this.#modelBytesIn.delete(namespace)
  }
}

/** Bytes of the model names in a policy; 0 for a tombstone or without an entry. */
export function modelBytesOf(entry: KeyringEntry | undefined): number {
  return (entry?.models ?? []).flat().reduce((bytes, name) => bytes + Buffer.byteLength(name), 0)
}

function liveHashes(entry: KeyringEntry | undefined): readonly KeyHash[] {
  return entry === undefined || entry.deletedMs !== null ? [] : entry.verifiers.filter(isLive).map(({ hash }) => hash)
}
