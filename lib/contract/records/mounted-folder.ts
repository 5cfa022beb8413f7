/**
 * Names of the Secrets that gateways mount, and of the files below the mounted folder. One projected volume, every source optional:
 * `keyring/<shards>-<shard>`, `models/<shards>-<shard>`, `accounts/<shards>-<shard>`, and `upstream.<SHA-256>` at the top.
 */
/** Sets of Secrets in the operator's namespace; the value of SHARDS_LABEL on each. Gateways mount the first four. */
export type ShardSet = 'keyring' | 'models' | 'accounts' | 'upstream' | 'spend' | 'balances' | 'credits' | 'usage' | 'history' | 'values'

/** Label of every such Secret. */
export const SHARDS_LABEL = 'headgate.dev/shards'

/** Data key of every Secret with records. */
export const RECORDS_KEY = 'records'

/** Folder of the keyring shards; also the data path of `hg-keyring-*`. */
export const KEYRING_FOLDER = 'keyring'
/** Folder of the model records of a cold start. */
export const MODELS_FOLDER = 'models'
/** Folder of the records of accounts and plans. */
export const ACCOUNTS_FOLDER = 'accounts'
/** Data keys and files of backend credentials begin with this. */
export const UPSTREAM_FILE_PREFIX = 'upstream.'

/** Number of shards of the sets `models`, `accounts` and `upstream`: the chart mounts this many. */
export const MOUNTED_SHARDS = 8

/** Name of the Secret of one shard, in the operator's namespace. */
export function shardSecretName(set: ShardSet, shards: number, shard: number): string {
  return `hg-${set}-${shards}-${shard}`
}
