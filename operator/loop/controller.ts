import type { Log } from '../../gateway/shared/log.ts'
import { sleep, type Clock } from '../../gateway/shared/clock.ts'
import { isKubeError, refKey, type ObjectRef } from '../kube/port.ts'
import { Backoff } from './backoff.ts'
import type { Priority } from './key-lanes.ts'
import { WorkQueue, type WorkQueueMetrics } from './work-queue.ts'

/** Looks at one object and makes the world fit it. Throws to be called again later. */
export type Reconcile = (ref: ObjectRef) => Promise<{ readonly requeueAfterMs?: number } | void>

/** How a reconcile ended. `requeue_after` = well, and wants to look again. */
export type ReconcileResult = 'success' | 'requeue_after' | 'error'

/** What a controller tells the metrics. */
export interface ControllerMetrics {
  readonly queue: WorkQueueMetrics
  /** @param panic the error is a programmer's mistake, not the world's */
  reconciled(result: ReconcileResult, seconds: number, panic: boolean): void
  /** Called once; asked at each scrape. */
  watching(probe: ControllerProbe): void
}

/** The state of one controller, as the metrics read it. */
export interface ControllerProbe {
  readonly workers: number
  readonly activeWorkers: () => number
  readonly unfinished: WorkQueue['unfinished']
}

/** What a controller is made of. */
export interface ControllerOptions {
  /** Kind, for logs and metrics. */
  readonly name: string
  readonly reconcile: Reconcile
  /** Reconciles at once; most of them wait for a keyring commit, so several hundred are in order. */
  readonly workers: number
  readonly clock: Clock
  readonly logger: Log
  /** [0, 1) */
  readonly random: () => number
  readonly metrics?: ControllerMetrics
}

/** Runs `reconcile` for every ref that is enqueued, one at a time per object, again with back-off when it fails. */
export class Controller {
  readonly #options: ControllerOptions
  readonly #queue: WorkQueue
  readonly #backoff: Backoff
  #running = false

  constructor(options: ControllerOptions) {
    this.#options = options
    this.#queue = new WorkQueue(options.clock, options.metrics?.queue)
    this.#backoff = new Backoff(options.random)
    const unfinished = (): ReturnType<WorkQueue['unfinished']> => this.#queue.unfinished()
    options.metrics?.watching({ workers: options.workers, activeWorkers: () => this.#queue.active, unfinished })
  }

  /** Has an object looked at. */
  enqueue(ref: ObjectRef, priority: Priority = 'change'): void {
    this.#queue.add(refKey(ref), priority)
  }

  /** Has an object looked at later; the earliest wish counts. */
  enqueueAfter(ref: ObjectRef, delayMs: number): void {
    this.#queue.addAfter(refKey(ref), delayMs)
  }

  /** Starts the workers. What was enqueued before is waiting for them. */
  start(): void {
    if (this.#running) return
    this.#running = true
    for (let worker = 0; worker < this.#options.workers; worker += 1) void this.#work()
  }

  /**
   * Starts nothing new and waits for what is under way.
   * @returns whether it ended within `timeoutMs`
   */
  async stop(timeoutMs: number): Promise<boolean> {
    this.#queue.close()
    const ended = new AbortController()
    const idle = this.#queue.idle().then(() => ended.abort())
    await Promise.race([idle, sleep(this.#options.clock, timeoutMs, ended.signal)])
    return this.#queue.active === 0
  }

  async #work(): Promise<void> {
    for (let key = await this.#queue.take(); key !== undefined; key = await this.#queue.take()) {
      const startedAtMs = this.#options.clock.monotonic()
      const outcome = await this.#reconcile(key)
      const seconds = (this.#options.clock.monotonic() - startedAtMs) / 1000
      this.#options.metrics?.reconciled(outcome.result, seconds, outcome.panic)
      this.#queue.done(key)
    }
  }

  async #reconcile(key: string): Promise<{ result: ReconcileResult; panic: boolean }> {
    try {
      const { requeueAfterMs } = (await this.#options.reconcile(refFrom(key))) ?? {}
      this.#backoff.forget(key)
      if (requeueAfterMs === undefined) return { result: 'success', panic: false }
      this.#queue.addAfter(key, requeueAfterMs)
      return { result: 'requeue_after', panic: false }
    } catch (error) {
      return this.#failed(key, error)
    }
  }

  #failed(key: string, error: unknown): { result: ReconcileResult; panic: boolean } {
    const log = this.#options.logger
    const object = { kind: this.#options.name, object: key }
    if (isKubeError(error, 'NamespaceTerminating')) {
      this.#backoff.forget(key) // nothing can be made there any more; the deletion of the object comes as a change
      log.info(object, 'the namespace is being deleted; nothing more is written there')
      return { result: 'success', panic: false }
    }
    const conflict = isKubeError(error, 'Conflict')
    const retryInMs = Math.round(this.#backoff.next(key, conflict))
    this.#queue.retryAfter(key, retryInMs)
    const panic = isProgrammerMistake(error)
    const reason = error instanceof Error ? error.message : 'unknown failure'
    if (panic) log.error({ ...object, err: error, retryInMs }, 'reconcile met a bug')
    else if (conflict && retryInMs === 0) log.debug(object, `reconcile again: ${reason}`)
    else log.warn({ ...object, retryInMs }, `reconcile failed: ${reason}`)
    return { result: 'error', panic }
  }
}

/** The reverse of refKey; a name has no slash. */
function refFrom(key: string): ObjectRef {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

function isProgrammerMistake(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError
}
