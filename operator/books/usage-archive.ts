/**
 * Keeps the usage of closed days of every subject in separate Secrets. The Secrets of spend are written every few seconds, and would contain
 * a month of usage each time. The separate Secrets are another number of shards of the same set, so that an older operator never changes
 * them.
 */
import { shardOf } from '../shards/shard-of.ts'
import { SecretShards, type SecretShardsDeps } from '../shards/secret-shards.ts'
import { type UsageEntry, usageCodec } from './usage-entry.ts'
import { withoutOldestDays } from './usage-days.ts'

/** Number of shards, with up to 1.2 million characters each. The number must differ from `SPEND_SHARDS`, because it is part of the names. */
export const USAGE_SHARDS = 32
/** Time between two writes of one shard, ms: no caller waits, and Redis keeps a closed day for another day. */
const WRITE_EVERY_MS = 60_000
/** Most characters of one shard. Even random words compress to at most 900 KiB, so no write is refused for its size. */
export const MAX_SHARD_CHARACTERS = 1_200_000
/** Fraction of a full shard that is emptied at once, because each such step reads all entries. */
const ROOM = 0.05

/** Dependencies of the archive. */
export interface UsageArchiveDeps extends Omit<SecretShardsDeps, 'backlog' | 'version' | 'onWrite'> {
  /** Most characters of one shard; default `MAX_SHARD_CHARACTERS`. */
  readonly limitCharacters?: number
  /** Called with the number of days that were dropped because a shard was full. */
  readonly onDropped?: ((days: number) => void) | undefined
}

/** Keeps entries by uid of the ApiKey. */
export class UsageArchive {
  readonly #deps: UsageArchiveDeps
  readonly #shards: SecretShards<UsageEntry>
  /** Characters by uid, for each shard. */
  readonly #sizes = Array.from({ length: USAGE_SHARDS }, () => new Map<string, number>())
  readonly #totals = Array.from({ length: USAGE_SHARDS }, () => 0)
  /** Times from which entries wait to become durable, ms monotonic. */
  readonly #waiting = new Map<string, number>()

  constructor(deps: UsageArchiveDeps) {
    this.#deps = deps
    this.#shards = new SecretShards<UsageEntry>({
      ...deps,
      set: 'spend',
      shards: USAGE_SHARDS,
      codec: usageCodec,
      remedy: 'export usage sooner, or use fewer ApiKeys',
      rideMs: WRITE_EVERY_MS,
      onChange: (uids) => this.#changed(uids),
    })
  }

  /** @throws KubeError if the Secrets cannot be listed */
  async load(): Promise<void> {
    await this.#shards.load()
  }

  get(uid: string): UsageEntry | undefined {
    return this.#shards.get(uid)
  }

  /** Whether another build wrote the entry of a subject, which then never changes. */
  isUnreadable(uid: string): boolean {
    return this.#shards.isUnreadable(uid)
  }

  /** Keeps an entry. If the shard is then too full, the oldest days of all its subjects are dropped. */
  put(entry: UsageEntry): void {
    this.#commit(entry)
    const shard = shardOf(entry.uid, USAGE_SHARDS)
    const { limitCharacters = MAX_SHARD_CHARACTERS } = this.#deps
    const excess = (this.#totals[shard] ?? 0) - limitCharacters
    if (excess > 0) this.#shrink(shard, excess + ROOM * limitCharacters)
  }

  remove(uid: string): void {
    this.#waiting.delete(uid)
    if (this.#shards.get(uid) !== undefined) this.#shards.remove(uid, 'background')
  }

  entries(): Iterable<UsageEntry> {
    return this.#shards.entries()
  }

  /** Time for which the oldest entry has waited to become durable, s. */
  get ageSeconds(): number {
    const now = this.#deps.clock.monotonic()
    const [oldest = now] = this.#waiting.values()
    return (now - oldest) / 1_000
  }

  /** Number of entries of another version, which are never changed. */
  get unreadable(): number {
    return [...this.#shards.unreadable()].length
  }

  /** Reads every Secret again. A Secret that was deleted or damaged meanwhile is written again from memory. */
  check(): void {
    this.#shards.check()
  }

  /** Writes all entries that are not durable, before a clean end. @throws the first error */
  flush(): Promise<void> {
    return this.#shards.flush()
  }

  stop(): void {
    this.#shards.stop()
  }

  #commit(entry: UsageEntry): void {
    const { clock } = this.#deps
    if (!this.#waiting.has(entry.uid)) this.#waiting.set(entry.uid, clock.monotonic())
    this.#shards.commitLater(entry)
  }

  #shrink(shard: number, excess: number): void {
    const entries = [...(this.#sizes[shard]?.keys() ?? [])].flatMap((uid) => this.#shards.get(uid) ?? [])
    const { changed, dropped } = withoutOldestDays(entries, excess)
    for (const entry of changed) this.#commit(entry)
    this.#deps.onDropped?.(dropped)
  }

  #changed(uids: Iterable<string>): void {
    for (const uid of uids) {
      const entry = this.#shards.get(uid)
      this.#measure(uid, entry?.text.length ?? 0)
      if (entry === this.#shards.durable(uid)) this.#waiting.delete(uid)
    }
  }

  #measure(uid: string, characters: number): void {
    const shard = shardOf(uid, USAGE_SHARDS)
    const sizes = this.#sizes[shard]
    this.#totals[shard] = (this.#totals[shard] ?? 0) + characters - (sizes?.get(uid) ?? 0)
    if (characters === 0) sizes?.delete(uid)
    else sizes?.set(uid, characters)
  }
}
