/** The keyring: durable truth about issued keys, in Secrets of the operator's namespace. */
import type { KeyHash } from '#contract/values/credential.ts'
import { isLive, type KeyringEntry } from '#contract/records/keyring-entry.ts'
import { KEEP_TOMBSTONES_MS } from '#contract/records/tombstone.ts'
import type { Secret } from '#kube/resources.ts'
import type { Level } from '../loop/level.ts'
import { FormerShards } from './former-shards.ts'
import { MultiMap } from './multi-map.ts'
import { SecretShards, type SecretShardsDeps } from './secret-shards.ts'
import { KEYRING_SET } from './sets.ts'
import type { UnreadableEntry } from './shard.ts'
import { ShardFull } from './shard-writer.ts'
import { accountTenant } from '../loop/item.ts'

/** A restricting edit may grow by this many bytes beyond the share of its namespace, so that a suspension that also adds a model becomes durable. */
const URGENT_SHARE_SLACK = 512

/** The error of a policy that does not fit into the share of its namespace. Policies that shrink, suspensions and deletions always fit. */
export class NamespaceShareFull extends ShardFull {
  constructor({ namespace, account }: KeyringEntry, size: { readonly bytes: number; readonly limit: number }) {
    super(
      account === undefined ? `the model names of all keys of namespace ${namespace}` : 'the model names of all keys of the account',
      size,
      'shorten spec.models or raise operator.settings.maxModelBytesPerNamespace',
    )
  }
}

export interface KeyringDeps extends SecretShardsDeps {
  readonly shards: number
  /** Maximum size of one shard; default 256 KiB. */
  readonly limitBytes?: number
  /** Maximum number of bytes of model names in the policies of one namespace. */
  readonly maxModelBytesPerNamespace: number
  /** Called when a key no longer has this value, so that another key may take it. */
  readonly onReleased?: (hash: KeyHash) => void
}

/** What the indexes know of one key, durable or about to be. */
interface Indexed {
  /** Whose share the key counts in. */
  readonly tenant: string
  /** uid of its account. */
  readonly account: string | undefined
  /** ms since 1970; null: not deleted. */
  readonly deletedMs: number | null
  /** When it stops working, ms since 1970; 0: it is revoked. */
  readonly endsMs: number
  /** Bytes of the model names in its policy: durable or pending, whichever is larger. */
  readonly modelBytes: number
  /** Of its live values. */
  readonly hashes: readonly KeyHash[]
}

/** The leader's view of the keyring, by uid of the ApiKey. Entries are shared: never change an entry, commit a new one. */
export class Keyring extends SecretShards<KeyringEntry> {
  readonly #former: FormerShards
  readonly #deps: KeyringDeps
  readonly #keys = new Map<string, Indexed>()
  readonly #uidsIn = new MultiMap<string>()
  /** Keys of each account, without deleted ones. */
  readonly #uidsOf = new MultiMap<string>()
  readonly #modelBytesIn = new Map<string, number>()
  readonly #holders = new MultiMap<KeyHash>()
  readonly #tombstones = new Set<string>()
  #revision = 0

  constructor(deps: KeyringDeps) {
    super({ ...KEYRING_SET, ...deps, groupOf: tenantOf })
    this.#deps = deps
    this.#former = new FormerShards(deps, this)
  }

  /**
   * Reads every shard. A damaged shard counts as empty: its keys are recovered from Redis or their user Secrets, or reported as lost. Keys of
   * a set with another number of shards move into this set.
   * @throws KubeError when the Secrets cannot be listed, or moved entries cannot be written
   */
  override async load(): Promise<readonly Secret[]> {
    const former = await super.load()
    if (former.length > 0) await this.#former.move(former)
    return former
  }

  /**
   * Makes an entry durable. An entry whose policy grows beyond the share of its namespace is refused. A restored entry is never refused, since
   * its key was issued before.
   * @throws ZodError when no reader could read the entry again
   */
  override commit(entry: KeyringEntry, level: Level, { isRestored = false } = {}): void {
    const refusal = isRestored ? undefined : this.#refusal(entry, level)
    if (refusal === undefined) return super.commit(entry, level)
    queueMicrotask(() => this.notify(entry.uid, refusal))
  }

  /** Whether `commit` will refuse an entry at once. */
  refuses(entry: KeyringEntry, level: Level): boolean {
    return this.#refusal(entry, level) !== undefined
  }

  #refusal(entry: KeyringEntry, level: Level): NamespaceShareFull | undefined {
    const limit = this.#deps.maxModelBytesPerNamespace
    const grows = modelBytesOf(entry) - (this.#keys.get(entry.uid)?.modelBytes ?? 0)
    const bytes = (this.#modelBytesIn.get(tenantOf(entry)) ?? 0) + grows
    if (grows <= (level === 'urgent' ? URGENT_SHARE_SLACK : 0) || bytes <= limit) return undefined
    return new NamespaceShareFull(entry, { bytes, limit })
  }

  /** Drops the tombstones that are old enough, in grouped writes. @param now ms since 1970 @returns the number of dropped tombstones */
  expireTombstones(now: number): number {
    const isOld = (uid: string): boolean => (this.#keys.get(uid)?.deletedMs ?? Infinity) < now - KEEP_TOMBSTONES_MS
    const old = [...this.#tombstones].filter((uid) => isOld(uid) && this.state(uid) === 'Durable')
    for (const uid of old) this.remove(uid, 'background')
    return old.length
  }

  /** Keys that have a live value with this hash, durable or about to be. */
  *holdersOf(hash: KeyHash): IterableIterator<KeyringEntry> {
    for (const uid of this.#holders.get(hash)) {
      const entry = this.pending(uid) ?? this.get(uid)
      if (entry) yield entry
    }
  }

  /** Number of keys of one namespace without an account, including tombstones and commits that are not durable yet. */
  countIn(namespace: string): number {
    return this.#uidsIn.count(namespace)
  }

  /**
   * Number of the keys of an account that are neither revoked nor expired. Cheap below `most`: the count then includes expired keys.
   * @param account its uid
   * @param nowMs ms since 1970
   */
  activeOf(account: string, most: number, nowMs: number): number {
    const count = this.#uidsOf.count(account)
    if (count < most) return count
    return [...this.#uidsOf.get(account)].filter((uid) => (this.#keys.get(uid)?.endsMs ?? 0) > nowMs).length
  }

  /** Number of the keys of an account that are not deleted. */
  countOf(account: string): number {
    return this.#uidsOf.count(account)
  }

  /** Whether any key that is not deleted names the account. */
  hasKeys(account: string): boolean {
    return this.#uidsOf.has(account)
  }

  /** `namespace/name` of a key, also of one that was deleted within 24 hours; undefined if the key is unknown. */
  nameOf(uid: string): string | undefined {
    const entry = this.pending(uid) ?? this.get(uid)
    return entry && `${entry.namespace}/${entry.name}`
  }

  /** Newest revision of any entry, including deleted entries. */
  get revision(): number {
    return this.#revision
  }

  override *unreadable(): IterableIterator<UnreadableEntry> {
    yield* super.unreadable()
    yield* this.#former.unreadable
  }

  override isUnreadable(uid: string): boolean {
    return super.isUnreadable(uid) || this.#former.mayHold(uid)
  }

  override stop(): void {
    super.stop()
    this.#former.stop()
  }

  protected override changed(uids: Iterable<string>): void {
    for (const uid of uids) for (const hash of this.#reindex(uid, this.get(uid), this.pending(uid))) this.#deps.onReleased?.(hash)
  }

  /** @returns hashes that the key no longer has */
  #reindex(uid: string, durable: KeyringEntry | undefined, pending: KeyringEntry | undefined): readonly KeyHash[] {
    const former = this.#keys.get(uid)
    const entry = durable ?? pending
    const now = entry && {
      tenant: tenantOf(entry),
      account: entry.account,
      deletedMs: entry.deletedMs,
      endsMs: endOf(pending ?? entry),
      modelBytes: Math.max(modelBytesOf(durable), modelBytesOf(pending)),
      hashes: [...new Set([...liveHashes(durable), ...liveHashes(pending)])],
    }
    this.#revision = Math.max(this.#revision, entry?.revision ?? 0)
    if (former) this.#unindex(uid, former)
    if (now) this.#index(uid, now)
    return (former?.hashes ?? []).filter((hash) => now?.hashes.includes(hash) !== true)
  }

  #index(uid: string, now: Indexed): void {
    this.#keys.set(uid, now)
    this.#uidsIn.add(now.tenant, uid)
    if (now.account !== undefined && now.deletedMs === null) this.#uidsOf.add(now.account, uid)
    this.#resize(now.tenant, now.modelBytes)
    for (const hash of now.hashes) this.#holders.add(hash, uid)
    if (now.deletedMs !== null) this.#tombstones.add(uid)
  }

  #unindex(uid: string, former: Indexed): void {
    this.#keys.delete(uid)
    this.#uidsIn.delete(former.tenant, uid)
    if (former.account !== undefined) this.#uidsOf.delete(former.account, uid)
    this.#resize(former.tenant, -former.modelBytes)
    for (const hash of former.hashes) this.#holders.delete(hash, uid)
    this.#tombstones.delete(uid)
  }

  #resize(tenant: string, bytes: number): void {
    const total = (this.#modelBytesIn.get(tenant) ?? 0) + bytes
    if (total > 0) this.#modelBytesIn.set(tenant, total)
    else this.#modelBytesIn.delete(tenant)
  }
}

/** When a key stops working, ms since 1970; 0 for a revoked one. */
function endOf({ state, expiresMs }: KeyringEntry): number {
  return state === 'Revoked' ? 0 : (expiresMs ?? Infinity)
}

/** Whose share an entry counts in: that of its account, or else of its namespace. No namespace has a slash. */
function tenantOf({ namespace, account }: KeyringEntry): string {
  return account === undefined ? namespace : accountTenant(account)
}

/** Bytes of the model names in a policy; 0 for a tombstone or without an entry. */
function modelBytesOf(entry: KeyringEntry | undefined): number {
  return (entry?.models ?? []).flat().reduce((bytes, name) => bytes + Buffer.byteLength(name), 0)
}

function liveHashes(entry: KeyringEntry | undefined): readonly KeyHash[] {
  return entry === undefined || entry.deletedMs !== null ? [] : entry.verifiers.filter(isLive).map(({ hash }) => hash)
}
