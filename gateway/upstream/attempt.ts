import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { GatewayError, type RowID } from '../errors.ts'
import { requestIdHeaders } from '../http/request-id.ts'
import type { BackendHealth } from './backend-health.ts'
import type { Failure } from './backend-error.ts'
import { BodyDecoder, canDecode, type Decoded } from './body-decoder.ts'
import { ErrorAnswer } from './error-answer.ts'
import type { AttemptResult, ForwardJob } from './forward-job.ts'
import type { Target } from './model-entry.ts'
import { PlainRelay } from './relay-plain.ts'
import { StreamRelay } from './relay-stream.ts'
import type { AnswerHead, Sink, SinkHost } from './sink.ts'
import { NO_SLOT } from './slot-list.ts'
import { UnwritableAnswer, upstreamBody } from './rename-model.ts'
import type { TimerWheel, WheelEntry } from './timer-wheel.ts'
import { upstreamHeaders } from './upstream-headers.ts'
import type { UpstreamPools } from './upstream-pools.ts'

/** What an attempt needs. */
export interface AttemptDeps {
  readonly pools: Pick<UpstreamPools, 'of'>
  readonly wheel: TimerWheel
  readonly health: BackendHealth
  /** Request headers that may pass. */
  readonly forwarded: ReadonlySet<string>
  /** Seconds of silence after which a stream is kept alive; time-outs are the model's. */
  readonly keepAliveTicks: number
}

/** One request to one server. */
export interface AttemptOptions {
  readonly job: ForwardJob
  readonly target: Target
  /** Tick at which the request came: a second attempt does not get its time anew. */
  readonly startedAt: number
}

type Controller = Dispatcher.DispatchController

/** Ticks that a connection may take to end after its answer has, so that it can be used again. */
const AFTER_END_TICKS = 2
const ABORTED = new Error('the gateway has given up this request')

/**
 * One request to one server, from the connection to the last byte. undici calls the `on…` methods, the wheel calls `onTick`, a sink uses
 * the `SinkHost` side. Exactly one result comes out; everything after it is ignored.
 */
export class Attempt implements Dispatcher.DispatchHandler, WheelEntry, SinkHost, Decoded {
  slot = NO_SLOT
  readonly job: ForwardJob
  readonly target: Target
  readonly isRenamed: boolean
  readonly result: Promise<AttemptResult>
  wroteAt: number
  readonly #deps: AttemptDeps
  readonly #startedAt: number
  readonly #settle: (result: AttemptResult) => void
  readonly #stream: StreamRelay | undefined
  #controller: Controller | undefined = undefined
  #sink: Sink | undefined = undefined
  #decoder: BodyDecoder | undefined = undefined
  /** Tick of the last sign of life of the backend. */
  #heardAt: number
  #hasBegun = false
  /** Tick since which the client takes nothing. */
  #pausedAt: number | undefined = undefined
  #settledAt: number | undefined = undefined
  #isOver = false

  constructor({ job, target, startedAt }: AttemptOptions, deps: AttemptDeps) {
    const { promise, resolve } = Promise.withResolvers<AttemptResult>()
    this.job = job
    this.target = target
    this.isRenamed = target.backend.upstreamModel !== job.askedName
    this.result = promise
    this.#settle = resolve
    this.#deps = deps
    this.#startedAt = startedAt
    this.wroteAt = startedAt
    this.#heardAt = startedAt
    this.#stream = job.stream ? new StreamRelay(this) : undefined
  }

  get keepAliveTicks(): number {
    return this.#deps.keepAliveTicks
  }

  get isPaused(): boolean {
    return this.#pausedAt !== undefined
  }

  /** Sends the request. Time-outs are those of the wheel: the first byte is the first event, which undici knows nothing of. */
  start(credential: string | undefined): void {
    const { job, target } = this
    const { pools, wheel, forwarded } = this.#deps
    const isNative = job.path === '/v1/messages' && target.backend.isNative
    const headers = upstreamHeaders({ sent: job.request.headers, forwarded, isNative, requestId: job.requestId, credential })
    const body = upstreamBody(job.body, target.backend.upstreamModel)
    const pool = pools.of(target.origin)
    target.health.inFlight++
    wheel.add(this)
    pool.dispatch({ path: target.prefix + job.path, method: 'POST', headers, body, headersTimeout: 0, bodyTimeout: 0 }, this)
  }

  // --- what undici reports

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    if (this.#settledAt !== undefined) controller.abort(ABORTED) // given up while connecting
  }

  onResponseStart(controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || this.#settledAt !== undefined) return
    this.#heardAt = this.#deps.wheel.now
    this.#contain(() => this.#answered(controller, status, headers))
  }

  #answered(controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    const encoding = String(headers['content-encoding'] ?? 'identity').toLowerCase()
    const isDecoded = encoding !== 'identity'
    if (isDecoded && !canDecode(encoding)) return this.#unreadable()
    if (isDecoded) this.#decoder = new BodyDecoder(encoding, controller, this)
    this.#sink = this.#sinkFor({ status, headers, isDecoded })
  }

  onResponseData(_: Controller, chunk: Buffer): void {
    this.#heardAt = this.#deps.wheel.now
    if (this.#settledAt !== undefined) return
    if (this.#decoder) this.#decoder.write(chunk)
    else this.data(chunk)
  }

  onResponseEnd(): void {
    this.#over()
    if (this.#settledAt !== undefined) return
    if (this.#decoder) this.#decoder.end()
    else this.end()
  }

  onResponseError(_: Controller, cause: Error & { code?: string }): void {
    this.#over()
    if (this.#settledAt !== undefined) return
    if (this.#controller !== undefined) return this.#lost(cause)
    if (cause.code === 'UND_ERR_INVALID_ARG') return this.fail(new GatewayError('internalError', {}, { cause }), false)
    this.#deps.health.connectFailed(this.target.health)
    this.fail(new GatewayError('noBackend', { model: this.job.askedName }, { cause }), true)
  }

  // --- what the decoder reports

  data(chunk: Buffer): void {
    if (this.#settledAt === undefined) this.#contain(() => this.#sink?.data(chunk))
  }

  end(): void {
    if (this.#settledAt === undefined) this.#contain(() => this.#sink?.end())
  }

  failed(): void {
    if (this.#settledAt === undefined) this.#contain(() => this.#unreadable())
  }

  // --- what a sink may do

  began(): void {
    this.#hasBegun = true
  }

  open(headers: readonly string[]): void {
    this.job.response.writeHead(200, requestIdHeaders(this.job.requestId).concat(headers))
  }

  write(bytes: Buffer): void {
    this.wroteAt = this.#deps.wheel.now
    if (this.job.response.write(bytes)) return
    this.#flow?.pause()
    if (this.#pausedAt !== undefined) return
    this.#pausedAt = this.wroteAt
    this.job.response.once('drain', () => this.#resume()) // never comes on a dead socket: `close` ends the attempt then
  }

  finish(bytes?: Buffer): void {
    this.credit()
    this.job.response.end(bytes)
    this.#settleWith({ kind: 'answered', error: undefined })
  }

  blame(): void {
    this.#deps.health.failed(this.target.health)
  }

  credit(): void {
    this.#deps.health.succeeded(this.target.health)
  }

  failedBy({ error, isRetryable, isBackendFault }: Failure): void {
    if (isBackendFault) this.blame()
    else this.credit()
    this.fail(error, isRetryable)
  }

  fail(error: GatewayError, isRetryable: boolean): void {
    if (this.#settledAt !== undefined) return
    const open = this.#open
    if (open) this.#settleWith({ kind: 'answered', error: open.broken(error) })
    else this.#settleWith({ kind: 'failure', error, isRetryable })
    this.#abort()
  }

  // --- what happens to the request from outside

  /** The client has left, or has everything. */
  clientClosed(): void {
    const hasAll = this.#settledAt !== undefined && this.job.response.writableFinished
    if (hasAll && !this.#isOver) return // the backend has a moment to end its answer, so that its connection can be used again
    this.#deps.wheel.delete(this)
    if (this.#settledAt === undefined) this.#settleWith({ kind: 'clientGone' })
    this.#abort()
  }

  /** The gateway must stop: a stream ends with its frame, anything else with row 24 or, half sent, with its connection. */
  interrupt(): void {
    const row: RowID = this.#open ? 'streamBroken' : 'notReady'
    this.#contain(() => this.fail(new GatewayError(row, { reason: 'the gateway is shutting down' }), false))
  }

  onTick(now: number): void {
    this.#contain(() => this.#look(now))
  }

  #look(now: number): void {
    if (this.#settledAt !== undefined) return this.#afterEnd(now, this.#settledAt)
    const ended = this.job.reasonToEnd?.()
    if (ended) this.fail(ended, false)
    else this.#lookAtTime(now)
  }

  #lookAtTime(now: number): void {
    const { first, idle, total } = this.job.model.record.to
    if (now - this.#startedAt > total) return this.#timedOut('total time')
    if (this.#pausedAt !== undefined) {
      if (now - this.#pausedAt > idle) return this.#dropClient()
    } else if (!this.#hasBegun) {
      if (now - this.#startedAt > first) return this.#timedOut('first byte')
    } else if (now - this.#heardAt > idle) return this.#timedOut('silence')
    this.#stream?.onTick(now)
  }

  /**
   * Runs what undici, the decoder and the wheel call. An exception in a relay ends this request and not the process: a backend may know an
   * answer that makes us throw.
   */
  #contain(act: () => void): void {
    try {
      act()
    } catch (cause) {
      this.#crashed(cause)
    }
  }

  #crashed(cause: unknown): void {
    const isTheirs = cause instanceof UnwritableAnswer
    const error = isTheirs
      ? new GatewayError('backendError', { reason: 'its answer cannot be read' }, { cause })
      : new GatewayError('internalError', {}, { cause })
    if (isTheirs) this.blame()
    try {
      if (this.#settledAt === undefined) return this.fail(error, false)
    } catch {
      // the relay throws while it ends the answer, too: nothing more can be said to the client
    }
    this.job.response.destroy()
    if (this.#settledAt === undefined) this.#settleWith({ kind: 'answered', error })
    this.#abort()
  }

  #sinkFor(head: AnswerHead): Sink {
    const type = String(head.headers['content-type'] ?? '').toLowerCase()
    const isStream = type.startsWith('text/event-stream')
    if (head.status === 200 && this.#stream && isStream) {
      this.#stream.answered(head)
      return this.#stream
    }
    if (head.status === 200 && !this.job.stream && type.includes('json')) return new PlainRelay(this, head)
    return new ErrorAnswer(this, head)
  }

  /** Where bytes have gone to the client already. */
  get #open(): Sink | undefined {
    if (this.#stream?.isOpen === true) return this.#stream
    return this.#sink?.isOpen === true ? this.#sink : undefined
  }

  get #flow(): Pick<Controller, 'pause' | 'resume'> | undefined {
    return this.#decoder ?? this.#controller
  }

  #resume(): void {
    this.#pausedAt = undefined
    this.#heardAt = this.#deps.wheel.now
    this.#flow?.resume()
  }

  #lost(cause: Error): void {
    this.blame()
    this.fail(new GatewayError('backendError', { reason: 'the connection to it was lost' }, { cause }), true)
  }

  #unreadable(): void {
    this.blame()
    this.fail(new GatewayError('backendError', { reason: 'its answer cannot be read' }, { cause: 'unreadable content-encoding' }), false)
  }

  #timedOut(what: string): void {
    this.blame()
    this.fail(new GatewayError('backendTimeout', {}, { cause: `time-out: ${what}` }), false)
  }

  #settleWith(result: AttemptResult): void {
    this.#settledAt = this.#deps.wheel.now
    if (result.kind === 'failure') this.#deps.wheel.delete(this)
    this.#settle(result)
  }

  /** The answer is written; what is left is a connection that does not end, or a client that does not read. */
  #afterEnd(now: number, settledAt: number): void {
    if (!this.#isOver && now - settledAt > AFTER_END_TICKS) this.#abort()
    if (now - settledAt > this.job.model.record.to.idle) this.#dropClient()
  }

  /** A client that takes nothing holds memory; nothing of ours may be written after this. */
  #dropClient(): void {
    this.job.response.destroy()
    this.clientClosed()
  }

  #abort(): void {
    this.#decoder?.destroy()
    if (!this.#isOver) this.#controller?.abort(ABORTED)
  }

  #over(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.target.health.inFlight--
    if (this.#settledAt !== undefined && this.job.response.closed) this.#deps.wheel.delete(this)
  }
}
