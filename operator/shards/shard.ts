import { type Change, PendingChanges } from './pending-changes.ts'
import type { ShardData, StoredEntry } from './shard-codec.ts'

/** One Secret of a set as this process knows it, and the changes for its next write. */
export class Shard<Entry> {
  readonly index: number
  /** Name of the Secret. */
  readonly name: string
  /** The Secret as last read or written; undefined = there is none. */
  secret: { readonly uid: string | undefined; readonly resourceVersion: string | undefined } | undefined
  /** false = the Secret must be read before the next write. */
  isKnown = false
  /** Whether the Secret differs from memory: then it is written even without a change. */
  isDirty = false
  /** Why this build cannot read the Secret; then the Secret is never written. */
  frozen: string | undefined
  /** Damaged data that must be copied before the next write. */
  aside: ShardData | undefined
  /** Size of the data, as last read or written. */
  bytes = 0
  /** Entries in the Secret by id, in the order of the Secret. */
  stored: ReadonlyMap<string, StoredEntry<Entry>> = new Map()
  /** Changes that ride along: they have taken effect in memory, and become durable with the next write. */
  readonly riding = new Map<string, Change<Entry>>()
  /** Time since which the oldest change in `riding` waits, or of its last try, ms monotonic. */
  ridingSince = 0
  /** Commits and removals that are not durable yet. */
  readonly pending = new PendingChanges<Entry>()
  isWriting = false
  /** Sequence number of the last write of this shard, counted over the set. */
  lastWrite = 0
  /** Whether the shard must be read soon, even without a pending change. */
  isCheckDue = false
  /** Whether the writer has warned about the size. */
  isNearlyFull = false

  constructor(index: number, name: string) {
    this.index = index
    this.name = name
  }

  /** The newest entry that is durable or riding along. */
  get(id: string): Entry | undefined {
    return (this.riding.get(id) ?? this.stored.get(id))?.entry
  }

  /** All changes of the next write: for each id the newest change. */
  changes(): readonly Change<Entry>[] {
    const newest = new Map(this.riding)
    for (const [id, change] of this.pending) if ((newest.get(id)?.seq ?? -1) < change.seq) newest.set(id, change)
    return [...newest.values()]
  }

  /** Whether this change rides along. */
  rides({ id, seq }: Change<Entry>): boolean {
    return this.riding.get(id)?.seq === seq
  }

  /** Drops a durable change and the change that it replaced. A newer change of the same id stays. @returns false if the change only rode along */
  settle({ id, seq }: Change<Entry>): boolean {
    const isRider = this.riding.get(id)?.seq === seq
    if ((this.riding.get(id)?.seq ?? Infinity) <= seq) this.riding.delete(id)
    if ((this.pending.get(id)?.seq ?? Infinity) <= seq) this.pending.delete(id)
    return !isRider
  }

  /** Drops a change that cannot be written. Older and newer changes of the same id stay. */
  refuse({ id, seq }: Change<Entry>): void {
    if (this.riding.get(id)?.seq === seq) this.riding.delete(id)
    if (this.pending.get(id)?.seq === seq) this.pending.delete(id)
  }
}
