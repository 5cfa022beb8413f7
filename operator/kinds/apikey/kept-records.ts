import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { Keyring } from '../../shards/keyring.ts'

/** A key, as its record names it. */
export type RecordedKey = Pick<KeyringEntry, 'uid' | 'namespace' | 'name'>

/** What a search of Redis found. */
interface Found {
  /** uids of keys that are not restored yet, or not durably. */
  readonly open: Iterable<string>
  /** uids of keys of namespaces that are not watched. */
  readonly unwatched: readonly string[]
  readonly unread: readonly RecordedKey[]
  readonly isRedisRead: boolean
}

/** Records that stay in Redis without an entry of the keyring, because the entries of their keys were lost. */
export class KeptRecords {
  readonly #keyring: Pick<Keyring, 'newest'>
  /** Keys that are not restored yet, or not durably. */
  readonly #uids = new Set<string>()
  #unwatched: readonly string[] = []
  #unread: readonly RecordedKey[] = []
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

  /** Keys that are kept because no live read has said yet whether their ApiKeys exist. */
  get unread(): readonly RecordedKey[] {
    return this.#unread.filter(({ uid }) => this.#uids.has(uid) && this.#keyring.newest(uid) === undefined)
  }

  /** Takes the result of a search. */
  set(found: Found): void {
    this.#uids.clear()
    for (const uid of [...found.open, ...found.unwatched, ...found.unread.map((key) => key.uid)]) this.#uids.add(uid)
    this.#unwatched = found.unwatched
    this.#unread = found.unread
    this.#isRedisRead = found.isRedisRead
  }

  /** Redis is that of another installation: nothing says that keys of a namespace which this one does not watch were ever its own. */
  forgetUnwatched(): void {
    for (const uid of this.#unwatched) this.forget(uid)
  }

  /** The ApiKey was deleted, or Redis has no record of the key. */
  forget(uid: string): void {
    this.#uids.delete(uid)
  }
}
