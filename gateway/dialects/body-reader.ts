import type { EventEmitter } from 'node:events'
import { Worker } from 'node:worker_threads'
import { GatewayError } from '../errors.ts'
import type { Cancel, Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import { type BodyAnswer, type BodyJob, ownBytes, READY, resultOf } from './body-messages.ts'
import type { Dialect } from './dialect.ts'
import { DIALECTS } from './dialects.ts'
import { type HowToRead, readRequest, type ReadRequest } from './read-request.ts'

/** Bodies up to this size, bytes, are read at once, within a few milliseconds. Larger ones would delay all other callers. */
const AT_ONCE_BYTES = 256 * 2 ** 10
/** Pause after a worker could not start, ms. */
const RESTART_MS = 1_000

/** Heap of the worker besides that for a body, MiB. */
const BASE_HEAP_MIB = 64
/**
 * Heap per byte of a body. Text, value and copies take up to seven times the bytes; the factor is far higher because V8 ends the whole
 * process when one large allocation fails (decision 20).
 */
const HEAP_PER_BODY = 12

interface BodyReaderDeps {
  readonly log: Log
  readonly clock: Clock
  /** Size of the largest body, bytes. The worker's heap follows from it. */
  readonly maxBodyBytes: number
  readonly program?: URL
}

/** The answer to the client of a body: when it closes, the reader drops the body. */
type BodyClient = Pick<EventEmitter, 'once' | 'off'>

export type BodyResult = ReadRequest | GatewayError | undefined

/**
 * Reads request bodies: small ones at once, large ones one after the other in the only worker of the process. Bodies that would take too
 * long to parse are refused by their bytes alone (`read-request.ts`). The worker only protects the latency of other callers.
 */
export class BodyReader {
  readonly #deps: BodyReaderDeps
  #thread: BodyThread | undefined
  /** Resolves when every body until now is read: one at a time. */
  #idle = Promise.resolve()
  #isStopped = false
  #cancelRestart: Cancel = () => undefined

  constructor(deps: BodyReaderDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    await this.#startThread().ready
  }

  /**
   * Reads a body. The buffer of a large body is transferred and empty afterwards.
   * @returns a promise for large bodies only, so that small ones pay nothing. Row 34 if the worker fails
   */
  read(bytes: Buffer, dialect: Dialect, client: BodyClient, how: HowToRead = {}): ReadRequest | GatewayError | Promise<BodyResult> {
    if (bytes.length <= AT_ONCE_BYTES || !DIALECTS.has(dialect.path)) return readRequest(bytes, dialect, how)
    return this.#enqueue(bytes, { path: dialect.path, how }, client)
  }

  /** Ends the worker. Bodies that wait for it get row 34. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelRestart()
    await this.#thread?.end()
  }

  #enqueue(bytes: Buffer, order: Job['order'], client: BodyClient): Promise<BodyResult> {
    const { promise, resolve } = Promise.withResolvers<BodyResult>()
    const job: Job = { order, bytes, settle: resolve }
    const leave = (): void => {
      job.bytes = undefined
      resolve(undefined)
    }
    client.once('close', leave)
    this.#idle = this.#idle.then(() => this.#do(job))
    void promise.then(() => client.off('close', leave))
    return promise
  }

  /** Reads one body. Never rejects, because waiting bodies survive a failure of the worker. A body is dropped when its client leaves. */
  async #do(job: Job): Promise<void> {
    try {
      const thread = this.#thread
      if (!thread) throw new Error('no worker is running that could read a large body')
      await thread.ready
      const { bytes } = job
      job.bytes = undefined
      if (bytes) job.settle(resultOf(await thread.read({ ...job.order, bytes: ownBytes(bytes) })))
    } catch (cause) {
      job.settle(new GatewayError('internalError', {}, { cause }))
    }
  }

  #startThread(): BodyThread {
    const thread = new BodyThread(this.#deps, (cause) => this.#ended(thread.isReady, cause))
    this.#thread = thread
    return thread
  }

  /** Starts another worker: at once, or a little later if the last one could not even start. */
  #ended(wasReady: boolean, cause: unknown): void {
    this.#thread = undefined
    if (this.#isStopped) return
    this.#deps.log.error({ cause: messageOf(cause) }, 'the worker that reads large bodies has failed; another one starts')
    if (wasReady) this.#restart()
    else this.#cancelRestart = this.#deps.clock.after(RESTART_MS, () => this.#restart())
  }

  #restart(): void {
    try {
      this.#startThread()
    } catch (cause) {
      this.#ended(false, cause) // the system cannot start another thread
    }
  }
}

interface Job {
  readonly order: Omit<BodyJob, 'bytes'>
  /** undefined once the worker has them, and when the client has left: the budget no longer counts them then. */
  bytes: Buffer | undefined
  readonly settle: (result: BodyResult) => void
}

/** Time after which a start or a body counts as hung, ms. 32 MiB take less than a second. */
const TIME_LIMIT_MS = 10_000
/** Young generation of a worker, MiB. V8 would take three times as much. */
const YOUNG_MIB = 16

/** The program of the worker, beside this file: as a source, or as a bundle. */
const BODY_WORKER = new URL(import.meta.url.endsWith('.ts') ? './body-worker.ts' : './body-worker.js', import.meta.url)

/** A worker thread that reads one body at a time. It cannot be used after its first failure. */
class BodyThread {
  /** Rejects with the reason if the worker cannot run. */
  readonly ready: Promise<void>
  readonly #clock: Clock
  readonly #onEnd: (cause: Error) => void
  readonly #worker: Worker
  /** Whether the worker has started. */
  isReady = false
  #failure: Error | undefined
  /** The start or the order that is awaited. */
  #awaited: PromiseWithResolvers<unknown> | undefined
  #cancelLimit: Cancel = () => undefined

  /** @param onEnd called once when the thread has failed or ended, before its order rejects */
  constructor({ clock, maxBodyBytes, program = BODY_WORKER }: BodyReaderDeps, onEnd: (cause: Error) => void) {
    this.#clock = clock
    this.#onEnd = onEnd
    const heapMib = BASE_HEAP_MIB + Math.ceil((HEAP_PER_BODY * maxBodyBytes) / 2 ** 20)
    const resourceLimits = { maxOldGenerationSizeMb: heapMib, maxYoungGenerationSizeMb: YOUNG_MIB }
    // without the environment, which contains passwords, and without flags of the process, such as a profiler
    this.#worker = new Worker(program, { name: 'body-reader', env: {}, execArgv: [], resourceLimits })
    this.#worker.on('message', (message) => this.#received(message))
    this.#worker.on('messageerror', (cause) => this.#fail(cause))
    this.#worker.on('error', (cause) => this.#fail(cause instanceof Error ? cause : new Error(String(cause))))
    this.#worker.on('exit', (code) => this.#fail(new Error(`the worker ended with code ${code}`)))
    this.#worker.unref()
    this.ready = this.#next().then(() => undefined)
    this.ready.catch(() => undefined) // `onEnd` reports it too
  }

  /** Reads a body; only one at a time. Rejects if the worker fails. */
  read(job: BodyJob): Promise<BodyAnswer> {
    if (this.#failure) return Promise.reject(this.#failure)
    this.#worker.postMessage(job, [job.bytes.buffer])
    return this.#next() as Promise<BodyAnswer>
  }

  end(): Promise<unknown> {
    return this.#worker.terminate()
  }

  #next(): Promise<unknown> {
    const awaited = Promise.withResolvers<unknown>()
    this.#awaited = awaited
    this.#cancelLimit = this.#clock.after(TIME_LIMIT_MS, () => this.#fail(new Error(`the worker was silent for ${TIME_LIMIT_MS} ms`)))
    return awaited.promise
  }

  #received(message: unknown): void {
    if (message === READY) this.isReady = true
    this.#cancelLimit()
    this.#awaited?.resolve(message)
  }

  #fail(cause: Error): void {
    if (this.#failure) return
    this.#failure = cause
    this.#cancelLimit()
    void this.#worker.terminate()
    this.#onEnd(cause)
    this.#awaited?.reject(cause)
  }
}
