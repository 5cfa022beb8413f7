import type { EventEmitter } from 'node:events'
import { Worker } from 'node:worker_threads'
import { GatewayError } from '../errors.ts'
import type { Cancel, Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import { messageOf } from '#platform/message-of.ts'
import { TurnQueue } from '#platform/turn-queue.ts'
import {
  type AnswerTo,
  type BodyAnswer,
  type BodyJob,
  ownBytes,
  READY,
  receivedAnswer,
  resultOf,
  type SentAnswer,
} from './body-messages.ts'
import type { Dialect } from './dialect.ts'
import { DIALECTS } from './dialects.ts'
import { type HowToRead, readRequest, type ReadRequest } from './read-request.ts'
import { translateBody, type TranslateOptions, type Translation } from './translation/translate-body.ts'
import { type AnswerOrder, type WholeAnswer, wholeAnswer } from './whole-answer.ts'

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

const NOBODY = { tenant: '', key: '' }

interface BodyReaderDeps {
  readonly log: Log
  readonly clock: Clock
  /** Size of the largest body or answer, bytes. The worker's heap follows from it. */
  readonly maxBodyBytes: number
  readonly program?: URL
}

/** The answer to the client of a body: when it closes, the reader drops the body. */
type BodyClient = Pick<EventEmitter, 'once' | 'off'>

export type BodyResult = ReadRequest | GatewayError | undefined

/** How to read a body, and whose turn among large bodies it takes. */
export interface HowToReadNext extends HowToRead {
  readonly owner?: { readonly tenant: string; readonly key: string }
}

/** Which translations to make, and whose turn among large bodies they take. */
export interface HowToTranslate extends Pick<HowToReadNext, 'owner'> {
  readonly translations: readonly TranslateOptions[]
}

/** In the order of the options; a refusal (rows 11 and 15) for a server that cannot be asked. */
export type TranslationResults = ReadonlyArray<Translation | GatewayError>

/**
 * Reads request bodies, and answers that are read whole: small ones at once, large ones one after the other in the only worker of the process. Tenants take turns, and within
 * a tenant its keys, because a body may be built to cost much. Bodies that would take too
 * long to parse are refused by their bytes alone (`read-request.ts`). The worker only protects the latency of other callers.
 */
export class BodyReader {
  readonly #deps: BodyReaderDeps
  #thread: BodyThread | undefined
  readonly #waiting = new TurnQueue<Job>()
  #isReading = false
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
  read(bytes: Buffer, dialect: Dialect, client: BodyClient, how: HowToReadNext = {}): ReadRequest | GatewayError | Promise<BodyResult> {
    if (bytes.length <= AT_ONCE_BYTES || !DIALECTS.has(dialect.path)) return readRequest(bytes, dialect, how)
    const { owner = NOBODY, ...order } = how
    const job = {
      order: { path: dialect.path, how: order },
      owner,
      read: (answer: BodyAnswer) => resultOf(answer as AnswerTo<ReadRequest>),
    }
    return this.#enqueue(bytes, job, client)
  }

  /**
   * Translates a body that was read, once for each kind of server. The buffer stays.
   * @returns a promise for large bodies only; undefined if the client has left. Row 34 if the worker fails
   */
  translate(
    bytes: Buffer,
    dialect: Dialect,
    client: BodyClient,
    { owner = NOBODY, translations }: HowToTranslate,
  ): TranslationResults | Promise<TranslationResults | GatewayError | undefined> {
    if (bytes.length <= AT_ONCE_BYTES) return translations.map((options) => translateBody(bytes, dialect, options))
    const read = (answer: BodyAnswer): TranslationResults => (answer as Array<AnswerTo<Translation>>).map((one) => resultOf(one))
    return this.#enqueue(bytes, { order: { path: dialect.path, how: {}, translations }, owner, read }, client)
  }

  /**
   * Writes an answer that was read whole in the form that its client expects. The buffer of a large answer is transferred and empty afterwards.
   * @returns a promise for large answers only; undefined if the client has left. Row 34 if the worker fails
   */
  answer(
    bytes: Buffer,
    dialect: Dialect,
    client: BodyClient,
    { owner = NOBODY, ...order }: AnswerOrder & Pick<HowToReadNext, 'owner'>,
  ): WholeAnswer | Promise<WholeAnswer | GatewayError | undefined> {
    if (bytes.length <= AT_ONCE_BYTES || !DIALECTS.has(dialect.path)) return wholeAnswer(bytes, dialect, order)
    const job = {
      order: { path: dialect.path, how: {}, answer: order },
      owner,
      read: (answer: BodyAnswer) => receivedAnswer(answer as SentAnswer),
    }
    return this.#enqueue(bytes, job, client)
  }

  /** Ends the worker. Bodies that wait for it get row 34. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelRestart()
    await this.#thread?.end()
  }

  #enqueue<T>(bytes: Buffer, { order, owner, read }: NewJob<T>, client: BodyClient): Promise<T | GatewayError | undefined> {
    const { promise, resolve } = Promise.withResolvers<T | GatewayError | undefined>()
    const job: Job = { order, bytes, answered: (answer) => resolve(read(answer)), failed: resolve }
    this.#waiting.push(job, [owner.tenant, owner.key])
    this.#dropWith(client, job, promise)
    void this.#readAll()
    return promise
  }

  /** Drops a body when its client leaves. */
  #dropWith(client: BodyClient, job: Job, promise: Promise<unknown>): void {
    const leave = (): void => {
      job.bytes = undefined
      job.failed(undefined)
    }
    client.once('close', leave)
    void promise.then(() => client.off('close', leave))
  }

  /** Reads all bodies that wait, one at a time. */
  async #readAll(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    for (let job = this.#waiting.take(); job !== undefined; job = this.#waiting.take()) await this.#do(job)
    this.#isReading = false
  }

  /** Reads one body. Never rejects, because waiting bodies survive a failure of the worker. */
  async #do(job: Job): Promise<void> {
    try {
      const thread = this.#thread
      if (!thread) throw new Error('no worker is running that could read a large body')
      await thread.ready
      const { bytes } = job
      job.bytes = undefined
      if (bytes) job.answered(await thread.read({ ...job.order, bytes: ownBytes(job.order.translations ? Buffer.from(bytes) : bytes) }))
    } catch (cause) {
      job.failed(new GatewayError('internalError', {}, { cause }))
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

/** A job before it waits. */
interface NewJob<T> {
  readonly order: Job['order']
  readonly owner: NonNullable<HowToReadNext['owner']>
  /** Reads the answer of the worker. */
  readonly read: (answer: BodyAnswer) => T | GatewayError
}

interface Job {
  readonly order: Omit<BodyJob, 'bytes'>
  /** undefined once the worker has them, and when the client has left: the budget no longer counts them then. */
  bytes: Buffer | undefined
  readonly answered: (answer: BodyAnswer) => void
  readonly failed: (failure: GatewayError | undefined) => void
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
