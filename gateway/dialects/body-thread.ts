import { Worker } from 'node:worker_threads'
import type { Cancel, Clock } from '#platform/clock.ts'
import { type BodyAnswer, type BodyJob, READY } from './body-messages.ts'

/** Time after which a start or a body counts as hung, ms. 32 MiB take less than a second. */
const TIME_LIMIT_MS = 10_000
/** Young generation of a worker, MiB. V8 would take three times as much. */
const YOUNG_MIB = 16

/** The program of the worker, beside this file: as a source, or as a bundle. */
export const BODY_WORKER = new URL(import.meta.url.endsWith('.ts') ? './body-worker.ts' : './body-worker.js', import.meta.url)

interface BodyThreadDeps {
  readonly program: URL
  readonly heapMib: number
  readonly clock: Clock
  /** Called once when the thread has failed or ended, before its order rejects. */
  readonly onEnd: (cause: Error) => void
}

/** A worker thread that reads one body at a time. It cannot be used after its first failure. */
export class BodyThread {
  /** Rejects with the reason if the worker cannot run. */
  readonly ready: Promise<void>
  readonly #deps: BodyThreadDeps
  readonly #worker: Worker
  #isReady = false
  #failure: Error | undefined
  /** The start or the order that is awaited. */
  #awaited: PromiseWithResolvers<unknown> | undefined
  #cancelLimit: Cancel = () => undefined

  constructor(deps: BodyThreadDeps) {
    this.#deps = deps
    const resourceLimits = { maxOldGenerationSizeMb: deps.heapMib, maxYoungGenerationSizeMb: YOUNG_MIB }
    // without the environment, which contains passwords, and without flags of the process, such as a profiler
    this.#worker = new Worker(deps.program, { name: 'body-reader', env: {}, execArgv: [], resourceLimits })
    this.#worker.on('message', (message) => this.#received(message))
    this.#worker.on('messageerror', (cause) => this.#fail(cause))
    this.#worker.on('error', (cause) => this.#fail(asError(cause)))
    this.#worker.on('exit', (code) => this.#fail(new Error(`the worker ended with code ${code}`)))
    this.#worker.unref()
    this.ready = this.#next().then(() => undefined)
    this.ready.catch(() => undefined) // `onEnd` reports it too
  }

  get isReady(): boolean {
    return this.#isReady
  }

  /** Reads a body; only one at a time. Rejects if the worker fails. */
  read(job: BodyJob): Promise<BodyAnswer> {
    if (this.#failure) return Promise.reject(this.#failure)
    this.#worker.postMessage(job, [job.bytes.buffer])
    return this.#next() as Promise<BodyAnswer>
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }

  #next(): Promise<unknown> {
    const awaited = Promise.withResolvers<unknown>()
    this.#awaited = awaited
    this.#cancelLimit = this.#deps.clock.after(TIME_LIMIT_MS, () => this.#fail(new Error(`the worker was silent for ${TIME_LIMIT_MS} ms`)))
    return awaited.promise
  }

  #received(message: unknown): void {
    if (message === READY) this.#isReady = true
    this.#cancelLimit()
    this.#awaited?.resolve(message)
  }

  #fail(cause: Error): void {
    if (this.#failure) return
    this.#failure = cause
    this.#cancelLimit()
    void this.#worker.terminate()
    this.#deps.onEnd(cause)
    this.#awaited?.reject(cause)
  }
}

export function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause))
}
