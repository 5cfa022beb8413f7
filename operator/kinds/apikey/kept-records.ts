import type { Keyring } from '../../shards/keyring.ts'

/** Records that stay in Redis without an entry of the keyring, because the entries of their keys were lost. */
export class KeptRecords {
  readonly #keyring: Pick<Keyring, 'newest'>
  /** Keys that are not restored yet, or not durably. */
  readonly #uids = new Set<string>()
  /** Whether this process has searched Redis for lost keys. Until then any record may be the last copy of a key. */
  #isRedisRead = false

  constructor(keyring: Pick<Keyring, 'newest'>) {
    this.#keyring = keyring
  }

  get isRedisRead(): boolean {
    return this.#isRedisRead
  }

  has(uid: string): boolean {
    if (!this.#uids.has(uid)) return false
    const entry = this.#keyring.newest(uid)
    return entry === undefined || entry.deletedMs === null
  }

  /** Whether Redis may have a record of a key that is not in the keyring. */
  mayHave(uid: string): boolean {
    return !this.#isRedisRead || this.has(uid)
  }

  /** Takes the result of a search. */
  set({ open, isRedisRead }: { readonly open: Iterable<string>; readonly isRedisRead: boolean }): void {
    this.#uids.clear()
    for (const uid of open) this.#uids.add(uid)
    this.#isRedisRead = isRedisRead
  }

  /** The ApiKey was deleted, or Redis has no record of the key. */
  forget(uid: string): void {
    this.#uids.delete(uid)
  }
}
