/** Which shard of the keyring holds a key. */
import { hash } from 'node:crypto'

/**
 * By the first bits of SHA-256 of the uid: even, and the same in every process.
 * @param uid metadata.uid of the ApiKey
 * @param shards number of shards, 1…2^16
 */
export function shardOf(uid: string, shards: number): number {
  const first = Number.parseInt(hash('sha256', uid, 'hex').slice(0, 8), 16)
  return Math.floor((first / 2 ** 32) * shards)
}
