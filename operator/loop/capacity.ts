import { LEVELS, type Level } from './level.ts'

/** Slots beyond the workers that only urgent items may use. */
const URGENT_SLOTS = 8
/** Slots of background items while anything else waits or runs. */
const BACKGROUND_SLOTS = 8

/** Reserved parts of the workers: one in so many for new objects while some wait, and one more for changes and new objects together. */
const WORKERS_PER_KEPT = 12
/**
 * Maximum number of runs of one tenant, as a multiple of the slots that are still free. A tenant alone gets two thirds of the slots, and any number of
 * tenants leave some: runs in a namespace behind a slow webhook take seconds, and without a bound would soon hold every slot.
 */
const RUNS_PER_FREE_SLOT = 2
/** Reserved for background items while some wait. */
const KEPT_FOR_BACKGROUND = 1

interface Tally {
  all: number
  background: number
}

/**
 * Which levels may start one more run. `workers` slots serve every level, 8 more serve urgent items only, and background items use at
 * most 8 while other items wait or run. A level that is never empty leaves some workers to the levels below: otherwise the deletions of one
 * namespace delay the new keys, the statuses and the rotated credentials of all others for minutes. No tenant takes every slot of a level.
 */
export class Capacity {
  readonly #workers: number
  readonly #running: Record<Level, number> = { urgent: 0, change: 0, create: 0, background: 0 }

  readonly #byTenant = new Map<string, Tally>()

  constructor(workers: number) {
    this.#workers = workers
  }

  get running(): number {
    return LEVELS.reduce((sum, level) => sum + this.#running[level], 0)
  }

  get slots(): number {
    return this.#workers + URGENT_SLOTS
  }

  started(level: Level, tenant: string): void {
    this.#running[level] += 1
    const tally = this.#byTenant.get(tenant) ?? { all: 0, background: 0 }
    this.#byTenant.set(tenant, tally)
    tally.all += 1
    if (level === 'background') tally.background += 1
  }

  ended(level: Level, tenant: string): void {
    this.#running[level] -= 1
    const tally = this.#byTenant.get(tenant)
    if (tally === undefined) return
    tally.all -= 1
    if (level === 'background') tally.background -= 1
    if (tally.all === 0) this.#byTenant.delete(tenant)
  }

  /** Whether a tenant must leave the free slots of a level to other tenants. @param depth items that wait at a level */
  isFull(tenant: string, level: Level, depth: (level: Level) => number): boolean {
    const { all, background } = this.#byTenant.get(tenant) ?? { all: 0, background: 0 }
    if (level === 'urgent') return all >= RUNS_PER_FREE_SLOT * (this.slots - this.running)
    const free = this.#workers - this.#shared
    if (all >= RUNS_PER_FREE_SLOT * free) return true
    return level === 'background' && this.#isBusy(depth) && background >= RUNS_PER_FREE_SLOT * (BACKGROUND_SLOTS - this.#running.background)
  }

  /** Whether anything but background items waits or runs. */
  #isBusy(depth: (level: Level) => number): boolean {
    return this.running > this.#running.background || LEVELS.some((level) => level !== 'background' && depth(level) > 0)
  }

  /** Runs that take a slot of every level. */
  get #shared(): number {
    return this.running - Math.min(this.#running.urgent, URGENT_SLOTS)
  }

  /** @param depth items that wait at a level */
  free(depth: (level: Level) => number): readonly Level[] {
    const { urgent, change, create, background } = this.#running
    const shared = this.#shared
    if (shared >= this.#workers) return urgent < URGENT_SLOTS ? ['urgent'] : []
    const kept = Math.floor(this.#workers / WORKERS_PER_KEPT)
    const keptForBackground = depth('background') > 0 ? Math.max(0, Math.min(kept, KEPT_FOR_BACKGROUND) - background) : 0
    const keptForNew = depth('create') > 0 ? Math.max(0, kept - create) : 0
    const keptForOthers = depth('change') + depth('create') > 0 ? Math.max(0, 2 * kept - change - create) : 0
    const free = this.#workers - shared
    const mayStart: Readonly<Record<Level, boolean>> = {
      urgent: urgent < URGENT_SLOTS || free > Math.max(keptForOthers, keptForNew) + keptForBackground,
      change: free > keptForNew + keptForBackground,
      create: free > keptForBackground,
      background: !this.#isBusy(depth) || background < BACKGROUND_SLOTS,
    }
    return LEVELS.filter((level) => mayStart[level])
  }
}
