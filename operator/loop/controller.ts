import { sleep, type Clock } from '#platform/clock.ts'
import type { Item } from './item.ts'
import type { Level } from './level.ts'
import type { Reconcile, Requeue } from './reconciler.ts'
import { WorkQueue, type WorkQueueMetrics } from './work-queue.ts'

/** The reconcile of one kind. */
export interface KindHandlers {
  readonly reconcile: Reconcile
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
  /** Runs at once, default 24; urgent items may use 8 more. A run makes API calls but waits for nothing else. */
  readonly workers?: number
  /** Levels that wait at present. */
  readonly held?: () => readonly Level[]
  readonly metrics?: ControllerMetrics | undefined
}

const WORKERS = 24

/** Runs the reconcile of every item that is enqueued, one run per object at a time. */
export class Controller {
  readonly #options: ControllerOptions
  readonly #queue: WorkQueue

  constructor(options: ControllerOptions) {
    const { clock, metrics, workers = WORKERS, held } = options
    this.#options = options
    const run = (item: Item, level: Level): void => void this.#run(item, level)
    this.#queue = new WorkQueue({ clock, workers, held, metrics: metrics?.queue, run })
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
    const { clock, metrics } = this.#options
    const startedAtMs = clock.monotonic()
    const end = await this.#handlersOf(item).reconcile(item.ref, level)
    const outcome = outcomeOf(end)
    const { requeueAfterMs = 0, at = level } = end
    if (outcome === 'error') this.#queue.retryAfter(item, requeueAfterMs, at)
    else if (outcome === 'requeue_after') this.#queue.addAfter(item, requeueAfterMs, at)
    metrics?.reconciled(item.kind, outcome, (clock.monotonic() - startedAtMs) / 1000, end.failure === 'bug')
    this.#queue.done(item)
  }

  #handlersOf(item: Item): KindHandlers {
    const handlers = this.#options.kinds[item.kind]
    if (!handlers) throw new TypeError(`nothing reconciles the kind ${item.kind}`)
    return handlers
  }
}

function outcomeOf({ requeueAfterMs, at, failure }: Requeue): ReconcileOutcome {
  if (failure !== undefined) return 'error'
  return requeueAfterMs === undefined && at === undefined ? 'success' : 'requeue_after'
}
