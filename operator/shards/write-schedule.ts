/** Decides when a shard is written. Pure. */
import type { Shard } from './shard.ts'

/** A single change waits this long for others, ms. */
const LINGER_MS = 5
/** How much longer a commit waits for each change of its group and each shard of the set, ms. */
const LINGER_PER_CHANGE_AND_SHARD_MS = 1 / 32
/** No commit waits longer before its shard is due, ms. */
const LONGEST_LINGER_MS = 4_000
/** This many commits of one shard need not wait for more. */
const FULL_BATCH = 64
/** Longest wait of a change that rides along with another write of its shard, ms. */
const RIDE_MS = 5_000
/** Maximum number of shard writes under way over all shards, without urgent writes. */
const WRITES = 2
/** Maximum number of shard writes under way, including urgent writes. */
const ALL_WRITES = 4
/** Maximum number of urgent writes under way: thousands of restricting edits must not delay the write of another tenant's new key. */
const URGENT_WRITES = 3

/** Number of shard writes under way. */
export interface WritesInFlight {
  readonly urgent: number
  readonly others: number
}

/**
 * How long a commit may wait for others to share its write, ms.
 * @param backlog changes of the same group that wait here or will come soon: the more there are, the more changes share a write, and the less
 *   a wait delays the last of them
 * @param shards of the set: with more shards it takes longer until several changes wait for the same shard
 */
export function lingerMs(backlog: number, shards: number): number {
  return Math.min(LONGEST_LINGER_MS, Math.max(LINGER_MS, backlog * shards * LINGER_PER_CHANGE_AND_SHARD_MS))
}

/**
 * When a shard is due, ms monotonic: -Infinity for urgent changes, Infinity when no change waits.
 * @param lingerOf by group, ms
 * @param rideMs longest wait of a change that rides along
 */
export function dueAt(shard: Shard<unknown>, lingerOf: (group: string) => number, rideMs: number = RIDE_MS): number {
  const { hasUrgent, groups } = shard.pending.summary
  if (hasUrgent) return -Infinity
  if (shard.isCheckDue || shard.pending.size >= FULL_BATCH || (shard.frozen !== undefined && shard.pending.size > 0)) return 0
  let due = shard.riding.size > 0 ? shard.ridingSince + rideMs : Infinity
  for (const [group, { since }] of groups) due = Math.min(due, since + lingerOf(group))
  return due
}

/** Whether one more write may begin. */
export function hasRoom(isUrgent: boolean, { urgent, others }: WritesInFlight): boolean {
  const hasOwn = isUrgent ? urgent < URGENT_WRITES : others < WRITES
  return hasOwn && urgent + others < ALL_WRITES
}

/**
 * Order of the shards that are due: the shard of the group with the smallest backlog first, so that one tenant's storm does not delay a
 * single change of another; then the shard with the most commits. Each shard is written at some time, since ids, and so single changes,
 * are spread evenly over all shards.
 * @param lingerOf by group, ms
 */
export function writeOrder(lingerOf: (group: string) => number): (a: Shard<unknown>, b: Shard<unknown>) => number {
  const shortest = ({ pending }: Shard<unknown>): number => Math.min(...Array.from(pending.summary.groups.keys(), lingerOf))
  return (a, b) => shortest(a) - shortest(b) || b.pending.size - a.pending.size
}
