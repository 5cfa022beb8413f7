import type { Cancel, Clock } from '../../gateway/shared/clock.ts'
import { KeyLanes, type Priority } from './key-lanes.ts'

/** What the queue tells the metrics, durations in seconds. */
export interface WorkQueueMetrics {
  depth(keys: number): void
  added(): void
  retried(): void
  /** From being added to being taken. */
  waited(seconds: number): void
  /** From being taken to being done. */
  worked(seconds: number): void
}

/**
 * Keys to look at, each by one worker at a time. A key added while it is worked on comes back when that work is done, so that the last
 * change is always seen; added twice while it waits it is looked at once.
 */
export class WorkQueue {
  readonly #clock: Clock
  readonly #metrics: WorkQueueMetrics | undefined
  readonly #ready = new KeyLanes()
  /** Keys worked on, with the time when each was taken. */
  readonly #processing = new Map<string, number>()
  /** Keys added while they are worked on. */
  readonly #again = new Map<string, { priority: Priority; sinceMs: number }>()
  readonly #delayed = new Map<string, { dueMs: number; cancel: Cancel }>()
  readonly #takers: Array<(key: string | undefined) => void> = []
  readonly #idleWaiters: Array<() => void> = []
  #closed = false

  constructor(clock: Clock, metrics?: WorkQueueMetrics) {
    this.#clock = clock
    this.#metrics = metrics
  }

  /** Keys that wait for a worker. */
  get depth(): number {
    return this.#ready.size
  }

  /** Keys that a worker has. */
  get active(): number {
    return this.#processing.size
  }

  /** Puts a key into the line; ignored after `close`. */
  add(key: string, priority: Priority = 'change'): void {
    if (this.#closed) return
    const now = this.#clock.monotonic()
    const isNew = this.#processing.has(key) ? this.#addAgain(key, priority, now) : this.#ready.add(key, priority, now)
    if (!isNew) return
    this.#metrics?.added()
    this.#dispatch()
  }

  /** Adds the key in `delayMs`. Of several such wishes for a key the earliest counts. */
  addAfter(key: string, delayMs: number): void {
    if (this.#closed) return
    if (delayMs <= 0) return this.add(key)
    const dueMs = this.#clock.monotonic() + delayMs
    const planned = this.#delayed.get(key)
    if (planned && planned.dueMs <= dueMs) return
    planned?.cancel()
    // a timer that fires early (its length is bounded) only means one look too many
    const cancel = this.#clock.after(delayMs, () => {
      this.#delayed.delete(key)
      this.add(key)
    })
    this.#delayed.set(key, { dueMs, cancel })
  }

  /** `addAfter` for a key whose work has failed; counted as a retry. */
  retryAfter(key: string, delayMs: number): void {
    this.#metrics?.retried()
    this.addAfter(key, delayMs)
  }

  /** Waits for a key. Every key taken must be given back by `done`. @returns undefined once the queue is closed */
  take(): Promise<string | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      this.#takers.push(resolve)
      this.#dispatch()
    })
  }

  /** The work on a key has ended, well or not. */
  done(key: string): void {
    const takenAtMs = this.#processing.get(key)
    if (takenAtMs === undefined) return
    this.#processing.delete(key)
    this.#metrics?.worked((this.#clock.monotonic() - takenAtMs) / 1000)
    const again = this.#again.get(key)
    this.#again.delete(key)
    if (again && !this.#closed) {
      this.#ready.add(key, again.priority, again.sinceMs)
      this.#dispatch()
    }
    if (this.#processing.size === 0) for (const wake of this.#idleWaiters.splice(0)) wake()
  }

  /** Takes no more keys and hands out none: what waits is left to the next leader, which looks at everything anyway. */
  close(): void {
    this.#closed = true
    this.#ready.clear()
    this.#again.clear()
    for (const { cancel } of this.#delayed.values()) cancel()
    this.#delayed.clear()
    this.#metrics?.depth(0)
    for (const taker of this.#takers.splice(0)) taker(undefined)
  }

  /** Resolves when no key is worked on. */
  idle(): Promise<void> {
    if (this.#processing.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  /** Seconds of work so far on keys that are not done: the sum, and the longest one. Shows a stuck worker. */
  unfinished(): { readonly totalSeconds: number; readonly longestSeconds: number } {
    const now = this.#clock.monotonic()
    const seconds = [...this.#processing.values()].map((takenAtMs) => (now - takenAtMs) / 1000)
    return {
      totalSeconds: seconds.reduce((sum, each) => sum + each, 0),
      longestSeconds: seconds.reduce((max, each) => Math.max(max, each), 0),
    }
  }

  /** @returns whether this is the first time since the key was taken */
  #addAgain(key: string, priority: Priority, nowMs: number): boolean {
    const waiting = this.#again.get(key)
    if (!waiting || priority === 'change') this.#again.set(key, { priority, sinceMs: waiting?.sinceMs ?? nowMs })
    return waiting === undefined
  }

  #dispatch(): void {
    while (this.#takers.length > 0) {
      const next = this.#ready.shift()
      if (!next) break
      const now = this.#clock.monotonic()
      this.#processing.set(next.key, now)
      this.#metrics?.waited((now - next.sinceMs) / 1000)
      this.#takers.shift()?.(next.key)
    }
    this.#metrics?.depth(this.#ready.size)
  }
}
