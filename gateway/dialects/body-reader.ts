import { GatewayError } from '../errors.ts'
import type { Cancel, Clock } from '../process/clock.ts'
import type { Log } from '../process/log.ts'
import { DIALECTS } from './all-dialects.ts'
import { type BodyJob, ownBytes, resultOf } from './body-messages.ts'
import { asError, BODY_WORKER, BodyThread } from './body-thread.ts'
import type { Dialect } from './dialect.ts'
import { readRequest, type ReadRequest } from './read-request.ts'

/** Bodies up to this size are read at once, within a few milliseconds. Larger ones would hold up all other callers. */
const AT_ONCE_BYTES = 256 * 2 ** 10
/** A worker that could not start is followed by the next one after this time. */
const RESTART_MS = 1_000

/** MiB of heap beside what a body takes. */
const BASE_HEAP_MIB = 64
/** Text, value and copies take up to seven times the bytes of a body. Far more, since V8 ends the whole process where one large allocation fails. */
const HEAP_PER_BODY = 12

/** What a reader needs. */
export interface BodyReaderDeps {
  readonly log: Log
  readonly clock: Clock
  /** Largest body: the worker's heap is bounded by it. */
  readonly maxBodyBytes: number
  /** Tests pass other programs than the worker's own. */
  readonly program?: URL
}

/** Who waits for a body to be read: the answer to the request. */
export interface BodyClient {
  once(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

/** What became of a body; undefined: the client has left meanwhile. */
export type BodyResult = ReadRequest | GatewayError | undefined

/**
 * Reads request bodies: small ones at once, large ones in the one worker of this process, one after the other. What costs too much to parse is
 * refused by the bytes alone (`json-structure.ts`); the worker is there for the latency of other callers only.
 */
export class BodyReader {
  readonly #deps: BodyReaderDeps
  readonly #jobs: Job[] = []
  #thread: BodyThread | undefined
  #isWorking = false
  #isStopped = false
  #cancelRestart: Cancel = () => undefined

  constructor(deps: BodyReaderDeps) {
    this.#deps = deps
  }

  /** Starts the worker. Rejects when it cannot run. */
  async start(): Promise<void> {
    await this.#startThread().ready
  }

  /**
   * Reads a body. A large one changes hands: its buffer is empty afterwards.
   * @param isMetered whether limits need to know what the call costs
   * @returns a promise for a large body only: all others pay nothing for it. Row 34 when the worker fails
   */
  read(bytes: Buffer, dialect: Dialect, client: BodyClient, isMetered = false): ReadRequest | GatewayError | Promise<BodyResult> {
    if (bytes.length <= AT_ONCE_BYTES || !DIALECTS.has(dialect.path)) return readRequest(bytes, dialect, isMetered)
    const job = new Job(bytes, { path: dialect.path, isMetered }, client)
    this.#jobs.push(job)
    if (!this.#isWorking) void this.#work()
    return job.done
  }

  /** Ends the worker. Bodies that wait for it get row 34. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelRestart()
    await this.#thread?.end()
  }

  /** The worker holds one body at a time: those that wait outlive its failure, and are dropped when their clients leave. */
  async #work(): Promise<void> {
    this.#isWorking = true
    for (let job = this.#jobs.shift(); job; job = this.#jobs.shift()) await this.#do(job)
    this.#isWorking = false
  }

  async #do(job: Job): Promise<void> {
    try {
      const thread = this.#thread
      if (!thread) throw new Error('no worker is running that could read a large body')
      await thread.ready
      const bytes = job.take()
      if (bytes) job.settle(resultOf(await thread.read({ ...job.order, bytes: ownBytes(bytes) })))
    } catch (cause) {
      job.settle(new GatewayError('internalError', {}, { cause }))
    }
  }

  #startThread(): BodyThread {
    const { clock, maxBodyBytes, program = BODY_WORKER } = this.#deps
    const heapMib = BASE_HEAP_MIB + Math.ceil((HEAP_PER_BODY * maxBodyBytes) / 2 ** 20)
    const thread = new BodyThread({ program, heapMib, clock, onEnd: (cause) => this.#ended(thread.isReady, cause) })
    this.#thread = thread
    return thread
  }

  /** Another worker starts at once; after one that could not even start, a little later. */
  #ended(wasReady: boolean, { message }: Error): void {
    this.#thread = undefined
    if (this.#isStopped) return
    this.#deps.log.error({ cause: message }, 'the worker that reads large bodies has failed; another one starts')
    if (wasReady) this.#restart()
    else this.#cancelRestart = this.#deps.clock.after(RESTART_MS, () => this.#restart())
  }

  #restart(): void {
    try {
      this.#startThread()
    } catch (cause) {
      this.#ended(false, asError(cause)) // the system gives no more threads
    }
  }
}

/** A large body that waits or is being read. */
class Job {
  readonly order: Omit<BodyJob, 'bytes'>
  readonly #client: BodyClient
  readonly #done = Promise.withResolvers<BodyResult>()
  #bytes: Buffer | undefined
  readonly #leave = (): void => {
    this.#bytes = undefined // the budget counts them no longer
    this.#done.resolve(undefined)
  }

  constructor(bytes: Buffer, order: Omit<BodyJob, 'bytes'>, client: BodyClient) {
    this.#bytes = bytes
    this.order = order
    this.#client = client
    client.once('close', this.#leave)
  }

  get done(): Promise<BodyResult> {
    return this.#done.promise
  }

  /** @returns the bytes, once; undefined when the client has left */
  take(): Buffer | undefined {
    const bytes = this.#bytes
    this.#bytes = undefined
    return bytes
  }

  settle(result: BodyResult): void {
    this.#client.off('close', this.#leave)
    this.#done.resolve(result)
  }
}
