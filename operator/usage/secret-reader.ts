/** Reads entries out of the operator's Secrets, on any replica. */
import { FORMAT, UnknownVersion } from '#contract/records/format.ts'
import { shardSecretName } from '#contract/records/mounted-folder.ts'
import type { KubePort } from '#kube/port.ts'
import { type Secret, secrets } from '#kube/resources.ts'
import { type ShardSetKind } from '../shards/secret-shards.ts'
import { shardOf } from '../shards/shard.ts'
import type { DecodedShard, StoredEntry } from '../shards/shard-codec.ts'

/** A set with a fixed number of Secrets. */
export type FixedSet<Entry> = Pick<ShardSetKind<Entry>, 'set' | 'codec'> & { readonly shards: number }

interface Decoded {
  readonly resourceVersion: string | undefined
  readonly damaged: number
  readonly stored: ReadonlyMap<string, StoredEntry<unknown>>
}

/** Entries that this build cannot read, where a sum without them would be wrong. The message names the Secret and the remedy. */
export class EntriesUnreadable extends Error {
  override readonly name = 'EntriesUnreadable'

  /** @param why for example `2 damaged entries` */
  constructor(secret: string, why: string, cause?: unknown) {
    super(`the Secret ${secret} has ${why}; restore it from a backup, or update the operator if a newer one wrote it`, { cause })
  }
}

/** What a Secret has under an id. */
export interface FoundEntry<Entry> {
  /** undefined: there is none, or none that this build can read. */
  readonly entry: Entry | undefined
  /** Why an entry may be there all the same; undefined: there is certainly none. */
  readonly doubt: EntriesUnreadable | undefined
}

/** Maximum number of decoded Secrets in memory. */
const MAX_DECODED = 4

export class SecretReader {
  readonly #kube: Pick<KubePort, 'get'>
  readonly #namespace: string
  /** Secrets that did not change are decoded once. */
  readonly #decoded = new Map<string, Decoded>()

  constructor({ kube, namespace }: { readonly kube: Pick<KubePort, 'get'>; readonly namespace: string }) {
    this.#kube = kube
    this.#namespace = namespace
  }

  /** @throws KubeError if the Secret cannot be read; EntriesUnreadable if all of it is damaged or of another build */
  async entry<Entry>(set: FixedSet<Entry>, id: string): Promise<FoundEntry<Entry>> {
    const shard = shardOf(id, set.shards)
    const known = await this.#decode(set, shard)
    const stored = known?.stored.get(id) as StoredEntry<Entry> | undefined // decoded by the codec of this set
    const why = stored === undefined ? damageOf(known?.damaged) : stored.why
    return { entry: stored?.entry, doubt: why === undefined ? undefined : new EntriesUnreadable(nameOf(set, shard), why) }
  }

  /**
   * Every wanted entry of a set whose Secrets exist all or none. Decodes one Secret after the other and keeps none: together they may be large.
   * @throws KubeError if a Secret cannot be read; EntriesUnreadable if an entry cannot, since it may be a wanted one
   */
  async all<Entry>(set: FixedSet<Entry>, isWanted: (entry: Entry) => boolean): Promise<readonly Entry[]> {
    const found: Entry[] = []
    const absent: string[] = []
    for (let shard = 0; shard < set.shards; shard += 1) {
      const name = nameOf(set, shard)
      const secret = await this.#kube.get(secrets, { namespace: this.#namespace, name })
      if (secret === undefined) {
        absent.push(name)
        continue
      }
      const { entries, damaged } = await decoded(set, name, secret)
      const damage = damageOf(damaged)
      if (damage !== undefined) throw new EntriesUnreadable(name, damage)
      for (const { entry, why = 'another version' } of entries) {
        if (entry === undefined) throw new EntriesUnreadable(name, why)
        if (isWanted(entry)) found.push(entry)
      }
    }
    const [lost] = absent
    if (lost !== undefined && absent.length < set.shards) throw new EntriesUnreadable(lost, 'been lost')
    return found
  }

  async #decode<Entry>(set: FixedSet<Entry>, shard: number): Promise<Decoded | undefined> {
    const name = nameOf(set, shard)
    const secret = await this.#kube.get(secrets, { namespace: this.#namespace, name })
    if (secret === undefined) return undefined
    const known = this.#decoded.get(name)
    const { resourceVersion } = secret.metadata
    if (known !== undefined && known.resourceVersion === resourceVersion) return known
    const { entries, damaged } = await decoded(set, name, secret)
    const found = { resourceVersion, damaged, stored: new Map(entries.map((stored) => [stored.id ?? '', stored])) }
    this.#remember(name, found)
    return found
  }

  #remember(name: string, decoded: Decoded): void {
    this.#decoded.delete(name)
    const [oldest = ''] = this.#decoded.keys()
    if (this.#decoded.size >= MAX_DECODED) this.#decoded.delete(oldest)
    this.#decoded.set(name, decoded)
  }
}

function nameOf({ set, shards }: Pick<FixedSet<unknown>, 'set' | 'shards'>, shard: number): string {
  return shardSecretName(set, shards, shard)
}

function damageOf(damaged = 0): string | undefined {
  return damaged > 0 ? `${damaged} damaged entries` : undefined
}

/** @throws EntriesUnreadable */
async function decoded<Entry>({ codec }: FixedSet<Entry>, name: string, { data = {} }: Secret): Promise<DecodedShard<Entry>> {
  try {
    return await codec(() => FORMAT.writes).decode(data) // the version is that of written headers
  } catch (error) {
    throw new EntriesUnreadable(name, error instanceof UnknownVersion ? error.message : 'damaged data', error)
  }
}
