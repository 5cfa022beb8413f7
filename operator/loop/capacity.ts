import { LEVELS, type Level } from './level.ts'

/** Slots beyond the workers that only urgent items may use. */
const URGENT_SLOTS = 8
/** Slots of background items while anything else waits or runs. */
const BACKGROUND_SLOTS = 8

/** Reserved parts of the workers: one in so many for new objects while some wait, and one more for changes and new objects together. */
const WORKERS_PER_KEPT = 12
/** Reserved for background items while some wait. */
const KEPT_FOR_BACKGROUND = 1

/**
 * Which levels may start one more run. `workers` slots serve every level, 8 more serve urgent items only, and background items use at
 * most 8 while other items wait or run. A level that is never empty leaves some workers to the levels below: otherwise the deletions of one
 * namespace delay the new keys, the statuses and the rotated credentials of all others for minutes.
 */
export class Capacity {
  readonly #workers: number
  readonly #running: Record<Level, number> = { urgent: 0, change: 0, create: 0, background: 0 }

  constructor(workers: number) {
    this.#workers = workers
  }

  get running(): number {
    return LEVELS.reduce((sum, level) => sum + this.#running[level], 0)
  }

  get slots(): number {
    return this.#workers + URGENT_SLOTS
  }

  started(level: Level): void {
    this.#running[level] += 1
  }

  ended(level: Level): void {
    this.#running[level] -= 1
  }

  /** @param depth items that wait at a level */
  free(depth: (level: Level) => number): readonly Level[] {
    const { urgent, change, create, background } = this.#running
    const shared = this.running - Math.min(urgent, URGENT_SLOTS)
    if (shared >= this.#workers) return urgent < URGENT_SLOTS ? ['urgent'] : []
    const kept = Math.floor(this.#workers / WORKERS_PER_KEPT)
    const keptForBackground = depth('background') > 0 ? Math.max(0, Math.min(kept, KEPT_FOR_BACKGROUND) - background) : 0
    const keptForNew = depth('create') > 0 ? Math.max(0, kept - create) : 0
    const keptForOthers = depth('change') + depth('create') > 0 ? Math.max(0, 2 * kept - change - create) : 0
    const isBusy = this.running > background || LEVELS.some((level) => level !== 'background' && depth(level) > 0)
    const free = this.#workers - shared
    const mayStart: Readonly<Record<Level, boolean>> = {
      urgent: urgent < URGENT_SLOTS || free > Math.max(keptForOthers, keptForNew) + keptForBackground,
      change: free > keptForNew + keptForBackground,
      create: free > keptForBackground,
      background: !isBusy || background < BACKGROUND_SLOTS,
    }
    return LEVELS.filter((level) => mayStart[level])
  }
}
