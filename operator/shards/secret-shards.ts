/**
 * Durable entries in a fixed number of Secrets of the operator's namespace. The leader is the only writer. No caller waits for a write: commits
 * return at once, all pending commits of a shard share its next PUT, and listeners receive the results.
 */
import type { Cancel, Clock } from '#platform/clock.ts'
import { SHARDS_LABEL, type ShardSet, shardSecretName } from '#contract/records/mounted-folder.ts'
import type { KubePort } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { highest, type Level } from '../loop/level.ts'
import { breathe } from '#platform/breathe.ts'
import { Drain } from './drain.ts'
import type { ShardCodec } from './shard-codec.ts'
import { shardOf } from './shard-of.ts'
import { ShardWriter } from './shard-writer.ts'
import type { Change } from './pending-changes.ts'
import { Shard } from './shard.ts'
import { dueAt, hasRoom, lingerMs, writeOrder } from './write-schedule.ts'

/** etcd refuses objects above 1.5 MiB, and the API server refuses Secrets above 1 MiB. */
const SHARD_BYTES_LIMIT = 900 * 1024

/** Dependencies of a set of shards. */
export interface SecretShardsDeps {
  readonly kube: KubePort
  /** The operator's own namespace. */
  readonly namespace: string
  readonly clock: Clock
  /** Throws when this process no longer leads: a deposed leader must not write. */
  readonly assertLeading: () => void
  /** Reports a damaged, unreadable or nearly full shard. */
  readonly warn: (message: string) => void
  /**
   * How many changes of a group will come soon, for example the depth of the work queue. The more will come, the longer a commit that is not
   * urgent waits for others that share its write.
   */
  readonly backlog?: (group: string) => number
  /** Maximum size of one Secret; default 900 KiB. */
  readonly limitBytes?: number
  /** Version of the headers to write: the highest one that this build can write and every live gateway reads. */
  readonly version?: () => number
  /** Reports each PUT. */
  readonly onWrite?: (shard: number, bytes: number, seconds: number) => void
}

/** One set of shards. */
export interface SecretShardsOptions<Entry> extends SecretShardsDeps {
  readonly set: ShardSet
  /** Number of shards. */
  readonly shards: number
  readonly codec: ShardCodec<Entry>
  /** Remedy for a full shard, for example `raise keyring.shards`. */
  readonly remedy: string
  /** The group whose backlog counts for an entry, for example its namespace; default: one group for all entries. */
  readonly groupOf?: (entry: Entry) => string
  /** Longest wait of a change that rides along with another write of its shard, ms; default 5 s. */
  readonly rideMs?: number
  /** Entries of these ids were changed by another process since `load`. */
  readonly onAdopted?: ((ids: Iterable<string>) => void) | undefined
  /** The answers of `get`, `pending` and `state` for these ids may have changed. */
  readonly onChange?: (ids: Iterable<string>) => void
}

/** Whether all commits and removals of an id are in its Secret. */
export type CommitState = 'Durable' | 'Pending'

/** Receives the result of a commit or removal: durable, or refused with an error (the former entry stays). Riding changes report errors only. */
export type SettledListener = (id: string, error: Error | undefined) => void

/** An entry or shard of another build. This build never changes it. */
export interface UnreadableEntry {
  /** Name of the Secret. */
  readonly secret: string
  /** undefined: the whole shard, or an entry with an unknown id. */
  readonly id: string | undefined
  /** For example `version 2`. */
  readonly why: string
}

/** Entries by id. They are shared: never change an entry, commit a new one. */
export class SecretShards<Entry> {
  readonly #options: SecretShardsOptions<Entry>
  readonly #shards: readonly Shard<Entry>[]
  readonly #writer: ShardWriter<Entry>
  readonly #listeners = new Set<SettledListener>()
  readonly #damaged = new Set<number>()
  readonly #inFlight = { urgent: 0, others: 0 }
  #seq = 0
  /** Number of writes that have begun. */
  #writes = 0
  #drain: Drain<Entry> | undefined
  #cancelTimer: Cancel = () => undefined
  #isPumpQueued = false
  #isStopped = false
  #isLoaded = false

  constructor(options: SecretShardsOptions<Entry>) {
    this.#options = options
    const { set, shards } = options
    this.#shards = Array.from({ length: shards }, (_, index) => new Shard(index, shardSecretName(set, shards, index)))
    this.#writer = new ShardWriter({
      limitBytes: SHARD_BYTES_LIMIT,
      ...options,
      settled: (change, error) => this.#settled(change, error),
      changed: (ids) => options.onChange?.(ids),
      adopted: (ids) => {
        if (this.#isLoaded) options.onAdopted?.(ids)
      },
      damaged: (shard) => this.#damaged.add(shard.index),
    })
  }

  /**
   * Reads every shard, in one call. A damaged shard counts as empty, and its bytes are kept in another Secret. A shard of another version stays.
   * @returns other Secrets with the label of this set: a set with another number of shards
   * @throws KubeError when they cannot be listed
   */
  async load(): Promise<readonly Secret[]> {
    const { kube, namespace, set, warn } = this.#options
    const present = await kube.list(secrets, namespace, `${SHARDS_LABEL}=${set}`)
    const byName = new Map(present.map((secret) => [secret.metadata.name, secret]))
    for (const shard of this.#shards) {
      await this.#writer.take(shard, byName.get(shard.name))
      byName.delete(shard.name)
      await breathe()
    }
    const kept = await Promise.allSettled(this.#shards.map((shard) => this.#writer.keepAside(shard)))
    for (const one of kept) {
      if (one.status === 'rejected')
        warn(`damaged data could not be kept aside (${String(one.reason)}); tried again before the shard is written`)
    }
    this.#isLoaded = true
    return [...byName.values()]
  }

  /** Calls a listener whenever a commit or removal is durable or refused, never within `commit` or `remove`. @returns ends the calls */
  onSettled(listener: SettledListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Makes an entry durable. Until then `get` returns the former entry.
   * @throws when no reader could read the entry again: it would be lost
   */
  commit(entry: Entry, level: Level): void {
    this.#options.codec.write(entry, undefined)
    this.#enqueue(this.#options.codec.idOf(entry), entry, level)
  }

  /** Removes an entry. */
  remove(id: string, level: Level): void {
    this.#enqueue(id, undefined, level)
  }

  /** Changes an entry at once for `get`, durably with the next write within `rideMs`: for facts that can be derived again after a crash. */
  commitLater(entry: Entry): void {
    const id = this.#options.codec.idOf(entry)
    const shard = this.#shardOf(id)
    const commit = shard.pending.get(id)
    if (commit) return this.#enqueue(id, entry, commit.level)
    this.#options.codec.write(entry, undefined)
    const at = this.#options.clock.monotonic()
    if (shard.riding.size === 0) shard.ridingSince = at
    shard.riding.set(id, { id, entry, level: 'background', group: '', at, seq: ++this.#seq })
    this.#changed(id)
  }

  /** The newest entry that is durable or rides along. */
  get(id: string): Entry | undefined {
    return this.#shardOf(id).get(id)
  }

  /** The entry of a commit that is not durable yet; undefined without one, and for a removal. */
  pending(id: string): Entry | undefined {
    return this.#shardOf(id).pending.get(id)?.entry
  }

  /** The entry in the Secret. */
  durable(id: string): Entry | undefined {
    return this.#shardOf(id).stored.get(id)?.entry
  }

  state(id: string): CommitState {
    return this.#shardOf(id).pending.has(id) ? 'Pending' : 'Durable'
  }

  /** Every entry, as `get` returns it. */
  *entries(): IterableIterator<Entry> {
    for (const shard of this.#shards) {
      for (const [id, { entry }] of shard.stored) if (entry !== undefined) yield shard.riding.get(id)?.entry ?? entry
      for (const [id, { entry }] of shard.riding) if (entry !== undefined && !shard.stored.has(id)) yield entry
    }
  }

  /** Entries that another build wrote. They are never changed. */
  *unreadable(): IterableIterator<UnreadableEntry> {
    for (const { name: secret, frozen, stored } of this.#shards) {
      if (frozen !== undefined) yield { secret, id: undefined, why: frozen }
      for (const { id, why } of stored.values()) if (why !== undefined) yield { secret, id, why }
    }
  }

  /** Whether this id may have an entry that this build cannot read: a change of it would be refused. */
  isUnreadable(id: string): boolean {
    const { frozen, stored } = this.#shardOf(id)
    return frozen !== undefined || stored.get(id)?.why !== undefined
  }

  /** Shards that were damaged when they were read. Entries may be missing; a caller that has them from another source can commit them again. */
  get damaged(): ReadonlySet<number> {
    return this.#damaged
  }

  /** Whether the entry of this id may have been lost with a damaged shard. */
  isDamaged(id: string): boolean {
    return this.#damaged.has(this.#shardOf(id).index)
  }

  /** Number of commits and removals that are not durable yet. */
  get pendingCount(): number {
    return this.#shards.reduce((sum, { pending }) => sum + pending.size, 0)
  }

  /** Reads every shard again, in the background. A shard that was deleted or damaged meanwhile is written again from memory. */
  check(): void {
    for (const shard of this.#shards) Object.assign(shard, { isKnown: false, isCheckDue: true })
    this.#pumpSoon()
  }

  /** Writes all pending changes, before a clean end. @throws the first error; failed writes are not tried again here */
  flush(): Promise<void> {
    const drain = this.#drain ?? new Drain(this.#shards)
    if (!drain.isOver) this.#drain = drain
    this.#pumpSoon()
    return drain.done
  }

  /** Stops: no further write begins. */
  stop(): void {
    this.#isStopped = true
    this.#cancelTimer()
  }

  #shardOf(id: string): Shard<Entry> {
    const shard = this.#shards[shardOf(id, this.#shards.length)]
    if (!shard) throw new RangeError('shard out of range')
    return shard
  }

  #enqueue(id: string, entry: Entry | undefined, level: Level): void {
    const { clock, groupOf = () => '' } = this.#options
    const shard = this.#shardOf(id)
    const former = shard.pending.get(id)
    const known = entry ?? shard.get(id)
    const group = former?.group ?? (known === undefined ? '' : groupOf(known))
    shard.pending.set(id, {
      id,
      entry,
      group,
      level: former ? highest(former.level, level) : level,
      at: former?.at ?? clock.monotonic(),
      seq: ++this.#seq,
    })
    this.#changed(id)
  }

  #changed(id: string): void {
    this.#options.onChange?.([id])
    this.#pumpSoon()
  }

  #settled({ id }: Change<Entry>, error: Error | undefined): void {
    this.#options.onChange?.([id])
    for (const listener of this.#listeners) listener(id, error)
  }

  /** Starts due writes after the present call, so that changes made together share a write. */
  #pumpSoon(): void {
    if (this.#isPumpQueued) return
    this.#isPumpQueued = true
    queueMicrotask(() => {
      this.#isPumpQueued = false
      this.#pump()
    })
  }

  #pump(): void {
    this.#cancelTimer()
    if (this.#isStopped) return
    this.#startAll((shard) => shard.pending.summary.hasUrgent)
    this.#startAll((shard) => this.#drain?.wants(shard) === true) // after urgent changes: a drain may take a while
    if (hasRoom(false, this.#inFlight)) this.#startRipe() // otherwise the end of a write calls this again
  }

  /** Begins urgent writes while there is room. The shard whose last write is the oldest comes first, so no shard starves. */
  #startAll(isWanted: (shard: Shard<Entry>) => boolean): void {
    if (!hasRoom(true, this.#inFlight)) return
    const wanted = this.#shards.filter((shard) => !shard.isWriting && isWanted(shard))
    for (const shard of wanted.sort((a, b) => a.lastWrite - b.lastWrite)) this.#start(shard, true)
  }

  /** Begins writes that are due, and sets the timer for the next one. */
  #startRipe(): void {
    const now = this.#options.clock.monotonic()
    const lingerOf = this.#linger()
    const idle = this.#shards
      .filter(({ isWriting }) => !isWriting)
      .map((shard) => ({ shard, due: dueAt(shard, lingerOf, this.#options.rideMs) }))
    const ripe = idle.filter(({ due }) => due <= now)
    for (const shard of ripe.map(({ shard }) => shard).sort(writeOrder(lingerOf))) this.#start(shard, false)
    const next = Math.min(...idle.filter(({ due }) => due > now).map(({ due }) => due))
    if (next < Infinity) this.#cancelTimer = this.#options.clock.after(next - now, () => this.#pump())
  }

  /** How long a commit of a group waits for others: it depends on the pending changes and on those that will come. */
  #linger(): (group: string) => number {
    const { backlog = () => 0 } = this.#options
    const waiting = new Map<string, number>()
    for (const { pending } of this.#shards) {
      for (const [group, { count }] of pending.summary.groups) waiting.set(group, (waiting.get(group) ?? 0) + count)
    }
    const lingers = new Map([...waiting].map(([group, count]) => [group, lingerMs(count + backlog(group), this.#shards.length)]))
    return (group) => lingers.get(group) ?? 0
  }

  #start(shard: Shard<Entry>, isUrgent: boolean): void {
    if (!hasRoom(isUrgent, this.#inFlight)) return
    const counter = isUrgent ? 'urgent' : 'others'
    this.#inFlight[counter] += 1
    shard.isWriting = true
    shard.lastWrite = ++this.#writes
    const over = (error?: unknown): void => {
      this.#inFlight[counter] -= 1
      shard.isWriting = false
      shard.ridingSince = this.#options.clock.monotonic()
      this.#drain?.wrote(shard, error)
      if (this.#drain?.isOver === true) this.#drain = undefined
      this.#pumpSoon()
    }
    void this.#writer.write(shard).then(() => over(), over)
  }
}
