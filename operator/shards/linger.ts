/** How long a commit waits for others to share its write. Pure. */

/** A single change waits this long, ms. */
const SHORTEST_MS = 5
/** How much longer a commit waits for each change of its group and each shard of the set, ms. */
const PER_CHANGE_AND_SHARD_MS = 1 / 32
/** No commit waits longer before its shard is due, ms. */
const LONGEST_MS = 4_000

/**
 * The more changes of its group wait or will come, the more share a write, and the less a wait delays the last of them. With more shards it
 * takes longer until several changes wait for the same shard.
 * @param changes changes of the group that wait or will come soon
 * @returns ms
 */
export function lingerMs(changes: number, shards: number): number {
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, changes * shards * PER_CHANGE_AND_SHARD_MS))
}

/** Longest wait of a change that rides along with another write of its shard, ms. */
export const RIDE_MS = 5_000

/** Maximum bytes per second of one shard by changes that may wait: a write holds the whole shard, etcd keeps it, and watchers of Secrets get it. */
const BYTES_PER_SECOND = 44 * 1024

/** @param bytes size of a shard that was written @returns how long changes that may wait begin no other write of it, ms */
export function restMs(bytes: number): number {
  return (bytes * 1_000) / BYTES_PER_SECOND
}
