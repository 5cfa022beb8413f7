/** Priorities of the work queue, highest first. */
export const LEVELS = ['urgent', 'change', 'create', 'background'] as const

/**
 * Priority of a reconcile. urgent: deletions, suspensions, revocations and edits that restrict. change: objects that exist. create: new
 * objects. background: statuses, Events, re-reads and resync.
 */
export type Level = (typeof LEVELS)[number]

/** @returns whether `level` has a lower priority than `than` */
export function isLower(level: Level, than: Level): boolean {
  return LEVELS.indexOf(level) > LEVELS.indexOf(than)
}

/** @returns the level with the higher priority */
export function highest(a: Level, b: Level): Level {
  return isLower(a, b) ? b : a
}
