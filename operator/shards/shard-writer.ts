/** Reads and writes one shard: one GET if its content is not known, one PUT for all changes that fit. */
import { hash } from 'node:crypto'
import { UnknownVersion } from '#contract/records/format.ts'
import type { Clock } from '#platform/clock.ts'
import { SHARDS_LABEL, type ShardSet } from '#contract/records/mounted-folder.ts'
import { isKubeError, type KubePort } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import type { ShardCodec, ShardData, StoredEntry } from './shard-codec.ts'
import { EntryUnreadable, isContentRefused, ShardFull } from './shard-errors.ts'
import type { Change } from './pending-changes.ts'
import type { Shard } from './shard.ts'

/** Maximum number of tries of a write. After a conflict it reads the Secret again; after the last try its changes fail. */
const MAX_ATTEMPTS = 5
/** Bytes by which an entry may grow in a full shard: for a revision with one more digit; for an urgent change also for a state and a time. */
const SLACK = { urgent: 512, other: 4 }
/** The writer warns at this part of the maximum size, so that there is time to raise the number of shards. */
const NEARLY_FULL = 0.75

/** Dependencies of the writer. */
export interface ShardWriterDeps<Entry> {
  readonly kube: KubePort
  /** The operator's own namespace. */
  readonly namespace: string
  readonly clock: Clock
  /** Throws when this process no longer leads: a deposed leader must not write. */
  readonly assertLeading: () => void
  readonly warn: (message: string) => void
  readonly set: ShardSet
  /** Number of shards. */
  readonly shards: number
  readonly codec: ShardCodec<Entry>
  /** Maximum size of the data in one Secret. Changes that shrink or revoke may exceed it, up to the API server's 1 MiB. */
  readonly limitBytes: number
  /** Remedy for a full shard, for example `raise keyring.shards`. */
  readonly remedy: string
  /** Reports each PUT: index of the shard, bytes, seconds. */
  readonly onWrite?: ((shard: number, bytes: number, seconds: number) => void) | undefined
  /** Called when a commit or removal is durable, or a change is refused. */
  readonly settled: (change: Change<Entry>, error: Error | undefined) => void
  /** Called when entries of these ids may have changed. */
  readonly changed: (ids: Iterable<string>) => void
  /** Called when another process has written the entries of these ids. */
  readonly adopted: (ids: Iterable<string>) => void
  /** Called when a part of this shard was damaged. */
  readonly damaged: (shard: Shard<Entry>) => void
}

/** Intended content of a shard. */
interface Plan<Entry> {
  readonly changes: readonly Change<Entry>[]
  readonly entries: ReadonlyMap<string, StoredEntry<Entry>>
  readonly data: ShardData
  readonly bytes: number
  readonly isChanged: boolean
}

/** One write of one shard. */
interface Job<Entry> {
  readonly shard: Shard<Entry>
  /** Changes that are durable or refused. */
  readonly done: Set<Change<Entry>>
}

/** Writes shards of one set. The caller never starts two writes of one shard at once. */
export class ShardWriter<Entry> {
  readonly #deps: ShardWriterDeps<Entry>

  constructor(deps: ShardWriterDeps<Entry>) {
    this.#deps = deps
  }

  /**
   * Writes all pending changes of a shard, and settles each of them.
   * @throws the error that stopped the write; commits that were not settled are refused with this error, and changes that ride along stay
   */
  async write(shard: Shard<Entry>): Promise<void> {
    const changes = shard.changes()
    const job: Job<Entry> = { shard, done: new Set() }
    shard.isCheckDue = false
    try {
      await this.#prepare(shard)
      await this.#commit(job, changes)
    } catch (error) {
      shard.isKnown = false // a lost answer: the write may have happened
      for (const change of changes) if (!job.done.has(change) && !shard.rides(change)) this.#refuse(job, change, asError(error))
      throw error
    }
  }

  /**
   * Loads the content of a Secret. It replaces the content of memory, unless the Secret is absent or damaged. Data of another build stays as it is.
   * @param secret undefined if there is none
   */
  async take(shard: Shard<Entry>, secret: Secret | undefined): Promise<void> {
    const data = secret?.data ?? {}
    const isSame = secret !== undefined && secret.metadata.resourceVersion === shard.secret?.resourceVersion
    shard.secret = secret && { uid: secret.metadata.uid, resourceVersion: secret.metadata.resourceVersion }
    shard.isKnown = true
    if (isSame) return
    shard.frozen = undefined
    shard.bytes = sizeOf(data)
    if (Object.keys(data).length > 0) return this.#decode(shard, data)
    shard.isDirty = shard.stored.size > 0
    if (shard.isDirty) this.#deps.warn(`Secret ${shard.name} has vanished; it is written again from memory`)
  }

  async #decode(shard: Shard<Entry>, data: ShardData): Promise<void> {
    try {
      const { entries, damaged } = await this.#deps.codec.decode(data)
      if (damaged > 0) this.#foundDamage(shard, data, `${damaged} of ${damaged + entries.length} entries`)
      else shard.isDirty = false
      if (damaged === 0 || shard.stored.size === 0) this.#deps.adopted(this.#replace(shard, new Map(entries.map(keyed))))
    } catch (error) {
      if (!(error instanceof UnknownVersion)) return this.#foundDamage(shard, data, nameOf(error))
      shard.frozen = error.message
      this.#deps.warn(
        `Secret ${shard.name} was written by another version of the operator (${error.message}); it stays as it is: run an operator that reads it`,
      )
    }
  }

  #foundDamage(shard: Shard<Entry>, data: ShardData, what: string): void {
    shard.aside = data
    shard.isDirty = shard.stored.size > 0
    this.#deps.warn(`Secret ${shard.name} is damaged (${what}); its data is kept in ${damagedName(shard.name, data)}`)
    this.#deps.damaged(shard)
  }

  /** Copies damaged data into a Secret of its own, before a write replaces the data. @throws KubeError */
  async keepAside(shard: Shard<Entry>): Promise<void> {
    if (shard.aside === undefined) return
    this.#deps.assertLeading()
    const metadata = { name: damagedName(shard.name, shard.aside), namespace: this.#deps.namespace, labels: labels('damaged') }
    try {
      await this.#deps.kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: shard.aside })
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error
    }
    shard.aside = undefined
  }

  async #prepare(shard: Shard<Entry>): Promise<void> {
    if (!shard.isKnown) await this.#read(shard)
    await this.keepAside(shard)
  }

  async #read(shard: Shard<Entry>): Promise<void> {
    const { kube, namespace } = this.#deps
    await this.take(shard, await kube.get(secrets, { namespace, name: shard.name }))
  }

  async #commit(job: Job<Entry>, changes: readonly Change<Entry>[]): Promise<void> {
    const { shard } = job
    for (let attempt = 1; ; attempt++) {
      const readable = this.#readable(job, changes)
      if (shard.frozen !== undefined || (readable.length === 0 && !shard.isDirty)) return
      const plan = await this.#fitting(job, readable)
      try {
        return await this.#put(job, plan)
      } catch (error) {
        if (isContentRefused(error) && plan.changes.length > 0) return this.#split(job, plan, error)
        if (attempt >= MAX_ATTEMPTS || !isKubeError(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
        await this.#read(shard) // the Secret was changed or removed: start from its present state
        await this.keepAside(shard)
      }
    }
  }

  /** Returns the changes that may be written, and refuses changes of an entry or shard of another build. */
  #readable(job: Job<Entry>, changes: readonly Change<Entry>[]): readonly Change<Entry>[] {
    const { shard, done } = job
    for (const change of changes) {
      const why = shard.frozen ?? shard.stored.get(change.id)?.why
      if (why !== undefined) this.#refuse(job, change, new EntryUnreadable(`the entry ${change.id} of Secret ${shard.name}`, why))
    }
    return changes.filter((change) => !done.has(change))
  }

  #refuse({ shard, done }: Job<Entry>, change: Change<Entry>, error: Error): void {
    if (done.has(change)) return
    done.add(change)
    shard.refuse(change)
    this.#deps.settled(change, error)
  }

  /** Call this when the server refuses a batch: writes shrinking and urgent changes first, then halves, until the refused change is found. */
  async #split(job: Job<Entry>, { changes, bytes }: Plan<Entry>, error: unknown): Promise<void> {
    const [first] = changes
    if (changes.length === 1 && first) {
      const isSize = (isKubeError(error) && error.status === 413) || bytes > this.#deps.limitBytes
      return this.#refuse(job, first, isSize ? this.#full(job.shard, bytes) : asError(error))
    }
    for (const part of this.#parts(job.shard, changes)) await this.#commit(job, part)
  }

  #parts(shard: Shard<Entry>, changes: readonly Change<Entry>[]): ReadonlyArray<readonly Change<Entry>[]> {
    const exempt = changes.filter((change) => this.#isExempt(shard, change))
    if (exempt.length > 0 && exempt.length < changes.length) return [exempt, changes.filter((change) => !exempt.includes(change))]
    const middle = Math.ceil(changes.length / 2)
    return [changes.slice(0, middle), changes.slice(middle)]
  }

  /** Whether a change may exceed the maximum size: a removal, or growth within `SLACK`, so that a full shard does not delay a revocation. */
  #isExempt(shard: Shard<Entry>, change: Change<Entry>): boolean {
    const former = shard.stored.get(change.id)?.text.length ?? 0
    const slack = change.level === 'urgent' ? SLACK.urgent : former > 0 ? SLACK.other : 0
    return change.entry === undefined || this.#deps.codec.write(change.entry, undefined).length <= former + slack
  }

  /** The largest plan within the bound; changes that do not fit are refused. */
  async #fitting(job: Job<Entry>, changes: readonly Change<Entry>[]): Promise<Plan<Entry>> {
    let accepted = changes
    for (;;) {
      const plan = await this.#plan(job.shard, accepted)
      const growing = plan.bytes <= this.#deps.limitBytes ? [] : accepted.filter((change) => !this.#isExempt(job.shard, change))
      if (growing.length === 0) return plan
      const kept = growing.length === 1 ? [] : await this.#lightest(job.shard, growing)
      for (const change of growing) if (!kept.includes(change)) this.#refuse(job, change, this.#full(job.shard, plan.bytes))
      accepted = accepted.filter((change) => !job.done.has(change))
    }
  }

  /** The changes that fit by their own weight, in order, but never all of them, since all together did not fit. */
  async #lightest(shard: Shard<Entry>, growing: readonly Change<Entry>[]): Promise<readonly Change<Entry>[]> {
    let room = this.#deps.limitBytes - shard.bytes
    const kept: Change<Entry>[] = []
    for (const change of growing) {
      const weight = change.entry === undefined ? 0 : await this.#deps.codec.weigh(this.#deps.codec.write(change.entry, undefined))
      if (weight > room) continue
      room -= weight
      kept.push(change)
    }
    return kept.length < growing.length ? kept : kept.slice(0, Math.floor(kept.length / 2))
  }

  #full(shard: Shard<Entry>, bytes: number): ShardFull {
    const { set, limitBytes: limit, remedy } = this.#deps
    return new ShardFull(`${set} shard ${shard.index} (Secret ${shard.name})`, { bytes, limit }, remedy)
  }

  async #plan(shard: Shard<Entry>, changes: readonly Change<Entry>[]): Promise<Plan<Entry>> {
    const { codec, shards } = this.#deps
    const entries = new Map(shard.stored)
    let isChanged = false
    for (const { id, entry } of changes) {
      const former = entries.get(id)?.text
      const text = entry === undefined ? undefined : codec.write(entry, former)
      isChanged ||= text !== former
      if (entry === undefined || text === undefined) entries.delete(id)
      else entries.set(id, { id, text, entry })
    }
    const data = await codec.encode({ shards, shard: shard.index }, entries.values())
    return { changes, entries, data, bytes: sizeOf(data), isChanged }
  }

  async #put({ shard, done }: Job<Entry>, plan: Plan<Entry>): Promise<void> {
    if (plan.isChanged || shard.isDirty) await this.#send(shard, plan)
    const commits = plan.changes.filter((change) => shard.settle(change))
    this.#replace(shard, plan.entries)
    for (const change of plan.changes) done.add(change)
    for (const change of commits) this.#deps.settled(change, undefined)
  }

  async #send(shard: Shard<Entry>, { data, bytes }: Plan<Entry>): Promise<void> {
    const { kube, namespace, set, clock, onWrite, assertLeading } = this.#deps
    assertLeading()
    const started = clock.monotonic()
    const { resourceVersion } = shard.secret ?? {}
    const metadata = { name: shard.name, namespace, labels: labels(set), ...(resourceVersion ? { resourceVersion } : {}) }
    const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data }
    const written = await (shard.secret ? kube.replace(secrets, secret) : kube.create(secrets, secret))
    shard.secret = { uid: written.metadata.uid, resourceVersion: written.metadata.resourceVersion }
    shard.isDirty = false
    this.#resized(shard, bytes)
    onWrite?.(shard.index, bytes, (clock.monotonic() - started) / 1000)
  }

  #resized(shard: Shard<Entry>, bytes: number): void {
    const { set, limitBytes, warn, remedy } = this.#deps
    const isNearlyFull = bytes > limitBytes * NEARLY_FULL
    if (isNearlyFull && !shard.isNearlyFull) warn(`${set} shard ${shard.index} holds ${bytes} of ${limitBytes} bytes: ${remedy}`)
    Object.assign(shard, { bytes, isNearlyFull })
  }

  /** @returns ids of the entries that differ */
  #replace(shard: Shard<Entry>, entries: ReadonlyMap<string, StoredEntry<Entry>>): ReadonlySet<string> {
    const former = shard.stored
    shard.stored = entries
    const ids = new Set<string>()
    for (const [id, stored] of entries) if (former.get(id) !== stored) ids.add(id)
    for (const id of former.keys()) if (!entries.has(id)) ids.add(id)
    this.#deps.changed(ids)
    return ids
  }
}

/** Labels of every Secret of a set. The labels for damaged data keep its Secret out of the set. */
function labels(set: ShardSet | 'damaged'): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/managed-by': 'headgate-operator', [SHARDS_LABEL]: set }
}

function damagedName(name: string, data: ShardData): string {
  const content = JSON.stringify(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1)))
  return `${name}-damaged-${hash('sha256', content, 'hex').slice(0, 8)}`
}

/** An entry without a known id gets a key that no id can have, so that it keeps its place. */
function keyed<Entry>(stored: StoredEntry<Entry>, index: number): readonly [string, StoredEntry<Entry>] {
  return [stored.id ?? `\n${index}`, stored]
}

function sizeOf(data: ShardData): number {
  return Object.values(data).reduce((sum, text) => sum + Buffer.byteLength(text, 'base64'), 0)
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'unknown'
}
