/** Reads the usage of one account out of the Secrets, on any replica. Secrets that did not change are decoded once. */
import { shardSecretName } from '#contract/records/mounted-folder.ts'
import type { KubePort } from '#kube/port.ts'
import { secrets } from '#kube/resources.ts'
import { shardOf } from '../shards/secret-shards.ts'
import { HISTORY_SET, USAGE_SET } from '../shards/sets.ts'
import type { ShardCodec } from '../shards/shard-codec.ts'
import { type ClosedUsage, type HistoryEntry, historyCodec, type OpenUsage, readClosedUsage, usageCodec } from '../shards/usage-entry.ts'

/** The usage of one account. */
export interface AccountUsage {
  readonly open: OpenUsage | undefined
  readonly closed: ClosedUsage | undefined
}

interface Decoded {
  readonly resourceVersion: string | undefined
  readonly entries: ReadonlyMap<string, unknown>
}

/** Most decoded Secrets in memory. */
const MAX_DECODED = 4

export class UsageReader {
  readonly #kube: Pick<KubePort, 'get'>
  readonly #namespace: string
  readonly #decoded = new Map<string, Decoded>()

  constructor({ kube, namespace }: { readonly kube: Pick<KubePort, 'get'>; readonly namespace: string }) {
    this.#kube = kube
    this.#namespace = namespace
  }

  /** @throws KubeError if the Secrets cannot be read; another error if they are damaged or of another build */
  async read(account: string): Promise<AccountUsage> {
    const [open, history] = await Promise.all([
      this.#entry<OpenUsage>(USAGE_SET, usageCodec, account),
      this.#entry<HistoryEntry>(HISTORY_SET, historyCodec, account),
    ])
    return { open, closed: history && readClosedUsage(history) }
  }

  async #entry<Entry>(
    { set, shards }: Pick<typeof USAGE_SET, 'set' | 'shards'>,
    codec: ShardCodec<Entry>,
    account: string,
  ): Promise<Entry | undefined> {
    const name = shardSecretName(set, shards, shardOf(account, shards))
    const secret = await this.#kube.get(secrets, { namespace: this.#namespace, name })
    if (secret === undefined) return undefined
    const known = this.#decoded.get(name)
    const { resourceVersion } = secret.metadata
    if (known === undefined || known.resourceVersion !== resourceVersion) {
      const { entries } = await codec.decode(secret.data ?? {})
      this.#remember(name, { resourceVersion, entries: new Map(entries.map(({ id = '', entry }) => [id, entry])) })
    }
    return this.#decoded.get(name)?.entries.get(account) as Entry | undefined // decoded by the codec of this set
  }

  #remember(name: string, decoded: Decoded): void {
    this.#decoded.delete(name)
    const [oldest = ''] = this.#decoded.keys()
    if (this.#decoded.size >= MAX_DECODED) this.#decoded.delete(oldest)
    this.#decoded.set(name, decoded)
  }
}
