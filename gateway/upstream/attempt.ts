import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { BodyReader } from '../dialects/body-reader.ts'
import type { AnswerOrder, WholeAnswer } from '../dialects/whole-answer.ts'
import type { GatewayError } from '../errors.ts'
import { settledUsage, tokensOfBytes, type Usage, usageOfAll } from '../dialects/usage.ts'
import { NO_SLOT } from '#platform/intrusive-set.ts'
import type { LoopShare } from '#platform/loop-share.ts'
import { AnswerFlow } from './answer-flow.ts'
import type { State } from './attempt-state.ts'
import { AttemptTimes, type Overdue } from './attempt-times.ts'
import { backendCall } from './backend-call.ts'
import { backendBroken, backendFailure, notConnected, gatewayFailure, shuttingDown, thrownFailure, timedOut } from './backend-error.ts'
import type { BackendAnswer, Failure } from './backend-error.ts'
import type { BackendHealth } from './backend-health.ts'
import type { BodyStream } from './body-stream.ts'
import { BodyDecoder, canDecode, type Decoded } from './body-decoder.ts'
import { type AnswerRelay, type AttemptResult, type ForwardJob, type RelayPort, timeoutsOf } from './forward-job.ts'
import type { Target } from './model-table.ts'
import type { NameLookup } from './name-lookup.ts'
import { relayFor } from './relay-for.ts'
import { ErrorAnswer } from './relay-plain.ts'
import { StreamRelay } from './relay-stream.ts'
import { translatedAttempt, type TranslatedAttempt } from './translated-call.ts'
import type { Ticked, Ticker } from './ticker.ts'
import type { UpstreamPools } from './upstream-pools.ts'

export interface AttemptDeps {
  readonly pools: Pick<UpstreamPools, 'of'>
  readonly names: Pick<NameLookup, 'failure'>
  readonly ticker: Ticker
  readonly loop: LoopShare
  readonly health: BackendHealth
  readonly forwarded: ReadonlySet<string>
  readonly maxAnswerBytes: number
  readonly answers: Pick<BodyReader, 'answer'>
}

type Controller = Dispatcher.DispatchController
type AttemptRun = Readonly<{ startedAt: number; onResult: (result: AttemptResult) => void }>

/** Ticks that a connection has to end its answer after the result, so that it can be used again. */
const AFTER_END_TICKS = 2
const ABORTED = new Error('the gateway has given up this request')

/**
 * One request to one server, from the connection to the last byte. undici calls the `on…` methods, the ticker calls `onTick`, and a relay
 * calls the methods of `RelayPort`.
 */
export class Attempt implements Dispatcher.DispatchHandler, Ticked, RelayPort, Decoded {
  slot = NO_SLOT
  readonly job: ForwardJob
  readonly target: Target
  isRenamed = false
  addsUsage = false
  readonly translated: TranslatedAttempt | undefined
  readonly maxAnswerBytes: number
  readonly #deps: AttemptDeps
  readonly #onResult: (result: AttemptResult) => void
  readonly #stream: StreamRelay | undefined
  readonly #flow: AnswerFlow
  readonly #times: AttemptTimes
  /** The body on its way to the server, if it is large. */
  #sending: BodyStream | undefined = undefined
  #state: State = 'Connecting'
  #controller: Controller | undefined = undefined
  #relay: AnswerRelay | undefined = undefined
  #decoder: BodyDecoder | undefined = undefined
  /** Estimated tokens of the prompt, in case the backend does not report them. */
  #inputTokens = 0
  #wasRefused = false
  /** Tick of the result. */
  #settledAt = 0

  /**
   * @param startedAt tick at which the request arrived: a second attempt does not get the time again
   * @param onResult called once, when a failed attempt has been aborted: the next one may start then
   */
  constructor(job: ForwardJob, target: Target, { startedAt, onResult }: AttemptRun, deps: AttemptDeps) {
    this.job = job
    this.target = target
    this.#onResult = onResult
    this.#deps = deps
    this.maxAnswerBytes = deps.maxAnswerBytes
    this.#times = new AttemptTimes(startedAt, timeoutsOf(job))
    this.translated = translatedAttempt(job, target.backend)
    this.#stream = job.stream ? new StreamRelay(this) : undefined
    this.#flow = new AnswerFlow(deps.loop, job.stream, (chunk) => this.#contain(() => this.#relay?.data(chunk)))
  }

  /** Sends the request. The ticker measures time-outs, because the first byte means the first event, which undici does not know. */
  start(credential: string | undefined): void {
    const { job, target } = this
    const { pools, names, ticker, forwarded } = this.#deps
    if (job.body === undefined) throw new TypeError('a second attempt after the answer has begun')
    const unnamed = target.health.isUp ? undefined : names.failure(target.health.host)
    if (unnamed) return this.#notConnected(unnamed) // a socket that fails for the same reason costs a hundred times as much
    const { path, headers, body, stream, isRenamed, addsUsage } = backendCall(job, job.body, target, {
      forwarded,
      credential,
      translated: this.translated,
    })
    this.#sending = stream
    this.isRenamed = isRenamed
    this.addsUsage = addsUsage
    this.#inputTokens = job.inputTokens ?? tokensOfBytes(job.body.bytes.length)
    target.health.inFlight++
    ticker.add(this)
    pools.of(target.health).dispatch({ path, method: 'POST', headers, body, headersTimeout: 0, bodyTimeout: 0 }, this)
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
    this.#flow.source = controller
    if (this.#isSettled) return controller.abort(ABORTED) // the attempt has ended while connecting
    this.#state = 'Waiting'
    this.#times.sentAt = this.#deps.ticker.now
  }

  onResponseStart(controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || this.#isSettled) return
    this.#times.heardAt = this.#deps.ticker.now
    this.#contain(() => this.#answered(controller, status, headers))
  }

  onResponseData(_: Controller, chunk: Buffer): void {
    this.#times.heardAt = this.#deps.ticker.now
    if (this.#isSettled) return
    if (this.#decoder) this.#decoder.write(chunk)
    else this.data(chunk)
  }

  onResponseEnd(): void {
    this.#backendEnded()
    if (this.#isSettled) return
    if (this.#decoder) this.#decoder.end()
    else this.end()
  }

  onResponseError(_: Controller, cause: Error & { code?: string }): void {
    const wasConnected = this.#state !== 'Connecting'
    this.#backendEnded()
    this.#flow.flush()
    if (this.#isSettled) return
    if (wasConnected) this.fail(backendBroken('the connection to it was lost', { isRetryable: true, cause }))
    else this.#notConnected(cause)
  }

  // --- events of the decoder

  data(chunk: Buffer): void {
    if (!this.#isSettled) this.#flow.take(chunk)
  }

  end(): void {
    this.#flow.flush()
    if (!this.#isSettled) this.#contain(() => this.#relay?.end())
  }

  failed(): void {
    this.#flow.flush()
    if (!this.#isSettled) this.#contain(() => this.#unreadable())
  }

  began(): void {
    if (this.#state === 'Waiting') this.#state = 'Answering'
  }

  open(headers: readonly string[]): void {
    const { exchange, answerHeaders = [] } = this.job
    this.dropBody() // no second attempt is possible any more
    exchange.response.writeHead(200, exchange.ownHeaders().concat(headers, answerHeaders, this.translated?.headers ?? []))
  }

  write(bytes: Buffer): void {
    const { response } = this.job.exchange
    const { now } = this.#deps.ticker
    this.#times.wroteAt = now
    if (response.write(bytes) || this.#times.pausedAt !== undefined) return
    this.#flow.hold('Client')
    this.#times.pausedAt = now
    response.once('drain', () => this.#resume()) // a dead socket never drains; `close` then ends the attempt
  }

  writeAnswer(bytes: Buffer, order: AnswerOrder, done: (answer: WholeAnswer | GatewayError) => void): void {
    const { dialect, exchange, tenant = '' } = this.job
    const writing = this.#deps.answers.answer(bytes, dialect, exchange.response, { ...order, owner: { tenant, key: '' } })
    if (!(writing instanceof Promise)) return done(writing)
    const written = (answer: WholeAnswer | GatewayError | undefined): void => {
      if (answer !== undefined && !this.#isSettled) this.#contain(() => done(answer))
    }
    void writing.then(written)
  }

  finish(last?: Buffer | string): void {
    this.#deps.health.succeeded(this.target.health)
    this.job.exchange.response.end(last, 'latin1')
    this.#settle()
    this.#onResult({ kind: 'answered', error: undefined, usage: this.#usage })
  }

  /** Counts for or against the server, ends an answer that has begun, and stops the backend's work. No other method does. */
  fail({ error, isRetryable, isBackendFailure }: Failure): void {
    if (this.#isSettled) return
    const { health } = this.#deps
    if (isBackendFailure === true) health.failed(this.target.health)
    else if (isBackendFailure === false) health.succeeded(this.target.health)
    const [open, usage] = [this.#open, this.#spent]
    if (open) this.#giveUp({ kind: 'answered', error: open.broken(error), usage })
    else this.#giveUp({ kind: 'failed', error, isRetryable: isRetryable && this.job.body !== undefined, usage })
  }

  refused(answer: BackendAnswer): void {
    const { backend, health } = this.target
    const names = { askedName: this.job.askedName, upstreamModel: backend.upstreamModel, backend: backend.name, host: health.host }
    this.#wasRefused = true
    this.fail(backendFailure(answer, names))
  }

  // --- events from outside the exchange

  clientClosed(): void {
    const hasAll = this.#isSettled && this.job.exchange.response.writableFinished
    if (hasAll && this.#state === 'Settled') return // the backend has some ticks to end its answer
    this.#deps.ticker.delete(this)
    if (this.#isSettled) this.#abort()
    else this.#giveUp({ kind: 'clientGone', usage: this.#spent })
  }

  /** Ends the attempt because the gateway stops: a stream with its frame, another answer with row 24 or by cutting its connection. */
  interrupt(): void {
    this.#contain(() => this.fail(gatewayFailure(shuttingDown(this.#open ? 'streamBroken' : 'notReady'))))
  }

  onTick(now: number): void {
    this.#contain(() => this.#ticked(now))
  }

  #ticked(now: number): void {
    if (this.#isSettled) return this.#afterEnd(now)
    if (this.#flow.onTick()) this.#times.heardAt = now
    const ended = this.job.reasonToEnd?.()
    if (ended) return this.fail(gatewayFailure(ended))
    if (this.#sending?.isSent === true && this.#times.isUnanswered(now)) this.dropBody()
    this.#checkTime(now)
  }

  #checkTime(now: number): void {
    const overdue = this.#times.overdue(now, this.#state)
    if (overdue === 'client') this.#dropClient()
    else if (overdue !== undefined) this.#timedOut(overdue)
    else this.#stream?.onTick(this.#times.isSilent(now))
  }

  /** Runs a callback of undici, the decoder or the ticker. An exception in a relay ends this request and not the process. */
  #contain(act: () => void): void {
    try {
      act()
    } catch (cause) {
      this.#crashed(cause)
    }
  }

  #crashed(cause: unknown): void {
    const failure = thrownFailure(cause)
    try {
      if (!this.#isSettled) return this.fail(failure)
    } catch {
      // the relay also throws at the end of the answer: nothing more can be sent to the client
    }
    this.job.exchange.response.destroy()
    if (this.#isSettled) this.#abort()
    else this.#giveUp({ kind: 'answered', error: failure.error, usage: this.#spent })
  }

  #answered(controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    const encoding = String(headers['content-encoding'] ?? 'identity').toLowerCase()
    const isDecoded = encoding !== 'identity'
    if (isDecoded && !canDecode(encoding)) return this.#unreadable()
    if (isDecoded) this.#flow.source = this.#decoder = new BodyDecoder(encoding, controller, this)
    this.#relay = relayFor(this, { status, headers, isDecoded }, this.#stream)
    if (this.#relay === undefined) this.fail(backendBroken('its answer is a stream, and the request has not asked for one'))
  }

  get #isSettled(): boolean {
    return this.#state === 'Settled' || this.#state === 'Over'
  }

  get #hasBackendEnded(): boolean {
    return this.#state === 'Decoding' || this.#state === 'Over'
  }

  get #open(): AnswerRelay | undefined {
    if (this.#stream?.isOpen === true) return this.#stream
    return this.#relay?.isOpen === true ? this.#relay : undefined
  }

  get #usage(): Usage | undefined {
    const usage = (this.#relay ?? this.#stream)?.usage(this.#inputTokens)
    if (usage === undefined || this.translated || !this.target.backend.reportsOneAnswer) return usage // a translated request asks for one
    return usageOfAll(usage, this.job, this.#inputTokens)
  }

  /**
   * The work of the server on an answer that has no end: as reported or relayed, else as such calls usually cost. undefined if the server
   * has refused the request, or has lost the connection so soon that it cannot have worked.
   */
  get #spent(): Usage | undefined {
    const usage = this.#usage
    if (usage !== undefined || !this.#mayHaveWorked || this.job.isMetered === false) return usage
    const estimate = { inputTokens: this.#inputTokens, outputTokens: this.job.outputTokens ?? 0 }
    return settledUsage(undefined, this.job.dialect.hasOutput ? estimate : { inputTokens: estimate.inputTokens })
  }

  get #mayHaveWorked(): boolean {
    const { sentAt } = this.#times
    if (sentAt === undefined || this.#wasRefused || this.#relay instanceof ErrorAnswer) return false
    return !this.#hasBackendEnded || this.#deps.ticker.now > sentAt
  }

  dropBody(): void {
    this.job.body = undefined
    this.job.translations = undefined
    this.#sending = undefined
    this.job.exchange.bodyHold?.empty()
  }

  #resume(): void {
    this.#times.pausedAt = undefined
    this.#times.heardAt = this.#deps.ticker.now
    this.#flow.release('Client')
  }

  #notConnected(cause: NodeJS.ErrnoException): void {
    const failure = notConnected(cause, this.job.askedName)
    if (failure.isRetryable) this.#deps.health.connectFailed(this.target.health)
    this.fail(failure)
  }

  #unreadable(): void {
    this.fail(backendBroken('its answer cannot be read', { cause: 'unreadable content-encoding' }))
  }

  #timedOut(what: Exclude<Overdue, 'client'>): void {
    const isBackendFailure = this.job.dialect.timeouts || this.#hasBackendEnded ? undefined : true // an ended answer waits for the gateway
    this.fail(timedOut(what, isBackendFailure))
  }

  /** Stops the work of the server before the result is known, because the result may start another attempt. */
  #giveUp(result: AttemptResult): void {
    this.#settle()
    if (result.kind === 'failed') this.#deps.ticker.delete(this)
    this.#abort()
    this.#onResult(result)
  }

  #settle(): void {
    this.#state = this.#hasBackendEnded ? 'Over' : 'Settled'
    this.#settledAt = this.#deps.ticker.now
    this.#flow.close()
  }

  #backendEnded(): void {
    if (this.#hasBackendEnded) return
    this.#state = this.#isSettled ? 'Over' : 'Decoding'
    this.target.health.inFlight--
    if (this.#isSettled && this.job.exchange.response.closed) this.#deps.ticker.delete(this)
  }

  /** Handles an attempt after its result: the connection does not end, or the client does not read. */
  #afterEnd(now: number): void {
    const forTicks = now - this.#settledAt
    if (this.#state === 'Settled' && forTicks > AFTER_END_TICKS) this.#abort()
    if (forTicks > this.job.model.record.timeouts.idleSeconds) this.#dropClient()
  }

  /** Disconnects a client that does not read, because its answer holds memory. Nothing may be written afterwards. */
  #dropClient(): void {
    this.job.exchange.response.destroy()
    this.clientClosed()
  }

  #abort(): void {
    this.#decoder?.destroy()
    if (!this.#hasBackendEnded) this.#controller?.abort(ABORTED)
  }
}
