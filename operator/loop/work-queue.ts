import { type Cancel, type Clock, sleep } from '#platform/clock.ts'
import { Capacity } from './capacity.ts'
import type { OperatorMetrics } from '../metrics.ts'
import { type Bound, itemKey, type Item } from './item.ts'
import { highest, LEVELS, type Level } from './level.ts'
import { PriorityQueue } from './priority-queue.ts'
import type { Reconcile, Requeue } from './reconciler.ts'

/** How a run ended. `requeue_after` = well, and runs again. */
export type Outcome = 'success' | 'requeue_after' | 'error'

export interface WorkQueueOptions {
  readonly clock: Clock
  readonly metrics?: OperatorMetrics['queue'] | undefined
  /** By kind. Read at each run, so it may be filled after construction. */
  readonly kinds: Readonly<Record<string, Reconcile>>
  /** Whose turn an item takes; default: of its namespace. */
  readonly tenantOf?: ((item: Item) => string) | undefined
  /** The bounds of a tenant's runs at level background, `isSlow` if its last run or the present one took a second; default: none. */
  readonly boundsOf?: ((tenant: string, isSlow: boolean) => readonly Bound[]) | undefined
  /** Runs at once, default 24; urgent items may use 8 more. A run makes API calls but waits for nothing else. */
  readonly workers?: number
  /** Levels that start one run per 100 ms at most, although workers are free, and one per 10 ms of tenants with little work there. */
  readonly held?: (() => readonly Level[]) | undefined
}

const WORKERS = 24
const HELD_FOR_MS = 20
/** A held level is slow and never stops: a storm of one namespace can hold a level for minutes, and other namespaces wait at that level too. */
const HELD_RUN_EVERY_MS = 100
/** The same for tenants with a small part of what waits at the level: they did not cause the hold. */
const SMALL_RUN_EVERY_MS = 10
/** A place of a bound rests for as long as its run took. Shorter rests are left out, and none is longer, ms. */
const [SHORTEST_REST_MS, LONGEST_REST_MS] = [1, 1_000]
/** Duration from which a run of a tenant with bounds counts as slow, ms. */
const SLOW_AFTER_MS = 1_000
/** A tenant has a small part if it has at most one of so many items. */
const SMALL_PART = 10

interface Delayed {
  readonly level: Level
  readonly dueMs: number
  readonly cancel: Cancel
}

interface Taken {
  readonly level: Level
  readonly tenant: string
  readonly atMs: number
  /** The bounds whose places the run occupies. */
  bounds: readonly Bound[]
}

/**
 * Reconciles items, one run per item at a time, in the order of `PriorityQueue` and as `Capacity` allows. An item added while it is
 * worked on runs again afterwards, so that the last change is always seen; an item added twice while it waits runs once.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions
  #ready: PriorityQueue
  readonly #capacity: Capacity
  /** Items to add later, each with one timer. */
  readonly #delayed = new Map<string, Delayed>()
  readonly #processing = new Map<string, Taken>()
  /** Places of bounds that run or rest. */
  readonly #places = new Map<string, number>()
  /** Tenants with bounds whose last run took long. */
  readonly #slow = new Set<string>()
  /** Items added while they are worked on. */
  readonly #again = new Map<string, { readonly level: Level; readonly sinceMs: number }>()
  /** Aborted when the queue is closed and no run is left. */
  readonly #ended = new AbortController()
  #isDispatching = false
  #cancelHold: Cancel | undefined
  /** Monotonic ms of the last start at each level, and of the last one that needed no exception from a hold. */
  readonly #lastMs: Partial<Record<Level, number>> = {}
  readonly #startedMs: Partial<Record<Level, number>> = {}
  #state: 'Held' | 'Started' | 'Closed' = 'Held'

  constructor(options: WorkQueueOptions) {
    this.#options = options
    this.#ready = new PriorityQueue(options.tenantOf)
    this.#capacity = new Capacity(options.workers ?? WORKERS)
    options.metrics?.watching(this)
  }

  depth(level: Level): number {
    return this.#ready.depth(level)
  }

  /** Whether no item waits to be run now, and none runs. */
  get isIdle(): boolean {
    return this.active === 0 && LEVELS.every((level) => this.depth(level) === 0)
  }

  /** Items of one tenant that wait for anything but background work. */
  backlogOf(tenant: string): number {
    return this.#ready.backlogOf(tenant)
  }

  get active(): number {
    return this.#processing.size
  }

  get slots(): number {
    return this.#capacity.slots
  }

  start(): void {
    if (this.#state === 'Held') this.#state = 'Started'
    this.#dispatchSoon()
  }

  /** Adds an item, or moves it up; ignored after `stop`. */
  add(item: Item, level: Level): void {
    if (this.#state === 'Closed') return
    const nowMs = this.#options.clock.monotonic()
    const isNew = this.#processing.has(itemKey(item)) ? this.#addAgain(itemKey(item), level, nowMs) : this.#ready.add(item, level, nowMs)
    if (isNew) this.#options.metrics?.added(level)
    this.#dispatchSoon()
  }

  /** Adds an item in `delayMs`. Of several delays the earliest counts. A run that begins before cancels the delay: it reads the newest state. */
  addAfter(item: Item, delayMs: number, level: Level): void {
    if (delayMs <= 0) return this.add(item, level)
    if (this.#state === 'Closed') return
    const { clock } = this.#options
    const key = itemKey(item)
    const present = this.#delayed.get(key)
    const due = { level: highest(present?.level ?? level, level), dueMs: Math.min(present?.dueMs ?? Infinity, clock.monotonic() + delayMs) }
    present?.cancel()
    const cancel = clock.after(due.dueMs - clock.monotonic(), () => {
      this.#delayed.delete(key)
      this.add(item, due.level)
    })
    this.#delayed.set(key, { ...due, cancel })
  }

  /** Stops handing out items, and waits for the work under way. @returns whether the work ended within `timeoutMs` */
  async stop(timeoutMs: number): Promise<boolean> {
    this.#state = 'Closed'
    this.#cancelHold?.()
    this.#ready = new PriorityQueue(this.#options.tenantOf)
    this.#again.clear()
    for (const { cancel } of this.#delayed.values()) cancel()
    this.#delayed.clear()
    this.#reportDepths()
    if (this.active > 0) await sleep(this.#options.clock, timeoutMs, this.#ended.signal)
    return this.active === 0
  }

  /** Seconds of work so far on items that are not done: the sum, and the longest one. Shows a stuck run. */
  unfinished(): { readonly totalSeconds: number; readonly longestSeconds: number } {
    const nowMs = this.#options.clock.monotonic()
    const seconds = [...this.#processing.values()].map(({ atMs }) => (nowMs - atMs) / 1000)
    return {
      totalSeconds: seconds.reduce((sum, each) => sum + each, 0),
      longestSeconds: seconds.reduce((max, each) => Math.max(max, each), 0),
    }
  }

  /** @returns whether this is the first add since the item was taken */
  #addAgain(key: string, level: Level, nowMs: number): boolean {
    const present = this.#again.get(key)
    this.#again.set(key, { level: present ? highest(present.level, level) : level, sinceMs: present?.sinceMs ?? nowMs })
    return present === undefined
  }

  /** Runs begin in a microtask of their own, so that the caller has added all of its items by then and is not interrupted. */
  #dispatchSoon(): void {
    if (this.#isDispatching) return
    this.#isDispatching = true
    queueMicrotask(() => {
      this.#isDispatching = false
      this.#dispatch()
    })
  }

  #dispatch(): void {
    while (this.#state === 'Started') {
      const held = this.#held()
      const free = this.#capacity.free((level) => this.#ready.depth(level)).filter((level) => held.get(level) !== 'All')
      const next = this.#ready.shift(
        free,
        (tenant, level) => (held.get(level) === 'Large' && !this.#isSmall(tenant, level)) || this.#isFull(tenant, level),
      )
      if (!next) break
      const { item, level, sinceMs, tenant } = next
      const atMs = this.#options.clock.monotonic()
      this.#delayed.get(itemKey(item))?.cancel()
      this.#delayed.delete(itemKey(item))
      const taken = { level, tenant, atMs, bounds: this.#boundsAt(level, tenant) }
      this.#processing.set(itemKey(item), taken)
      this.#capacity.started(level, tenant)
      for (const bound of taken.bounds) this.#place(bound, 1)
      this.#lastMs[level] = atMs
      if (!held.has(level)) this.#startedMs[level] = atMs
      this.#options.metrics?.waited(level, (atMs - sinceMs) / 1000)
      void this.#run(item, taken)
    }
    this.#reportDepths()
  }

  async #run(item: Item, taken: Taken): Promise<void> {
    const { kinds, clock, metrics } = this.#options
    const { level, atMs } = taken
    const reconcile = kinds[item.kind]
    if (!reconcile) throw new TypeError(`nothing reconciles the kind ${item.kind}`)
    const end = await this.#timed(taken, reconcile(item.ref, level))
    const outcome = outcomeOf(end)
    if (outcome === 'error') metrics?.retried()
    if (outcome !== 'success') this.addAfter(item, end.requeueAfterMs ?? 0, end.at ?? level)
    const seconds = (clock.monotonic() - atMs) / 1000
    metrics?.reconciled(item.kind, outcome, seconds, end.failure === 'bug')
    metrics?.worked(seconds)
    this.#done(item, taken)
  }

  #done(item: Item, { level, tenant, atMs, bounds }: Taken): void {
    const key = itemKey(item)
    const forMs = this.#options.clock.monotonic() - atMs
    this.#processing.delete(key)
    this.#capacity.ended(level, tenant)
    if (bounds.length > 0 && forMs >= SHORTEST_REST_MS && forMs < SLOW_AFTER_MS) this.#slow.delete(tenant)
    this.#rest(bounds, forMs)
    const again = this.#again.get(key)
    this.#again.delete(key)
    if (again) this.#ready.add(item, again.level, again.sinceMs)
    this.#dispatchSoon()
    if (this.#state === 'Closed' && this.active === 0) this.#ended.abort()
  }

  #isFull(tenant: string, level: Level): boolean {
    if (this.#capacity.isFull(tenant, level, (each) => this.#ready.depth(each))) return true
    return this.#boundsAt(level, tenant).some(({ name, most }) => (this.#places.get(name) ?? 0) >= most)
  }

  #boundsAt(level: Level, tenant: string): readonly Bound[] {
    return (level === 'background' && this.#options.boundsOf?.(tenant, this.#slow.has(tenant))) || []
  }

  async #timed(taken: Taken, run: Promise<Requeue>): Promise<Requeue> {
    if (taken.bounds.length === 0) return await run
    const cancel = this.#options.clock.after(SLOW_AFTER_MS, () => this.#tookLong(taken))
    return await run.finally(cancel)
  }

  /** Marks the tenant of a slow run, and moves the run to the places of slow tenants if these have room. */
  #tookLong(taken: Taken): void {
    const { level, tenant, bounds } = taken
    this.#slow.add(tenant)
    const next = this.#boundsAt(level, tenant)
    const isOf = (some: readonly Bound[], { name }: Bound): boolean => some.some((one) => one.name === name)
    const gained = next.filter((bound) => !isOf(bounds, bound))
    if (gained.some(({ name, mostMoved = 0 }) => (this.#places.get(name) ?? 0) >= mostMoved)) return
    for (const bound of gained) this.#place(bound, 1)
    for (const bound of bounds) if (!isOf(next, bound)) this.#place(bound, -1)
    taken.bounds = next
    this.#dispatchSoon()
  }

  #place({ name }: Bound, change: 1 | -1): void {
    const places = (this.#places.get(name) ?? 0) + change
    if (places > 0) this.#places.set(name, places)
    else this.#places.delete(name)
  }

  /** A run without a call of the API server takes no time, and its places do not rest. */
  #rest(bounds: readonly Bound[], forMs: number): void {
    const leave = (): void => bounds.forEach((bound) => this.#place(bound, -1))
    if (bounds.length === 0 || forMs < SHORTEST_REST_MS) return leave()
    this.#options.clock.after(Math.min(forMs, LONGEST_REST_MS), () => {
      leave()
      this.#dispatchSoon()
    })
  }

  /** Levels that may start no run now, of any tenant or of those with a large part of what waits there. Read again after 20 ms. */
  #held(): ReadonlyMap<Level, 'All' | 'Large'> {
    const nowMs = this.#options.clock.monotonic()
    const held = (this.#options.held?.() ?? []).filter(
      (level) => this.#ready.depth(level) > 0 && nowMs - (this.#startedMs[level] ?? -Infinity) < HELD_RUN_EVERY_MS,
    )
    if (held.length > 0)
      this.#cancelHold ??= this.#options.clock.after(HELD_FOR_MS, () => {
        this.#cancelHold = undefined
        this.#dispatch()
      })
    return new Map(held.map((level) => [level, nowMs - (this.#lastMs[level] ?? -Infinity) < SMALL_RUN_EVERY_MS ? 'All' : 'Large'] as const))
  }

  #isSmall(tenant: string, level: Level): boolean {
    return this.#ready.waitingOf(tenant, level) * SMALL_PART <= this.#ready.depth(level)
  }

  #reportDepths(): void {
    for (const level of LEVELS) this.#options.metrics?.depth(level, this.#ready.depth(level))
  }
}

function outcomeOf({ requeueAfterMs, at, failure }: Requeue): Outcome {
  if (failure !== undefined) return 'error'
  return requeueAfterMs === undefined && at === undefined ? 'success' : 'requeue_after'
}
