/** Moves entries from a keyring with another number of shards, after a change of `keyring.shards`. */
import { FORMAT, UnknownVersion } from '#contract/records/format.ts'
import type { KeyringEntry } from '#contract/records/keyring-entry.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { breathe, type Cancel } from '#platform/clock.ts'
import type { Keyring } from './keyring.ts'
import { type SecretShardsDeps } from './secret-shards.ts'
import { shardOf } from './shard.ts'
import { keyringCodec } from './sets.ts'
import type { UnreadableEntry } from './shard.ts'

/** Gateways of the former ReplicaSet mount the former Secrets for this long, ms. */
const KEEP_MS = 600_000
const NAME = /-(\d+)-(\d+)$/

export class FormerShards {
  readonly #deps: SecretShardsDeps
  readonly #shards: Keyring
  readonly #unreadable: UnreadableEntry[] = []
  #cancel: Cancel = () => undefined

  constructor(deps: SecretShardsDeps, shards: Keyring) {
    this.#deps = deps
    this.#shards = shards
  }

  /** Moves newer entries, and deletes Secrets whose entries are all there ten minutes later. @throws KubeError if they cannot be written */
  async move(found: readonly Secret[]): Promise<void> {
    const readable: Array<{ readonly secret: Secret; readonly entries: readonly KeyringEntry[] }> = []
    for (const secret of found) {
      const entries = await this.#take(secret)
      if (entries) readable.push({ secret, entries })
    }
    await this.#shards.flush()
    const moved = readable.filter(({ entries }) => !entries.some((entry) => this.#isNewer(entry)))
    this.#deps.warn(`the keys of ${moved.length} of ${found.length} Secrets moved from a keyring with another number of shards`)
    this.#cancel = this.#deps.clock.after(KEEP_MS, () => {
      for (const { secret } of moved) void this.#remove(secret)
    })
  }

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

  /** Takes over the newer entries of a Secret. @returns its entries; undefined if the Secret must stay, since a part of it is unreadable */
  async #take({ metadata: { name }, data = {} }: Secret): Promise<readonly KeyringEntry[] | undefined> {
    await breathe()
    try {
      const { entries, damaged } = await keyringCodec(() => FORMAT.writes).decode(data)
      const known = entries.flatMap(({ entry }) => entry ?? [])
      const foreign = entries.filter(({ entry }) => entry === undefined)
      for (const entry of known) if (this.#isNewer(entry)) this.#shards.commit(entry, 'change', { isRestored: true })
      this.#unreadable.push(...foreign.map(({ id, why = '' }) => ({ secret: name, id, why })))
      if (damaged + foreign.length === 0) return known
      this.#deps.warn(`${damaged + foreign.length} entries of Secret ${name} of another keyring cannot be read; the Secret stays as it is`)
    } catch (error) {
      if (error instanceof UnknownVersion) this.#unreadable.push({ secret: name, id: undefined, why: error.message })
      this.#deps.warn(`Secret ${name} of another keyring cannot be read; it stays as it is`)
    }
    return undefined
  }

  #isNewer({ uid, revision }: KeyringEntry): boolean {
    const known = this.#shards.pending(uid) ?? this.#shards.get(uid)
    return known === undefined || known.revision < revision
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

function isShardOf(uid: string, secret: string): boolean {
  const [, shards = '0', shard = '0'] = NAME.exec(secret) ?? []
  return Number(shards) === 0 || shardOf(uid, Number(shards)) === Number(shard)
}
