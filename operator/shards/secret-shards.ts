/**
 * Durable entries in a fixed number of Secrets of the operator's namespace. The leader is the only writer. No caller waits for a write: commits
 * return at once, all pending commits of a shard share its next PUT, and listeners receive the results.
 */
import { FORMAT } from '#contract/records/format.ts'
import { SHARDS_LABEL, type ShardSet, shardSecretName } from '#contract/records/mounted-folder.ts'
import type { KubePort } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { breathe, type Cancel, type Clock } from '#platform/clock.ts'
import { inParallel } from '../loop/in-parallel.ts'
import type { Level } from '../loop/level.ts'
import type { OperatorDeps } from '../operator-deps.ts'
import { lingerMs, restMs, RIDE_MS } from './linger.ts'
import { PackedEntries } from './packed-entries.ts'
import { type Change, Shard, shardOf, type UnreadableEntry } from './shard.ts'
import type { ShardCodec } from './shard-codec.ts'
import { ShardWriter } from './shard-writer.ts'

/** This many commits of one shard need not wait for more. */
const FULL_BATCH = 64
/** Maximum number of shard writes under way over all shards, without urgent writes. */
const WRITES = 2
/** Maximum number of shard writes under way, including urgent writes. */
const ALL_WRITES = 4
/** Maximum number of urgent writes under way: thousands of restricting edits must not delay the write of another tenant's new key. */
const URGENT_WRITES = 3

/** What distinguishes one set of Secrets from the others. */
export interface ShardSetKind<Entry> {
  readonly set: ShardSet
  /** @param version of the headers to write */
  readonly codec: (version: () => number) => ShardCodec<Entry>
  /** Remedy for a full shard, for example `raise keyring.shards`. */
  readonly remedy: string
  /** Maximum size of the data in one Secret. Changes that shrink or revoke may exceed it, up to the API server's 1 MiB. */
  readonly limitBytes: number
  /** Shortest wait of a commit that is not urgent, ms; default: a few ms. */
  readonly lingerMs?: number
  /** Longest wait of a change that rides along with another write of its shard, ms; default 5 s. A large shard waits longer. */
  readonly rideMs?: number
  /** A damaged Secret stays as it is until an administrator restores or deletes it: nothing else has its entries. */
  readonly keepsDamaged?: boolean
}

export interface SecretShardsDeps {
  readonly kube: KubePort
  readonly namespace: string
  readonly clock: Clock
  /** Throws when this process no longer leads: a deposed leader must not write. */
  readonly assertLeading: () => void
  /** Reports a damaged, unreadable or nearly full shard. */
  readonly warn: (message: string) => void
  /** How many changes of a group will come soon: the more, the longer a commit that is not urgent waits to share a write. */
  readonly backlog?: (group: string) => number
  /** Version of the headers to write: the highest one that this build can write and every live gateway reads; default: the newest. */
  readonly version?: () => number
  /** Reports each PUT. */
  readonly onWrite?: (shard: number, bytes: number, seconds: number) => void
  /** For sets whose leader claims every Secret: the fencing token of this leader, and a listener for a higher one in a Secret. */
  readonly claim?: { readonly fence: () => number; readonly onFenced: (fence: number) => void }
  /** Entries of these ids were changed by another process since `load`. */
  readonly onAdopted?: ((ids: Iterable<string>) => void) | undefined
}

/** The dependencies that all sets have alike. */
export function shardsDeps({ kube, clock, settings: { namespace }, leader: { assertLeading }, log }: OperatorDeps): SecretShardsDeps {
  return { kube, clock, namespace, assertLeading, warn: (message) => log.warn(message) }
}

export interface SecretShardsOptions<Entry> extends ShardSetKind<Entry>, SecretShardsDeps {
  readonly shards: number
  /** The group whose backlog counts for an entry, for example its namespace; default: one group for all entries. */
  readonly groupOf?: (entry: Entry) => string
}

/** Receives the result of a commit or removal: durable, or refused with an error (the former entry stays). Riding changes report errors only. */
export type SettledListener = (id: string, error: Error | undefined) => void

/** Entries by id. They are shared: never change an entry, commit a new one. */
export class SecretShards<Entry> {
  readonly #options: SecretShardsOptions<Entry>
  readonly #codec: ShardCodec<Entry>
  readonly #shards: readonly Shard<Entry>[]
  readonly #writer: ShardWriter<Entry>
  readonly #listeners: SettledListener[] = []
  readonly #inFlight = { urgent: 0, others: 0 }
  /** Number of pending changes by group. */
  readonly #waiting = new Map<string, number>()
  #seq = 0
  #writes = 0
  #cancelTimer: Cancel = () => undefined
  #isPumpQueued = false
  #isStopped = false
  #isLoaded = false

  constructor(options: SecretShardsOptions<Entry>) {
    const { set, shards, codec, version = () => FORMAT.writes } = options
    this.#options = options
    this.#codec = codec(version)
    this.#shards = Array.from({ length: shards }, (_, index) => new Shard(index, shardSecretName(set, shards, index)))
    this.#writer = new ShardWriter<Entry>(options, this.#codec, {
      settled: (shard, change, error) => this.#settled(shard, change, error),
      adopted: (ids) => {
        this.changed(ids)
        if (this.#isLoaded) options.onAdopted?.(ids)
      },
      merged: (entry) => this.commitLater(entry),
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
    await inParallel(this.#shards, ALL_WRITES, (shard) => this.#writer.keepAside(shard)).catch((error: unknown) =>
      warn(`damaged data could not be kept aside (${String(error)}); tried again before the shard is written`),
    )
    this.#isLoaded = true
    return [...byName.values()]
  }

  /** The highest fencing token in any Secret of the set; 0 for a set that nobody has claimed. */
  get fence(): number {
    return Math.max(0, ...this.#shards.map(({ fence }) => fence))
  }

  /**
   * Writes the fencing token of this leader into every present Secret: a former leader that still writes finds it and stops.
   * @param isWhole creates the absent Secrets of a set that has any
   * @throws KubeError
   */
  async claim(isWhole = false): Promise<void> {
    const present = this.#shards.filter(({ secret }) => secret !== undefined)
    const claimed = isWhole && present.length > 0 ? this.#shards : present
    for (const shard of claimed) shard.isDirty = true
    await inParallel(claimed, ALL_WRITES, (shard) => this.#write(shard))
  }

  /** Calls a listener whenever a commit or removal is durable or refused, never within `commit` or `remove`. */
  onSettled(listener: SettledListener): void {
    this.#listeners.push(listener)
  }

  /**
   * Makes an entry durable. Until then `get` returns the former entry. A change of an entry that another process has changed meanwhile is
   * refused with a Conflict: its author must decide again.
   * @throws when no reader could read the entry again: it would be lost
   */
  commit(entry: Entry, level: Level): void {
    this.#codec.write(entry, undefined)
    this.#enqueue(this.#codec.idOf(entry), entry, level)
  }

  remove(id: string, level: Level): void {
    this.#enqueue(id, undefined, level)
  }

  /** Changes an entry at once for `get`, durably with the next write within `rideMs`, or later in a large shard: for facts that can be derived again after a crash. */
  commitLater(entry: Entry): void {
    const id = this.#codec.idOf(entry)
    const shard = this.#shardOf(id)
    if (shard.pending.has(id)) return this.#enqueue(id, entry, 'background')
    this.#codec.write(entry, undefined)
    const nowMs = this.#options.clock.monotonic()
    const sinceMs = shard.riding.get(id)?.sinceMs ?? nowMs
    shard.riding.set(id, { id, entry, isUrgent: false, group: '', seq: ++this.#seq, sinceMs })
    shard.letRide(nowMs + (this.#options.rideMs ?? RIDE_MS))
    this.#changedOne(id)
  }

  /** The newest entry that is durable or rides along. */
  get(id: string): Entry | undefined {
    return this.#shardOf(id).get(id)
  }

  /** The entry in its Secret, as last read or written. */
  durable(id: string): Entry | undefined {
    return this.#shardOf(id).stored.get(id)?.entry
  }

  /** The entry of a commit that is not durable yet; undefined without one, and for a removal. */
  pending(id: string): Entry | undefined {
    return this.#shardOf(id).pending.get(id)?.entry
  }

  /** The entry of the newest commit or removal, durable or not. */
  newest(id: string): Entry | undefined {
    const pending = this.#shardOf(id).pending.get(id)
    return pending ? pending.entry : this.get(id)
  }

  /** Whether all commits and removals of an id are in its Secret. */
  state(id: string): 'Durable' | 'Pending' {
    return this.#shardOf(id).pending.has(id) ? 'Pending' : 'Durable'
  }

  /** Every entry, as `get` returns it. */
  *entries(): IterableIterator<Entry> {
    for (const shard of this.#shards) {
      for (const { id = '', entry } of shard.stored.values()) if (entry !== undefined) yield shard.riding.get(id)?.entry ?? entry
      for (const [id, { entry }] of shard.riding) if (entry !== undefined && !shard.stored.has(id)) yield entry
    }
  }

  /** The ids of all entries, and of all commits and removals that are not durable yet. */
  *ids(): IterableIterator<string> {
    for (const { stored, riding, pending } of this.#shards)
      yield* new Set([...Array.from(stored.values(), ({ id = '' }) => id), ...riding.keys(), ...pending.keys()])
  }

  *unreadable(): IterableIterator<UnreadableEntry> {
    for (const { name: secret, frozen, stored } of this.#shards) {
      if (frozen !== undefined) yield { secret, id: undefined, why: frozen }
      const entries = stored instanceof PackedEntries ? stored.foreign : stored.values()
      for (const { id, why } of entries) if (why !== undefined) yield { secret, id, why }
    }
  }

  /** Whether this id may have an entry that this build cannot read: a change of it would be refused. */
  isUnreadable(id: string): boolean {
    const { frozen, stored } = this.#shardOf(id)
    return frozen !== undefined || stored.get(id)?.why !== undefined
  }

  /** Whether the entry of this id may have been lost with a damaged shard. */
  isDamaged(id: string): boolean {
    return this.#shardOf(id).isDamaged
  }

  /** Whether the set may have entries that this build does not know: a part of it was damaged, or cannot be read. */
  get mayLackEntries(): boolean {
    return this.#shards.some(({ isDamaged }) => isDamaged) || this.unreadable().next().done !== true
  }

  /** Number of commits and removals that are not durable yet. */
  get pendingCount(): number {
    return this.#shards.reduce((sum, { pending }) => sum + pending.size, 0)
  }

  /** Time for which the oldest change has waited to become durable, s. */
  get ageSeconds(): number {
    const nowMs = this.#options.clock.monotonic()
    const waiting = this.#shards.flatMap(({ riding, pending }) => [...riding.values(), ...pending.values()])
    return waiting.reduce((longest, { sinceMs }) => Math.max(longest, nowMs - sinceMs), 0) / 1_000
  }

  /** Reads every shard again, in the background. A shard that was deleted or damaged meanwhile is written again from memory. */
  check(): void {
    for (const shard of this.#shards) Object.assign(shard, { isKnown: false, dueMs: Number.NEGATIVE_INFINITY })
    this.#pumpSoon()
  }

  /** Writes all pending changes, before a clean end. @throws the first error; failed writes are not tried again here */
  async flush(): Promise<void> {
    await inParallel(this.#shards, ALL_WRITES, async (shard) => {
      while (shard.writing) await shard.writing
      if (shard.pending.size + shard.riding.size > 0) await this.#write(shard)
    })
  }

  /** Stops: no further write begins. */
  stop(): void {
    this.#isStopped = true
    this.#cancelTimer()
  }

  protected get absent(): ReadonlyArray<Shard<Entry>> {
    return this.#shards.filter(({ secret }) => secret === undefined)
  }

  /** Writes these shards, also without a change. */
  protected writeSoon(shards: Iterable<Shard<Entry>>): void {
    for (const shard of shards) Object.assign(shard, { isDirty: true, dueMs: Number.NEGATIVE_INFINITY })
    this.#pumpSoon()
  }

  /** The answers of `get`, `pending` and `state` for these ids may have changed. */
  protected changed(_ids: Iterable<string>): void {
    // for indexes of a derived class
  }

  protected notify(id: string, error: Error | undefined): void {
    for (const listener of this.#listeners) listener(id, error)
  }

  #shardOf(id: string): Shard<Entry> {
    const shard = this.#shards[shardOf(id, this.#shards.length)]
    if (!shard) throw new RangeError('shard out of range')
    return shard
  }

  #enqueue(id: string, entry: Entry | undefined, level: Level): void {
    const shard = this.#shardOf(id)
    const former = shard.pending.get(id)
    const group = former?.group ?? this.#groupOf(entry ?? shard.get(id))
    const sinceMs = former?.sinceMs ?? this.#options.clock.monotonic()
    const isUrgent = level === 'urgent' || former?.isUrgent === true
    if (!former) this.#count(group, 1)
    shard.pending.set(id, { id, entry, group, isUrgent, seq: ++this.#seq, sinceMs })
    shard.isUrgent ||= isUrgent
    this.#schedule(shard, group, level)
    this.#changedOne(id)
  }

  #groupOf(entry: Entry | undefined): string {
    return (entry !== undefined && this.#options.groupOf?.(entry)) || ''
  }

  #schedule(shard: Shard<Entry>, group: string, level: Level): void {
    const { shards, clock, backlog = () => 0, lingerMs: leastMs = 0 } = this.#options
    const waitMs = Math.max(leastMs, lingerMs((this.#waiting.get(group) ?? 0) + backlog(group), shards))
    const nowMs = clock.monotonic()
    shard.lingerMs = Math.min(shard.lingerMs, waitMs)
    const dueMs = shard.pending.size < FULL_BATCH ? nowMs + waitMs : nowMs
    shard.dueMs = Math.min(shard.dueMs, level === 'background' ? Math.max(dueMs, shard.restsUntilMs) : dueMs)
  }

  #count(group: string, change: 1 | -1): void {
    const count = (this.#waiting.get(group) ?? 0) + change
    if (count > 0) this.#waiting.set(group, count)
    else this.#waiting.delete(group)
  }

  #changedOne(id: string): void {
    this.changed([id])
    this.#pumpSoon()
  }

  /** Drops a change that is durable or refused. A durable change also drops older changes of its id. A refused change drops no other. */
  #settled(shard: Shard<Entry>, { id, seq }: Change<Entry>, error: Error | undefined): void {
    const isOver = (held: Change<Entry> | undefined): boolean => held !== undefined && (error ? held.seq === seq : held.seq <= seq)
    const [rider, commit] = [shard.riding.get(id), shard.pending.get(id)]
    if (isOver(rider)) shard.riding.delete(id)
    else if (rider && !error) shard.riding.set(id, { ...rider, sinceMs: this.#options.clock.monotonic() })
    if (commit && isOver(commit)) {
      shard.pending.delete(id)
      this.#count(commit.group, -1)
    }
    this.changed([id])
    if (isOver(commit) || (error && isOver(rider))) this.notify(id, error)
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

  /**
   * Begins the writes that are due, and sets the timer for the next one. Urgent shards are written in the order of their last write, so that no shard
   * starves. The other shards are written in the order of their waits, and of equal waits the shard with the most commits comes first. So the storm of
   * one tenant does not delay a single change of another.
   */
  #pump(): void {
    this.#cancelTimer()
    if (this.#isStopped) return
    const nowMs = this.#options.clock.monotonic()
    const urgent = this.#shards.filter(({ isUrgent }) => isUrgent)
    for (const shard of urgent.sort((a, b) => a.lastWrite - b.lastWrite)) this.#start(shard, 'urgent')
    const due = this.#shards.filter(({ isUrgent, dueMs }) => isUrgent || dueMs <= nowMs)
    for (const shard of due.sort((a, b) => a.lingerMs - b.lingerMs || b.pending.size - a.pending.size)) this.#start(shard, 'others')
    const nextMs = Math.min(...this.#shards.map(({ dueMs }) => (dueMs > nowMs ? dueMs : Infinity)))
    if (nextMs < Infinity) this.#cancelTimer = this.#options.clock.after(nextMs - nowMs, () => this.#pump())
  }

  /** Begins a write of a shard while there is room; otherwise the end of a write tries again. */
  #start(shard: Shard<Entry>, kind: 'urgent' | 'others'): void {
    const { urgent, others } = this.#inFlight
    const hasRoom = urgent + others < ALL_WRITES && (kind === 'urgent' ? urgent < URGENT_WRITES : others < WRITES)
    if (hasRoom && !shard.writing) this.#write(shard, kind).catch(() => undefined) // listeners receive the error
  }

  #write(shard: Shard<Entry>, kind: 'urgent' | 'others' = 'others'): Promise<void> {
    this.#inFlight[kind] += 1
    Object.assign(shard, { dueMs: Infinity, lingerMs: Infinity, isUrgent: false })
    shard.lastWrite = ++this.#writes
    shard.writing = this.#writer.write(shard).finally(() => {
      this.#inFlight[kind] -= 1
      shard.writing = undefined
      shard.restsUntilMs = this.#options.clock.monotonic() + restMs(shard.bytes)
      if (shard.riding.size > 0) shard.letRide(this.#options.clock.monotonic() + (this.#options.rideMs ?? RIDE_MS))
      this.#pumpSoon()
    })
    return shard.writing
  }
}
