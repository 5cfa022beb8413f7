import type { Log } from '#platform/log.ts'
import { sleep, type Clock } from '#platform/clock.ts'
import { isKubeError, refKey, type ObjectRef } from '#kube/port.ts'
import { itemKey, type Item } from './item.ts'
import { ItemBackoff } from './item-backoff.ts'
import type { Level } from './level.ts'
import { WorkQueue, type WorkQueueMetrics } from './work-queue.ts'

/** When a successful reconcile runs again. Empty if only an event triggers the next run. */
export interface ReconcileResult {
  /** ms from now; absent with `at`: at once. */
  readonly requeueAfterMs?: number
  /** Level of that run; default that of this one. */
  readonly at?: Level
}

/** The reconcile of one kind. */
export interface KindHandlers {
  /** Brings the cluster closer to the object's spec. An error triggers another run with back-off. */
  reconcile(ref: ObjectRef, level: Level): Promise<ReconcileResult | void>
}

/** How a run ended. `requeue_after` = well, and runs again. */
export type ReconcileOutcome = 'success' | 'requeue_after' | 'error'

/** Metrics of the controller. */
export interface ControllerMetrics {
  readonly queue: WorkQueueMetrics
  /** @param panic the error is a programmer's mistake */
  reconciled(kind: string, outcome: ReconcileOutcome, seconds: number, panic: boolean): void
  /** Called once; the probe is read at each scrape. */
  watching(probe: ControllerProbe): void
}

/** The state of the controller, as the metrics read it. */
export interface ControllerProbe {
  readonly workers: number
  readonly activeWorkers: () => number
  readonly unfinished: WorkQueue['unfinished']
}

/** Dependencies of a controller. */
export interface ControllerOptions {
  /** By kind. Read at each run, so it may be filled after construction. */
  readonly kinds: Readonly<Record<string, KindHandlers>>
  readonly clock: Clock
  readonly logger: Log
  /** [0, 1) */
  readonly random: () => number
  /** Runs at once, default 24; urgent items may use 8 more. A run makes API calls but waits for nothing else. */
  readonly workers?: number
  /** Levels that wait at present. */
  readonly held?: () => readonly Level[]
  readonly metrics?: ControllerMetrics | undefined
}

const WORKERS = 24

/** How one run ended. */
interface RunEnd {
  readonly outcome: ReconcileOutcome
  readonly panic: boolean
}

/** Runs the reconcile of every item that is enqueued, one run per object at a time, and again with back-off after a failure. */
export class Controller {
  readonly #options: ControllerOptions
  readonly #queue: WorkQueue
  readonly #backoff: ItemBackoff

  constructor(options: ControllerOptions) {
    const { clock, metrics, random, workers = WORKERS, held } = options
    this.#options = options
    const run = (item: Item, level: Level): void => void this.#run(item, level)
    this.#queue = new WorkQueue({ clock, workers, held, metrics: metrics?.queue, run })
    this.#backoff = new ItemBackoff(random)
    const unfinished = (): ReturnType<WorkQueue['unfinished']> => this.#queue.unfinished()
    metrics?.watching({ workers: this.#queue.slots, activeWorkers: () => this.#queue.active, unfinished })
  }

  /** Adds an object to the queue. While it waits it can only move up; while it runs it runs again afterwards. */
  enqueue(item: Item, level: Level): void {
    this.#queue.add(item, level)
  }

  /** Adds an object later; the earliest delay counts. A run that begins before cancels the delay. */
  enqueueAfter(item: Item, delayMs: number, level: Level): void {
    this.#queue.addAfter(item, delayMs, level)
  }

  /** Drops everything planned for an object that no longer exists. */
  forget(item: Item): void {
    this.#queue.forget(item)
    this.#backoff.forget(itemKey(item))
  }

  /** Objects of one namespace that wait for anything but background work. */
  backlogOf(namespace: string): number {
    return this.#queue.backlogOf(namespace)
  }

  /** Starts the workers. */
  start(): void {
    this.#queue.start()
  }

  /**
   * Starts no new runs and waits for the runs under way.
   * @returns whether they ended within `timeoutMs`
   */
  async stop(timeoutMs: number): Promise<boolean> {
    this.#queue.close()
    const ended = new AbortController()
    const idle = this.#queue.idle().then(() => ended.abort())
    await Promise.race([idle, sleep(this.#options.clock, timeoutMs, ended.signal)])
    return this.#queue.active === 0
  }

  async #run(item: Item, level: Level): Promise<void> {
    const startedAtMs = this.#options.clock.monotonic()
    const { outcome, panic } = await this.#reconcile(item, level)
    this.#options.metrics?.reconciled(item.kind, outcome, (this.#options.clock.monotonic() - startedAtMs) / 1000, panic)
    this.#queue.done(item)
  }

  async #reconcile(item: Item, level: Level): Promise<RunEnd> {
    try {
      const { requeueAfterMs, at } = (await this.#handlersOf(item).reconcile(item.ref, level)) ?? {}
      this.#backoff.forget(itemKey(item))
      if (requeueAfterMs === undefined && at === undefined) return { outcome: 'success', panic: false }
      this.#queue.addAfter(item, requeueAfterMs ?? 0, at ?? level)
      return { outcome: 'requeue_after', panic: false }
    } catch (error) {
      return this.#failed(item, level, error)
    }
  }

  #failed(item: Item, level: Level, error: unknown): RunEnd {
    const log = this.#options.logger
    const object = { kind: item.kind, object: refKey(item.ref) }
    if (isKubeError(error, 'NamespaceTerminating') && error.namespace === item.ref.namespace) {
      this.#backoff.forget(itemKey(item)) // nothing can be created there any more; the deletion of the object arrives as a change
      log.info(object, 'the namespace is being deleted; nothing more is written there')
      return { outcome: 'success', panic: false }
    }
    const { delayMs: ownMs, isShort } = this.#backoff.next(itemKey(item), isKubeError(error, 'Conflict'))
    const delayMs = Math.max(ownMs, isKubeError(error) ? (error.retryAfterSeconds ?? 0) * 1000 : 0)
    this.#queue.retryAfter(item, delayMs, level)
    const panic = isProgrammerMistake(error)
    const reason = error instanceof Error ? error.message : 'unknown failure'
    if (panic) log.error({ ...object, err: error, retryInMs: delayMs }, 'reconcile met a bug')
    else if (isShort) log.debug(object, `reconcile again: ${reason}`)
    else log.warn({ ...object, retryInMs: delayMs }, `reconcile failed: ${reason}`)
    return { outcome: 'error', panic }
  }

  #handlersOf(item: Item): KindHandlers {
    const handlers = this.#options.kinds[item.kind]
    if (!handlers) throw new TypeError(`nothing reconciles the kind ${item.kind}`)
    return handlers
  }
}

function isProgrammerMistake(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError
}
