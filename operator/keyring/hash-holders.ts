import type { KeyHash } from '../../gateway/shared/credential.ts'
import { isLive, type KeyringEntry } from '../../gateway/shared/keyring-entry.ts'

/** Which keys have which live values; kept from change to change. */
export class HashHolders {
  readonly #uids = new Map<KeyHash, ReadonlySet<string>>()
  readonly #hashes = new Map<string, readonly KeyHash[]>()

  /** Takes the entries that are known of one key now. @returns hashes that the key no longer has */
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
  of(hash: KeyHash): ReadonlySet<string> {
    return this.#uids.get(hash) ?? NOBODY
  }

  #add(hash: KeyHash, uid: string): void {
    this.#uids.set(hash, new Set([...this.of(hash), uid]))
  }

  #remove(hash: KeyHash, uid: string): void {
    const left = new Set([...this.of(hash)].filter((other) => other !== uid))
    if (left.size > 0) this.#uids.set(hash, left)
    else this.#uids.delete(hash)
  }
}

const NOBODY: ReadonlySet<string> = new Set()

function liveHashes(entry: KeyringEntry | undefined): readonly KeyHash[] {
  return entry === undefined || entry.deletedMs !== null ? [] : entry.verifiers.filter(isLive).map(({ hash }) => hash)
}
