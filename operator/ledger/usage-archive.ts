/**
 * The usage of closed days of every subject, in Secrets of their own: those of the spend are written every few seconds, and would carry a
 * month of usage each time. They are another number of shards of the same set, so that an operator before them leaves them as they are.
 */
import { shardOf } from '../secret-shards/shard-of.ts'
import { SecretShards, type SecretShardsDeps } from '../secret-shards/secret-shards.ts'
import { type UsageEntry, usageCodec } from './usage-entry.ts'
import { withoutOldestDays } from './usage-days.ts'

/** 1.2 million characters in each. Another number than `SPEND_SHARDS`, or the names would be the same. */
export const USAGE_SHARDS = 32
/** Between two writes of one shard, ms: nobody waits for it, and Redis has the day for another day. */
const WRITE_EVERY_MS = 60_000
/** Most text of one shard. Compressed, even random words of it have no more than 900 KiB, so no write is refused for its size. */
export const MAX_SHARD_CHARACTERS = 1_200_000
/** This part of a full shard is emptied at once: every step reads all of its entries. */
const ROOM = 0.05

/** What the archive needs. */
export interface UsageArchiveDeps extends Omit<SecretShardsDeps, 'backlog' | 'version' | 'onWrite'> {
  /** Most text of one shard; default `MAX_SHARD_CHARACTERS`. */
  readonly limitCharacters?: number
  /** Days were dropped because a shard was full. */
  readonly onDropped?: ((days: number) => void) | undefined
}

/** By uid of the ApiKey. */
export class UsageArchive {
  readonly #deps: UsageArchiveDeps
  readonly #shards: SecretShards<UsageEntry>
  /** Characters by uid, of each shard. */
  readonly #sizes = Array.from({ length: USAGE_SHARDS }, () => new Map<string, number>())
  readonly #totals = Array.from({ length: USAGE_SHARDS }, () => 0)
  /** Since when an entry waits to become durable, ms monotonic. */
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

  /** @throws KubeError when the Secrets cannot be listed */
  async load(): Promise<void> {
    await this.#shards.load()
  }

  get(uid: string): UsageEntry | undefined {
    return this.#shards.get(uid)
  }

  /** Whether another build wrote what is known of a subject: it stays as it is. */
  isUnreadable(uid: string): boolean {
    return this.#shards.isUnreadable(uid)
  }

  /** Keeps an entry; if its shard is full then, the oldest days of all subjects of the shard go. */
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

  /** How long the oldest entry waits to become durable, s. */
  get ageSeconds(): number {
    const now = this.#deps.clock.monotonic()
    const [oldest = now] = this.#waiting.values()
    return (now - oldest) / 1_000
  }

  /** Entries of another version, which stay as they are. */
  get unreadable(): number {
    return [...this.#shards.unreadable()].length
  }

  /** Has every Secret read again: one that was deleted or damaged meanwhile is written again from memory. */
  check(): void {
    this.#shards.check()
  }

  /** Writes what is not durable, before a clean end. @throws the first error */
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
