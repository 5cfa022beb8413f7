/** The durable spend of every subject, in a few sharded Secrets. */
import { SecretShards, type SecretShardsDeps } from '../shards/secret-shards.ts'
import { SPEND_SET } from '../shards/sets.ts'
import type { SpendEntry } from '../shards/spend-entry.ts'

/** Number of shards: about 15,000 subjects fit into each Secret. Only the operator reads the Secrets, so the number is no setting. */
export const SPEND_SHARDS = 8

/** Keeps entries by uid of the subject. Spend is put with `commitLater`. */
export class SpendCheckpoint extends SecretShards<SpendEntry> {
  constructor(deps: SecretShardsDeps) {
    super({ ...SPEND_SET, ...deps, shards: SPEND_SHARDS })
  }
}
