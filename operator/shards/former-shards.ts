/** Moves entries from a keyring with another number of shards, after a change of `keyring.shards`. */
import type { Cancel } from '#platform/clock.ts'
import { UnknownVersion } from '#contract/records/format.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { breathe } from '#platform/breathe.ts'
import type { SecretShards, SecretShardsDeps, UnreadableEntry } from './secret-shards.ts'
import type { ShardCodec, StoredEntry } from './shard-codec.ts'
import { shardOf } from './shard-of.ts'

/** Gateways of the former ReplicaSet mount the former Secrets for this long, ms. */
const KEEP_MS = 600_000
const NAME = /-(\d+)-(\d+)$/

/** Secrets of former sets, and their state. */
export class FormerShards {
  readonly #deps: SecretShardsDeps
  readonly #shards: SecretShards<KeyringEntry>
  readonly #codec: ShardCodec<KeyringEntry>
  readonly #unreadable: UnreadableEntry[] = []
  #cancel: Cancel = () => undefined

  constructor(deps: SecretShardsDeps, shards: SecretShards<KeyringEntry>, codec: ShardCodec<KeyringEntry>) {
    this.#deps = deps
    this.#shards = shards
    this.#codec = codec
  }

  /**
   * Moves entries that are newer than those in the present set. A Secret whose entries an earlier start has moved is deleted at once. A Secret
   * from which this start moved entries is deleted later. An unreadable Secret stays.
   * @throws KubeError if the entries could not be written
   */
  async move(found: readonly Secret[]): Promise<void> {
    const { warn } = this.#deps
    const newest = new Map<string, KeyringEntry>()
    const readable = (await Promise.all(found.map(async (secret) => ({ secret, entries: await this.#read(secret) })))).flatMap((one) =>
      one.entries ? [{ secret: one.secret, entries: one.entries }] : [],
    )
    for (const entry of readable.flatMap(({ entries }) => entries)) keepNewest(newest, entry)
    const moved = [...newest.values()].filter((entry) => !this.#isHere(entry))
    const empty = readable.filter(({ entries }) => entries.every((entry) => this.#isHere(newest.get(entry.uid) ?? entry)))
    for (const entry of moved) this.#shards.commit(entry, 'change')
    await this.#shards.flush()
    const left = moved.filter((entry) => !this.#isHere(entry))
    if (moved.length > 0) warn(`${moved.length - left.length} of ${moved.length} keys moved from a keyring with another number of shards`)
    for (const { secret } of empty) await this.#remove(secret)
    const later = readable.filter((one) => !empty.includes(one) && one.entries.every((entry) => this.#isHere(entry)))
    if (later.length > 0) this.#removeLater(later.map(({ secret }) => secret))
  }

  /** Entries of the former Secrets that another build wrote. */
  get unreadable(): readonly UnreadableEntry[] {
    return this.#unreadable
  }

  /** Whether a former Secret may hold an entry of this key that cannot be read. */
  mayHold(uid: string): boolean {
    return this.#unreadable.some(({ secret, id }) => (id === undefined ? isShardOf(uid, secret) : id === uid))
  }

  stop(): void {
    this.#cancel()
  }

  /** @returns undefined if the Secret must stay because a part of it is unreadable */
  async #read(secret: Secret): Promise<readonly KeyringEntry[] | undefined> {
    const { name } = secret.metadata
    await breathe()
    try {
      const { entries, damaged } = await this.#codec.decode(secret.data ?? {})
      const foreign = entries.filter(({ entry }) => entry === undefined)
      this.#unreadable.push(...foreign.map(({ id, why = '' }) => ({ secret: name, id, why })))
      if (damaged + foreign.length === 0) return entries.flatMap(entryOf)
      for (const entry of entries.flatMap(entryOf)) if (!this.#isHere(entry)) this.#shards.commit(entry, 'change')
      this.#deps.warn(`${damaged + foreign.length} entries of Secret ${name} of another keyring cannot be read; the Secret stays as it is`)
    } catch (error) {
      if (error instanceof UnknownVersion) this.#unreadable.push({ secret: name, id: undefined, why: error.message })
      this.#deps.warn(`Secret ${name} of another keyring cannot be read; it stays as it is`)
    }
    return undefined
  }

  #isHere(entry: KeyringEntry): boolean {
    return (this.#shards.get(entry.uid)?.revision ?? -1) >= entry.revision
  }

  #removeLater(former: readonly Secret[]): void {
    this.#cancel()
    this.#cancel = this.#deps.clock.after(KEEP_MS, () => {
      for (const secret of former) void this.#remove(secret)
    })
  }

  async #remove({ metadata: { name, uid } }: Secret): Promise<void> {
    const { kube, namespace, assertLeading, warn } = this.#deps
    try {
      assertLeading()
      await kube.remove(secrets, { namespace, name }, uid === undefined ? {} : { uid })
    } catch (error) {
      warn(`Secret ${name} of a former keyring could not be deleted (${String(error)}); the next start tries again`)
    }
  }
}

function entryOf({ entry }: StoredEntry<KeyringEntry>): KeyringEntry[] {
  return entry ? [entry] : []
}

function keepNewest(newest: Map<string, KeyringEntry>, entry: KeyringEntry): void {
  const known = newest.get(entry.uid)
  if (!known || known.revision < entry.revision) newest.set(entry.uid, entry)
}

function isShardOf(uid: string, secret: string): boolean {
  const [, shards = '0', shard = '0'] = NAME.exec(secret) ?? []
  return Number(shards) === 0 || shardOf(uid, Number(shards)) === Number(shard)
}
