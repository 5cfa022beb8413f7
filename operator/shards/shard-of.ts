/** Which shard of a set holds an entry. */
import { hash } from 'node:crypto'

/**
 * The first bits of SHA-256 of the id decide: they spread entries evenly, and are the same in every process.
 * @param id of the entry: metadata.uid of an object, or the SHA-256 of a credential
 * @param shards number of shards, 1…2^16
 */
export function shardOf(id: string, shards: number): number {
  const first = Number.parseInt(hash('sha256', id, 'hex').slice(0, 8), 16)
  return Math.floor((first / 2 ** 32) * shards)
}
