import type { KeyHash } from '#contract/values/credential.ts'
import { isLive, type KeyringEntry } from '#contract/records/keyring-entry.ts'

/** Which keys have which live values. Updated with each change. */
export class HashHolders {
  /** The uid alone if one key has the value, as nearly always: a set for each of a hundred thousand keys would need much memory. */
  readonly #uids = new Map<KeyHash, string | Set<string>>()
  readonly #hashes = new Map<string, readonly KeyHash[]>()

  /** Sets the known entries of one key, durable and pending. @returns hashes that the key no longer has */
  set(uid: string, entries: ReadonlyArray<KeyringEntry | undefined>): readonly KeyHash[] {
    const former = this.#hashes.get(uid) ?? []
    const present = [...new Set(entries.flatMap(liveHashes))]
    for (const hash of present) if (!former.includes(hash)) this.#add(hash, uid)
    const released = former.filter((hash) => !present.includes(hash))
    for (const hash of released) this.#remove(hash, uid)
    if (present.length > 0) this.#hashes.set(uid, present)
    else this.#hashes.delete(uid)
    return released
  }

  /** Uids of the keys that have this value. */
  of(hash: KeyHash): Iterable<string> {
    const uids = this.#uids.get(hash) ?? []
    return typeof uids === 'string' ? [uids] : uids
  }

  #add(hash: KeyHash, uid: string): void {
    const uids = this.#uids.get(hash)
    if (uids === undefined) this.#uids.set(hash, uid)
    else if (typeof uids === 'string') this.#uids.set(hash, new Set([uids, uid]))
    else uids.add(uid)
  }

  #remove(hash: KeyHash, uid: string): void {
    const uids = this.#uids.get(hash)
    if (uids === uid) this.#uids.delete(hash)
    else if (typeof uids === 'object' && uids.delete(uid) && uids.size === 0) this.#uids.delete(hash)
  }
}

function liveHashes(entry: KeyringEntry | undefined): readonly KeyHash[] {
  return entry === undefined || entry.deletedMs !== null ? [] : entry.verifiers.filter(isLive).map(({ hash }) => hash)
}
