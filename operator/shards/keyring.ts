/** The keyring: durable truth about issued keys, in Secrets of the operator's namespace. */
import type { KeyHash } from '#contract/values/credential.ts'
import { FORMAT } from '#contract/records/format.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import type { Level } from '../loop/level.ts'
import { type CommitState, SecretShards, type SecretShardsDeps, type SettledListener, type UnreadableEntry } from './secret-shards.ts'
import { FormerShards } from './former-shards.ts'
import { keyringCodec } from './keyring-codec.ts'
import { HashHolders } from './hash-holders.ts'
import { KeyringIndex } from './keyring-index.ts'
import { modelBytesOf, NamespaceShareFull, SHARE_SLACK } from './namespace-share.ts'
import { KEEP_TOMBSTONES_MS } from '#contract/records/tombstone.ts'

/**
 * Maximum size of one shard. A change rewrites the whole shard, so this bounds the time of a single change. Measured at the API server: a
 * write of 16 KiB takes 6 ms, of 256 KiB 25 ms, of 900 KiB 100 ms.
 */
const SHARD_BYTES = 256 * 1024

/** Dependencies of the keyring. `backlog` is called per namespace. */
export interface KeyringDeps extends SecretShardsDeps {
  /** Number of shards. */
  readonly shards: number
  /** Maximum number of bytes of model names in the policies of one namespace. */
  readonly maxModelBytesPerNamespace: number
  /** Entries of these keys were changed by another process since `load`. */
  readonly onAdopted?: (uids: Iterable<string>) => void
  /** Called when a key no longer has this value, so that another key may take it. */
  readonly onReleased?: (hash: KeyHash) => void
}

/** The leader's view of the keyring, by uid of the ApiKey. Entries are shared: never change an entry, commit a new one. */
export class Keyring {
  readonly #shards: SecretShards<KeyringEntry>
  readonly #former: FormerShards
  readonly #index = new KeyringIndex()
  readonly #holders = new HashHolders()
  readonly #onReleased: (hash: KeyHash) => void
  readonly #maxModelBytes: number
  readonly #listeners = new Set<SettledListener>()

  constructor(deps: KeyringDeps) {
    this.#maxModelBytes = deps.maxModelBytesPerNamespace
    this.#onReleased = deps.onReleased ?? (() => undefined)
    const codec = keyringCodec(deps.version ?? (() => FORMAT.writes))
    this.#shards = new SecretShards<KeyringEntry>({
      limitBytes: SHARD_BYTES,
      ...deps,
      set: 'keyring',
      codec,
      remedy: 'raise keyring.shards',
      groupOf: ({ namespace }) => namespace,
      onChange: (uids) => this.#changed(uids),
    })
    this.#former = new FormerShards(deps, this.#shards, codec)
  }

  /**
   * Reads every shard. A damaged shard counts as empty: its keys are recovered from Redis or their user Secrets, or reported as lost. Keys of
   * a set with another number of shards move into this set.
   * @throws KubeError when the Secrets cannot be listed, or moved entries cannot be written
   */
  async load(): Promise<void> {
    const former = await this.#shards.load()
    if (former.length > 0) await this.#former.move(former)
  }

  /** Reads every shard again, in the background. A shard that was deleted or damaged meanwhile is written again from memory. */
  check(): void {
    this.#shards.check()
  }

  /** Calls a listener whenever a commit or removal is durable or refused, never within `commit` or `remove`. @returns ends the calls */
  onSettled(listener: SettledListener): () => void {
    const end = this.#shards.onSettled(listener)
    this.#listeners.add(listener)
    return () => {
      end()
      this.#listeners.delete(listener)
    }
  }

  /**
   * Makes an entry durable. An entry whose policy grows beyond the share of its namespace is refused. A restored entry is never refused, since
   * its key was issued before.
   * @throws ZodError when no reader could read the entry again
   */
  commit(entry: KeyringEntry, level: Level, { isRestored = false } = {}): void {
    const refusal = isRestored ? undefined : this.#refusal(entry, level)
    if (refusal === undefined) return this.#shards.commit(entry, level)
    queueMicrotask(() => {
      for (const listener of this.#listeners) listener(entry.uid, refusal)
    })
  }

  #refusal(entry: KeyringEntry, level: Level): NamespaceShareFull | undefined {
    const grows = modelBytesOf(entry) - this.#modelBytes(entry.uid)
    const bytes = this.#index.modelBytesIn(entry.namespace) + grows
    if (grows <= SHARE_SLACK[level === 'urgent' ? 'urgent' : 'other'] || bytes <= this.#maxModelBytes) return undefined
    return new NamespaceShareFull(entry.namespace, { bytes, limit: this.#maxModelBytes })
  }

  /** Bytes of a key's policy, durable or pending, whichever is larger. */
  #modelBytes(uid: string): number {
    return Math.max(modelBytesOf(this.#shards.get(uid)), modelBytesOf(this.#shards.pending(uid)))
  }

  /** Changes an entry at once for `get`, durably within 5 s: for facts that can be derived again after a crash. @throws ZodError as `commit` */
  commitLater(entry: KeyringEntry): void {
    this.#shards.commitLater(entry)
  }

  /** Drops the entry of a key. */
  remove(uid: string, level: Level): void {
    this.#shards.remove(uid, level)
  }

  /** Drops the tombstones that are old enough, in grouped writes. @param now ms since 1970 @returns the number of dropped tombstones */
  expireTombstones(now: number): number {
    const old = [...this.#index.deletedBefore(now - KEEP_TOMBSTONES_MS)].filter((uid) => this.state(uid) === 'Durable')
    for (const uid of old) this.remove(uid, 'background')
    return old.length
  }

  /** The newest entry of an ApiKey that is durable or rides along. */
  get(uid: string): KeyringEntry | undefined {
    return this.#shards.get(uid)
  }

  /** The entry of a commit that is not durable yet; undefined without one, and for a removal. */
  pending(uid: string): KeyringEntry | undefined {
    return this.#shards.pending(uid)
  }

  state(uid: string): CommitState {
    return this.#shards.state(uid)
  }

  /** Every entry as `get` gives it, tombstones included. */
  entries(): Iterable<KeyringEntry> {
    return this.#shards.entries()
  }

  /** Entries of one namespace as `get` gives them, tombstones included. */
  *entriesIn(namespace: string): IterableIterator<KeyringEntry> {
    for (const uid of this.#index.in(namespace)) {
      const entry = this.get(uid)
      if (entry) yield entry
    }
  }

  /** Keys that have a live value with this hash, durable or about to be. */
  *holdersOf(hash: KeyHash): IterableIterator<KeyringEntry> {
    for (const uid of this.#holders.of(hash)) {
      const entry = this.pending(uid) ?? this.get(uid)
      if (entry) yield entry
    }
  }

  /** Number of keys of one namespace, including tombstones and commits that are not durable yet. */
  countIn(namespace: string): number {
    return this.#index.in(namespace).size
  }

  /** Number of all keys, including tombstones and commits that are not durable yet. */
  get size(): number {
    return this.#index.size
  }

  /** Newest revision of any entry. */
  get revision(): number {
    return this.#index.revision
  }

  /** Number of commits and removals that are not durable yet. */
  get pendingCount(): number {
    return this.#shards.pendingCount
  }

  /** Entries that another build wrote. They are never changed. */
  *unreadable(): IterableIterator<UnreadableEntry> {
    yield* this.#shards.unreadable()
    yield* this.#former.unreadable
  }

  /** Whether this key may have an entry that this build cannot read. Then the state of the key is unknown, and a commit is refused. */
  isUnreadable(uid: string): boolean {
    return this.#shards.isUnreadable(uid) || this.#former.mayHold(uid)
  }

  /** Shards that were damaged when they were read. */
  get damaged(): ReadonlySet<number> {
    return this.#shards.damaged
  }

  /** Whether the entry of this key may have been lost with a damaged shard. */
  isDamaged(uid: string): boolean {
    return this.#shards.isDamaged(uid)
  }

  /** Writes all pending entries, before a clean end. @throws the first error */
  flush(): Promise<void> {
    return this.#shards.flush()
  }

  stop(): void {
    this.#shards.stop()
    this.#former.stop()
  }

  #changed(uids: Iterable<string>): void {
    for (const uid of uids) {
      const [durable, pending] = [this.#shards.get(uid), this.#shards.pending(uid)]
      this.#index.set(uid, durable ?? pending, this.#modelBytes(uid))
      for (const hash of this.#holders.set(uid, [durable, pending])) this.#onReleased(hash)
    }
  }
}
