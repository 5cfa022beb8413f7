import type { Clock } from '#platform/clock.ts'
import type { Item } from './item.ts'
import type { Level } from './level.ts'
import type { Reconcile, Requeue } from './reconciler.ts'
import { WorkQueue, type WorkQueueMetrics } from './work-queue.ts'

/** How a run ended. `requeue_after` = well, and runs again. */
export type ReconcileOutcome = 'success' | 'requeue_after' | 'error'

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

export interface ControllerOptions {
  /** By kind. Read at each run, so it may be filled after construction. */
  readonly kinds: Readonly<Record<string, Reconcile>>
  readonly clock: Clock
  /** Runs at once, default 24; urgent items may use 8 more. A run makes API calls but waits for nothing else. */
  readonly workers?: number
  readonly held?: (() => readonly Level[]) | undefined
  readonly metrics?: ControllerMetrics | undefined
}

const WORKERS = 24

/** @returns the queue whose items are reconciled, one run per object at a time */
export function createController({ kinds, clock, workers = WORKERS, held, metrics }: ControllerOptions): WorkQueue {
  const queue = new WorkQueue({ clock, workers, held, metrics: metrics?.queue, run: (item, level) => void run(item, level) })
  metrics?.watching({ workers: queue.slots, activeWorkers: () => queue.active, unfinished: () => queue.unfinished() })
  return queue

  async function run(item: Item, level: Level): Promise<void> {
    const reconcile = kinds[item.kind]
    if (!reconcile) throw new TypeError(`nothing reconciles the kind ${item.kind}`)
    const startedAtMs = clock.monotonic()
    const end = await reconcile(item.ref, level)
    const outcome = outcomeOf(end)
    const { requeueAfterMs = 0, at = level } = end
    if (outcome === 'error') queue.retryAfter(item, requeueAfterMs, at)
    else if (outcome === 'requeue_after') queue.addAfter(item, requeueAfterMs, at)
    metrics?.reconciled(item.kind, outcome, (clock.monotonic() - startedAtMs) / 1000, end.failure === 'bug')
    queue.done(item)
  }
}

function outcomeOf({ requeueAfterMs, at, failure }: Requeue): ReconcileOutcome {
  if (failure !== undefined) return 'error'
  return requeueAfterMs === undefined && at === undefined ? 'success' : 'requeue_after'
}
