import { hash } from 'node:crypto'
import type { StoredEntries } from './packed-entries.ts'
import type { ShardData } from './shard-codec.ts'

export interface Change<Entry> {
  readonly id: string
  /** undefined = the entry is removed. */
  readonly entry: Entry | undefined
  readonly isUrgent: boolean
  /** The group whose backlog decides how long the change may wait, for example a namespace. */
  readonly group: string
  /** Orders changes of one id. */
  readonly seq: number
  /** Time of the oldest change of this id that is not durable yet, ms monotonic. */
  readonly sinceMs: number
}

/** An entry or shard of another build. This build never changes it. */
export interface UnreadableEntry {
  readonly secret: string
  /** undefined: the whole shard, or an entry with an unknown id. */
  readonly id: string | undefined
  /** For example `version 2`. */
  readonly why: string
}

/** One Secret of a set as this process knows it, and the changes for its next write. */
export class Shard<Entry> {
  readonly index: number
  readonly name: string
  /** The Secret as last read or written; undefined = there is none. */
  secret: { readonly uid: string | undefined; readonly resourceVersion: string | undefined } | undefined
  /** false = the Secret must be read before the next write. */
  isKnown = false
  /** Whether the Secret differs from memory: then it is written even without a change. */
  isDirty = false
  /** Fencing token of the leader that claimed the Secret; 0 without one. */
  fence = 0
  /** Why this build cannot read the Secret; then the Secret is never written. */
  frozen: string | undefined
  /** Whether the Secret was damaged, so that entries may be lost. */
  isDamaged = false
  /** Damaged data that must be copied before the next write. */
  aside: ShardData | undefined
  /** Size of the data, as last read or written. */
  bytes = 0
  /** Entries in the Secret by id, in the order of the Secret. */
  stored: StoredEntries<Entry> = new Map()
  /** Changes that ride along: they have taken effect in memory, and become durable with the next write. */
  readonly riding = new Map<string, Change<Entry>>()
  /** Commits and removals that are not durable yet. */
  readonly pending = new Map<string, Change<Entry>>()
  writing: Promise<void> | undefined
  /** Time of the next write, ms monotonic. */
  dueMs = Infinity
  /** Time before which changes that may wait begin no write, ms monotonic: the last write was large. */
  restsUntilMs = 0
  /** Longest wait of the most hurried pending change, ms: of all shards that are due, the one with the shortest wait is written first. */
  lingerMs = Infinity
  /** Whether a change waits that must not wait for others. */
  isUrgent = false
  /** Sequence number of the last write of this shard, counted over the set. */
  lastWrite = 0

  constructor(index: number, name: string) {
    this.index = index
    this.name = name
  }

  /** The newest entry that is durable or rides along. */
  get(id: string): Entry | undefined {
    return (this.riding.get(id) ?? this.stored.get(id))?.entry
  }

  /** Schedules a write for changes that ride. @param atMs its time, unless the shard still rests then */
  letRide(atMs: number): void {
    this.dueMs = Math.min(this.dueMs, Math.max(atMs, this.restsUntilMs))
  }

  /** All changes of the next write: for each id the newest change. */
  changes(): readonly Change<Entry>[] {
    const newest = new Map(this.riding)
    for (const [id, change] of this.pending) if ((newest.get(id)?.seq ?? -1) < change.seq) newest.set(id, change)
    return [...newest.values()]
  }
}

/** Size of the data of a Secret, bytes. */
export function sizeOf(data: ShardData): number {
  return Object.values(data).reduce((sum, text) => sum + Buffer.byteLength(text, 'base64'), 0)
}

/** Returns the shard of an entry. The first bits of SHA-256 of the id decide, so every process gets the same shard. @param shards number of shards, 1…2^16 */
export function shardOf(id: string, shards: number): number {
  const first = Number.parseInt(hash('sha256', id, 'hex').slice(0, 8), 16)
  return Math.floor((first / 2 ** 32) * shards)
}
