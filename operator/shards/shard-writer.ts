/** Reads and writes one shard: one GET if its content is not known, one PUT for all changes that fit. */
import { hash } from 'node:crypto'
import { UnknownVersion } from '#contract/records/format.ts'
import { SHARDS_LABEL, type ShardSet } from '#contract/records/mounted-folder.ts'
import { isKubeError, KubeError } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { type Edits, PackedEntries, type StoredEntries } from './packed-entries.ts'
import { type Change, type Shard, sizeOf } from './shard.ts'
import type { ShardCodec, ShardData, StoredEntry } from './shard-codec.ts'
import type { SecretShardsOptions } from './secret-shards.ts'

/** Maximum number of tries of a write. After a conflict it reads the Secret again; after the last try its changes fail. */
const MAX_ATTEMPTS = 5
/** Bytes by which an entry may grow in a full shard: for a revision with one more digit; for an urgent change also for a state and a time. */
const SLACK = { urgent: 512, other: 4 }
/** Annotation of a claimed Secret: the fencing token of the leader that claimed it. */
const LEADER_ANNOTATION = 'headgate.dev/leader'
/** The writer warns at this part of the maximum size, so that there is time to raise the number of shards. */
const NEARLY_FULL = 0.75
/** Why a damaged shard that stays as it is cannot be read. */
const DAMAGED = 'damaged'
/** Why a Secret cannot be read that is absent although it must have had entries. */
export const LOST = 'lost'

/** The error of an entry that does not fit into its shard. Entries that shrink, removals and revocations always fit. */
export class ShardFull extends KubeError {
  /** @param remedy for example `raise keyring.shards` */
  constructor(shard: string, size: { readonly bytes: number; readonly limit: number }, remedy: string) {
    super('Other', 0, `${shard} would hold ${size.bytes} bytes, above ${size.limit}: ${remedy}`)
  }
}

/** The error of a change to an entry or shard of another build: this build must not overwrite data that it cannot read. */
export class EntryUnreadable extends KubeError {
  /** @param why for example `version 2` */
  constructor(what: string, why: string) {
    super('Other', 0, `${what} was written by another version of the operator (${why}); it stays as it is: run an operator that reads it`)
  }
}

/** The error of a change to a damaged shard of a set that cannot be derived again. */
export class ShardDamaged extends KubeError {
  constructor(secret: string) {
    super('Other', 0, `Secret ${secret} is damaged and stays as it is: restore it from a backup, or delete it to go on without its entries`)
  }
}

/** The error of a change whose Secret was lost. The entries of such a set cannot be derived from anything else. */
export class ShardLost extends KubeError {
  constructor(secret: string) {
    super(
      'Other',
      0,
      `Secret ${secret} is lost, and the operator does not make another one: restore it from a backup, or create an empty Secret of its name to go on without its entries`,
    )
  }
}

export interface WriterEvents<Entry> {
  /** A change is durable or refused. */
  settled(shard: Shard<Entry>, change: Change<Entry>, error?: Error): void
  /** Another process has written the entries of these ids. */
  adopted(ids: Iterable<string>): void
  /** This entry has parts of memory and parts of the Secret, and must be written. */
  merged(entry: Entry): void
}

interface Plan<Entry> {
  readonly changes: readonly Change<Entry>[]
  readonly entries: StoredEntries<Entry>
  readonly data: ShardData
  readonly bytes: number
  readonly isChanged: boolean
}

/** Writes shards of one set. The caller never starts two writes of one shard at once. */
export class ShardWriter<Entry> {
  readonly #options: SecretShardsOptions<Entry>
  readonly #codec: ShardCodec<Entry>
  readonly #events: WriterEvents<Entry>

  constructor(options: SecretShardsOptions<Entry>, codec: ShardCodec<Entry>, events: WriterEvents<Entry>) {
    this.#options = options
    this.#codec = codec
    this.#events = events
  }

  /** Writes and settles all changes of a shard. @throws the error that stopped the write; changes that ride along stay */
  async write(shard: Shard<Entry>): Promise<void> {
    const commits = [...shard.pending.values()]
    const changes = shard.changes()
    try {
      if (!shard.isKnown) await this.#read(shard)
      await this.keepAside(shard)
      await this.#commit(shard, changes)
    } catch (error) {
      shard.isKnown = false // a lost answer: the write may have happened
      for (const change of commits) this.#events.settled(shard, change, asError(error))
      throw error
    }
  }

  /** Loads the content of a Secret into memory, unless it is absent, damaged or of another build. */
  async take(shard: Shard<Entry>, secret: Secret | undefined): Promise<void> {
    const data = secret?.data ?? {}
    const isSame = secret !== undefined && secret.metadata.resourceVersion === shard.secret?.resourceVersion
    shard.secret = secret && { uid: secret.metadata.uid, resourceVersion: secret.metadata.resourceVersion }
    shard.fence = Math.max(shard.fence, fenceIn(secret))
    shard.isKnown = true
    if (isSame) return
    shard.bytes = sizeOf(data)
    if (Object.keys(data).length > 0) {
      await this.#decode(shard, data)
      shard.isDirty ||= this.#isUnclaimed(secret)
      return
    }
    this.#takeEmpty(shard)
  }

  #takeEmpty(shard: Shard<Entry>): void {
    const wasLost = shard.frozen === LOST // somebody has made an empty Secret, perhaps without our labels
    this.#setReadable(shard)
    shard.isDirty = wasLost || shard.stored.size > 0
    if (shard.stored.size > 0) this.#options.warn(`Secret ${shard.name} has vanished; it is written again from memory`)
  }

  /** Copies damaged data into a Secret of its own, before a write replaces the data. @throws KubeError */
  async keepAside(shard: Shard<Entry>): Promise<void> {
    if (shard.aside === undefined) return
    const { kube, namespace, assertLeading } = this.#options
    assertLeading()
    const metadata = { name: damagedName(shard.name, shard.aside), namespace, labels: labels('damaged') }
    try {
      await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: shard.aside })
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error
    }
    shard.aside = undefined
  }

  async #read(shard: Shard<Entry>): Promise<void> {
    const { kube, namespace } = this.#options
    const secret = await kube.get(secrets, { namespace, name: shard.name })
    if (secret === undefined && shard.frozen === LOST) return
    await this.take(shard, secret)
    this.#assertClaimed(shard)
  }

  /** @throws KubeError if a newer leader has claimed the Secret: what this process knows may be older */
  #assertClaimed({ name, fence }: Shard<Entry>): void {
    const { claim } = this.#options
    if (claim === undefined || fence <= claim.fence()) return
    claim.onFenced(fence)
    throw new KubeError('Other', 0, `Secret ${name} belongs to a newer leader (fence ${fence})`)
  }

  /** Whether a former leader wrote the Secret: it may write again until it finds the claim. */
  #isUnclaimed(secret: Secret | undefined): boolean {
    const { claim } = this.#options
    return claim !== undefined && fenceIn(secret) < claim.fence()
  }

  async #decode(shard: Shard<Entry>, data: ShardData): Promise<void> {
    try {
      const { entries, damaged } = await this.#codec.decode(data)
      if (damaged > 0) this.#foundDamage(shard, data, `${damaged} of ${damaged + entries.length} entries`)
      else shard.isDirty = false
      if (damaged === 0 || shard.stored.size === 0) await this.#adopt(shard, new Map(entries.map(keyed)))
      if (damaged === 0) this.#setReadable(shard)
    } catch (error) {
      if (!(error instanceof UnknownVersion)) return this.#foundDamage(shard, data, error instanceof Error ? error.name : 'unknown')
      shard.frozen = error.message
      this.#options.warn(new EntryUnreadable(`Secret ${shard.name}`, error.message).message)
    }
  }

  /** Only a set whose damaged Secrets stay as they are knows when nothing is missing any more. */
  #setReadable(shard: Shard<Entry>): void {
    shard.frozen = undefined
    if (this.#options.keepsDamaged) shard.isDamaged = false
  }

  #foundDamage(shard: Shard<Entry>, data: ShardData, what: string): void {
    const { keepsDamaged = false, warn } = this.#options
    const isKnown = shard.stored.size > 0
    shard.isDamaged ||= !(keepsDamaged && isKnown) // memory has what was in it
    shard.frozen = keepsDamaged && shard.isDamaged ? DAMAGED : undefined
    if (shard.frozen !== undefined) return warn(`${new ShardDamaged(shard.name).message} (${what})`)
    shard.aside = data
    shard.isDirty = isKnown
    warn(`Secret ${shard.name} is damaged (${what}); its data is kept in ${damagedName(shard.name, data)}`)
  }

  /** Replaces the entries of memory that another process has changed, and settles the changes that did not know of it. */
  async #adopt(shard: Shard<Entry>, read: ReadonlyMap<string, StoredEntry<Entry>>): Promise<void> {
    const former = shard.stored
    const ids = [...new Set([...former.keys(), ...read.keys()])].filter((id) => former.get(id)?.text !== read.get(id)?.text)
    const stored = (await this.#codec.pack?.(read)) ?? withFormer(read, former)
    const before = ids.map((id) => shard.get(id))
    shard.stored = stored
    for (const [at, id] of ids.entries()) this.#settleConflict(shard, id, before[at])
    this.#events.adopted(ids)
  }

  /**
   * Settles the changes of an entry that another process has changed. To put them again would undo what that process wrote, perhaps a newer
   * leader. So a commit is refused, and what rides along is merged, or dropped, since it can be derived again.
   * @param mine the entry in memory before
   */
  #settleConflict(shard: Shard<Entry>, id: string, mine: Entry | undefined): void {
    const theirs = shard.stored.get(id)
    const commit = shard.pending.get(id)
    const error = commit && this.#conflictOf(shard, commit, theirs)
    if (commit && error) this.#events.settled(shard, commit, error)
    shard.riding.delete(id)
    if (mine !== undefined && theirs?.why === undefined) this.#merge(mine, theirs)
  }

  /** @returns undefined if another process has written the same text as this change would */
  #conflictOf(shard: Shard<Entry>, change: Change<Entry>, theirs: StoredEntry<Entry> | undefined): KubeError | undefined {
    const { id } = change
    if (theirs?.why !== undefined) return unreadableError(shard, id, theirs.why)
    if (this.#textOf(change, theirs?.text) === theirs?.text) return undefined
    return new KubeError('Conflict', 409, `the entry ${id} of Secret ${shard.name} was changed by another process`)
  }

  #merge(mine: Entry, theirs: StoredEntry<Entry> | undefined): void {
    const { merge } = this.#codec
    if (merge === undefined) return
    const merged = theirs?.entry ? merge(mine, theirs.entry) : mine
    if (this.#codec.write(merged, undefined) !== theirs?.text) this.#events.merged(merged)
  }

  /** @param asked their ids count: another change may have replaced one meanwhile */
  async #commit(shard: Shard<Entry>, asked: readonly Change<Entry>[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const changes = this.#readable(shard, asked)
      if (shard.frozen !== undefined || (changes.length === 0 && !shard.isDirty)) return
      try {
        return await this.#put(shard, await this.#plan(shard, changes))
      } catch (error) {
        if (isContentRefused(error) && changes.length > 0) return this.#split(shard, changes, error)
        if (attempt >= MAX_ATTEMPTS || !isKubeError(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
        await this.#read(shard) // the Secret was changed or removed: start from its present state
        await this.keepAside(shard)
      }
    }
  }

  /** Returns the changes that may be written, and refuses changes of an entry or shard of another build. */
  #readable(shard: Shard<Entry>, asked: readonly Change<Entry>[]): readonly Change<Entry>[] {
    const wanted = new Set(asked.map(({ id }) => id))
    return shard.changes().filter((change) => {
      if (!wanted.has(change.id)) return false
      const why = shard.frozen ?? shard.stored.get(change.id)?.why
      if (why === undefined) return true
      this.#events.settled(shard, change, unreadableError(shard, change.id, why))
      return false
    })
  }

  /** Called for a batch that does not fit: writes shrinking and urgent changes first, then halves, until the refused change is found. */
  async #split(shard: Shard<Entry>, changes: readonly Change<Entry>[], error: unknown): Promise<void> {
    const [first] = changes
    if (changes.length === 1 && first) {
      const isSize = isKubeError(error) && error.status === 413
      return this.#events.settled(shard, first, isSize ? this.#full(shard, shard.bytes) : asError(error))
    }
    const exempt = changes.filter((change) => this.#isExempt(shard, change))
    const others = changes.filter((change) => !exempt.includes(change))
    const middle = Math.ceil(changes.length / 2)
    const parts = exempt.length > 0 && others.length > 0 ? [exempt, others] : [changes.slice(0, middle), changes.slice(middle)]
    for (const part of parts) await this.#commit(shard, part)
  }

  /** Whether a change may exceed the maximum size: a removal, or growth within `SLACK`, so that a full shard does not delay a revocation. */
  #isExempt(shard: Shard<Entry>, change: Change<Entry>): boolean {
    const former = shard.stored.get(change.id)?.text.length ?? 0
    const slack = change.isUrgent ? SLACK.urgent : former > 0 ? SLACK.other : 0
    return (this.#textOf(change, undefined)?.length ?? 0) <= former + slack
  }

  #full(shard: Shard<Entry>, bytes: number): ShardFull {
    const { set, limitBytes: limit, remedy } = this.#options
    return new ShardFull(`${set} shard ${shard.index} (Secret ${shard.name})`, { bytes, limit }, remedy)
  }

  #textOf({ entry }: Change<Entry>, former: string | undefined): string | undefined {
    return entry === undefined ? undefined : this.#codec.write(entry, former)
  }

  async #plan(shard: Shard<Entry>, changes: readonly Change<Entry>[]): Promise<Plan<Entry>> {
    const edits = new Map<string, StoredEntry<Entry> | undefined>()
    for (const change of changes) {
      const { id, entry } = change
      const former = shard.stored.get(id)?.text
      const text = this.#textOf(change, former)
      if (text !== former) edits.set(id, text === undefined ? undefined : { id, text, entry })
    }
    const entries = await this.#edited(shard.stored, edits)
    const data = await this.#codec.encode({ shards: this.#options.shards, shard: shard.index }, entries.values())
    return { changes, entries, data, bytes: sizeOf(data), isChanged: edits.size > 0 }
  }

  async #edited(stored: StoredEntries<Entry>, edits: Edits<Entry>): Promise<StoredEntries<Entry>> {
    if (stored instanceof PackedEntries) return await stored.edited(edits)
    const entries = new Map(stored)
    for (const [id, entry] of edits) {
      if (entry === undefined) entries.delete(id)
      else entries.set(id, entry)
    }
    return (await this.#codec.pack?.(entries)) ?? entries
  }

  async #put(shard: Shard<Entry>, plan: Plan<Entry>): Promise<void> {
    const isTooLarge = plan.bytes > this.#options.limitBytes && plan.changes.some((change) => !this.#isExempt(shard, change))
    if (isTooLarge) throw this.#full(shard, plan.bytes)
    if (plan.isChanged || shard.isDirty) await this.#send(shard, plan)
    shard.stored = plan.entries
    for (const change of plan.changes) this.#events.settled(shard, change)
  }

  async #send(shard: Shard<Entry>, { data, bytes }: Plan<Entry>): Promise<void> {
    const { kube, namespace, set, clock, onWrite, assertLeading, limitBytes, warn, remedy, claim } = this.#options
    assertLeading()
    this.#assertClaimed(shard)
    const started = clock.monotonic()
    const { resourceVersion } = shard.secret ?? {}
    const fence = claim?.fence()
    const metadata = {
      name: shard.name,
      namespace,
      labels: labels(set),
      ...(fence === undefined ? {} : { annotations: { [LEADER_ANNOTATION]: String(fence) } }),
      ...(resourceVersion ? { resourceVersion } : {}),
    }
    const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data }
    const written = await (shard.secret ? kube.update(secrets, secret) : kube.create(secrets, secret))
    const isNewlyFull = bytes > limitBytes * NEARLY_FULL && shard.bytes <= limitBytes * NEARLY_FULL
    if (isNewlyFull) warn(`${set} shard ${shard.index} holds ${bytes} of ${limitBytes} bytes: ${remedy}`)
    shard.secret = { uid: written.metadata.uid, resourceVersion: written.metadata.resourceVersion }
    Object.assign(shard, { isDirty: false, bytes, ...(fence === undefined ? {} : { fence }) })
    onWrite?.(shard.index, bytes, (clock.monotonic() - started) / 1000)
  }
}

function unreadableError({ name }: Shard<unknown>, id: string, why: string): KubeError {
  if (why === DAMAGED) return new ShardDamaged(name)
  return why === LOST ? new ShardLost(name) : new EntryUnreadable(`the entry ${id} of Secret ${name}`, why)
}

/** @returns 0 for a Secret that no leader has claimed */
function fenceIn(secret: Secret | undefined): number {
  return Number(secret?.metadata.annotations?.[LEADER_ANNOTATION]) || 0
}

/** Labels of every Secret of a set. The labels for damaged data keep its Secret out of the set. */
function labels(set: ShardSet | 'damaged'): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/managed-by': 'headgate-operator', [SHARDS_LABEL]: set }
}

function damagedName(name: string, data: ShardData): string {
  const content = JSON.stringify(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1)))
  return `${name}-damaged-${hash('sha256', content, 'hex').slice(0, 8)}`
}

/** The entries of a Secret, with the objects of memory where nothing has changed. */
function withFormer<Entry>(read: ReadonlyMap<string, StoredEntry<Entry>>, former: StoredEntries<Entry>): StoredEntries<Entry> {
  return new Map([...read].map(([id, stored]) => [id, former.get(id)?.text === stored.text ? (former.get(id) ?? stored) : stored]))
}

/** An entry without a known id gets a key that no id can have, so that it keeps its place. */
function keyed<Entry>(stored: StoredEntry<Entry>, index: number): readonly [string, StoredEntry<Entry>] {
  return [stored.id ?? `\n${index}`, stored]
}

/** @returns whether the content is refused, here or by the API server: too large, most of the time */
function isContentRefused(error: unknown): boolean {
  return error instanceof ShardFull || (isKubeError(error) && (error.code === 'Invalid' || error.status === 413))
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
