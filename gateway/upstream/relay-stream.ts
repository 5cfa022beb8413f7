import { type BackendEvents, endedChoices, type EventKind, type EventUsage } from '../dialects/backend-events.ts'
import type { ClientFraming } from '../dialects/dialect.ts'
import type { AnswerStream } from '../dialects/translation/translators.ts'
import { reportsWork, type Usage, UsageTally } from '../dialects/usage.ts'
import { type ErrorFormat, errorMessage, GatewayError, type RowID } from '../errors.ts'
import { parseSseEvent, splitEvents, SseSplitter } from '../dialects/sse.ts'
import { backendBroken, statusIn } from './backend-error.ts'
import { withoutCached } from '../dialects/cached-counts.ts'
import { hidesCached } from './prompt-cache.ts'
import { renamedEvent } from './rename-model.ts'
import type { AnswerHead, AnswerRelay, RelayPort } from './forward-job.ts'
import { asObject, type JsonObject, parseObject } from '../dialects/json-body.ts'
import { UnreadableAnswer } from '../dialects/unreadable-answer.ts'

const MAX_EVENT_BYTES = 1024 * 1024
/** Events without data in a row per second. More are not keep-alives but cause useless work. */
const MAX_EMPTY_EVENTS = 200
/** Comments before the first event are kept up to this size, bytes. */
const MAX_PREFACE_BYTES = 4096
/** Ticks that the usage of a translated answer has after its reason to stop: the next tick may come at once. */
const USAGE_TICKS = 2
const EVENT_END = Buffer.from('\n\n')
const FIXED_HEADERS = ['content-type', 'text/event-stream; charset=utf-8', 'cache-control', 'no-cache', 'x-accel-buffering', 'no']
/** Rows that the last frame shows as they are. Others become the reason of row 35. */
const FRAME_ROWS: ReadonlySet<RowID> = new Set(['inactiveKey', 'unknownKey', 'backendOverloaded', 'backendTimeout', 'streamBroken'])

/**
 * Relays a stream of events. It sends nothing until the first event or 15 s of silence: until then an error has its own status, and another
 * backend may be asked. It writes whole events as received, so that the gateway's own bytes are always between two events.
 */
export class StreamRelay implements AnswerRelay {
  isOpen = false
  readonly #host: RelayPort
  readonly #framing: ClientFraming
  readonly #events: BackendEvents
  readonly #hidesCached: boolean
  /** Of the answer of the backend; undefined until it comes. */
  #head: AnswerHead | undefined = undefined
  readonly #splitter = new SseSplitter()
  /** undefined for a call that is not metered. */
  readonly #tally: UsageTally | undefined
  /** Of a server that speaks another format than the client. */
  readonly #translation: AnswerStream | undefined
  #preface: Buffer[] = []
  #prefaceBytes = 0
  #hasEvent = false
  /** Ticks since the server has said why it stopped. */
  #finishedTicks = 0
  /** Number of events without data since the last one with data, or since the last tick. */
  #emptyEvents = 0
  #isRenamed = false
  #isStarted = false
  #isFinished = false
  /** Indexes of the choices that have ended. Empty unless the request asks for several choices. */
  readonly #ended = new Set<unknown>()
  /** Whether the end marker was sent; later bytes are dropped. */
  #isEnded = false
  #sentEvents = 0

  /** Creates the relay before the backend answers, so that a client is kept alive even while the head of the answer is missing. */
  constructor(host: RelayPort) {
    this.#host = host
    this.#framing = host.job.dialect.framing
    this.#events = host.translated?.translator.events ?? host.job.dialect.events
    this.#translation = host.translated?.translator.stream(host.translated.asked)
    this.#hidesCached = hidesCached(host)
    const isCounted = host.job.isMetered !== false || this.#translation !== undefined // a translated stream ends with its usage
    this.#tally = isCounted ? new UsageTally(this.#events.textKey) : undefined
  }

  answeredBy(head: AnswerHead): this {
    this.#head = head
    return this
  }

  data(chunk: Buffer): void {
    if (this.#isEnded) return
    const whole = this.#splitter.push(chunk)
    if (whole.length > 0) this.#relay(whole)
    if (this.#splitter.tailBytes > MAX_EVENT_BYTES) this.#fail('an event of its stream is too large', false)
  }

  end(): void {
    if (this.#isEnded) return
    const rest = this.#splitter.end()
    if (isWholeEvent(rest)) this.#relay(Buffer.concat([rest, EVENT_END]))
    if (this.#isEnded) return
    const { endMarker } = this.#framing
    if (this.#isFinished && this.#translation) this.#endTranslation(this.#translation)
    else if (this.#isFinished && endMarker) this.#finish(endMarker)
    else this.#fail('its stream ended early', true)
  }

  /** Sends the whole stream of an answer that came in one piece. */
  finishWith(bytes: Buffer): void {
    this.#finish(bytes)
  }

  usage(inputTokens: number): Usage | undefined {
    return this.#hasEvent && this.#host.job.isMetered !== false ? this.#tally?.settled(inputTokens) : undefined
  }

  broken(error: GatewayError): GatewayError {
    this.#isEnded = true
    const { response, requestId, format } = this.#host.job.exchange
    const shown = FRAME_ROWS.has(error.row.id)
      ? error
      : new GatewayError('streamBroken', { reason: reasonOf(error, format) }, { cause: error })
    response.end(this.#framing.errorFrame(shown, requestId, this.#sentEvents))
    return shown
  }

  /** @param isSilent whether the client needs a sign of life */
  onTick(isSilent: boolean): void {
    this.#emptyEvents = 0
    if (this.#translation?.isFinished === true && !this.#isEnded && ++this.#finishedTicks === USAGE_TICKS) {
      this.#endTranslation(this.#translation) // the usage may never come
    }
    if (isSilent && !this.#isEnded) this.#write(this.#framing.keepAlive(this.#isStarted))
  }

  /** @param whole events with their boundaries */
  #relay(whole: Buffer): void {
    const out: Buffer[] = []
    let isEdited = false
    for (const event of splitEvents(whole)) {
      const latin1 = event.toString('latin1')
      const kind = this.#events.kindOf(event, latin1)
      if (kind === 'error') return this.#errorEvent(event, out)
      if (kind === 'failed') return this.#failedEvent(event, out)
      if (this.#isFlood(kind)) return this.#fail('its stream holds nothing but empty events', false)
      const shown = this.#shown(kind, event, latin1)
      isEdited ||= shown !== event
      if (shown !== undefined) out.push(shown)
      if (this.#isLast(kind)) return this.#finish(Buffer.concat(out))
    }
    this.#pass(isEdited ? Buffer.concat(out) : whole)
  }

  /** @returns the bytes of an event for the client; undefined for none */
  #shown(kind: EventKind, event: Buffer, latin1: string): Buffer | undefined {
    const isRenamed = this.#note(kind, event)
    const isHidden = kind === 'drop' || this.#meter(event, latin1)
    if (this.#translation) return this.#translated(this.#translation, kind, event)
    if (isHidden) return undefined
    return this.#uncached(isRenamed ? renamedEvent(event, this.#host.job.askedName) : event)
  }

  /** @returns the events that one event of the server becomes; undefined for none */
  #translated(translation: AnswerStream, kind: EventKind, event: Buffer): Buffer | undefined {
    if (kind === 'comment' || kind === 'drop') return undefined
    const tokens = this.#tally?.outputTokens ?? 0
    const text = kind === 'end' ? translation.end(tokens) : translation.push(chunkIn(event), tokens)
    if (text === '') return undefined
    this.#isStarted = true
    return Buffer.from(text)
  }

  #uncached(event: Buffer): Buffer {
    return this.#hidesCached ? withoutCached(event) : event
  }

  #endTranslation(translation: AnswerStream): void {
    this.#finish(Buffer.from(translation.end(this.#tally?.outputTokens ?? 0)))
  }

  /** Whether nothing follows an event: the end marker, or the usage after the end of a translated answer. */
  #isLast(kind: EventKind): boolean {
    return kind === 'end' || this.#translation?.isEnded === true
  }

  /** @returns whether too many events in a row had no data */
  #isFlood(kind: EventKind): boolean {
    this.#emptyEvents = kind === 'comment' || kind === 'drop' ? this.#emptyEvents + 1 : 0
    return this.#emptyEvents > MAX_EMPTY_EVENTS
  }

  /** @returns whether the event contains only the usage that the gateway requested */
  #meter(event: Buffer, latin1: string): boolean {
    if (this.#tally === undefined) return false
    this.#tally.addEvent(latin1)
    return this.#report(event, latin1)?.isAlone === true && this.#host.addsUsage
  }

  /** Counts the usage that an event reports. */
  #report(event: Buffer, latin1?: string): EventUsage | undefined {
    const usage = this.#tally && this.#events.usageOf(event, latin1)
    if (usage) this.#tally?.addReport(usage.report)
    return usage
  }

  /** @returns whether an event of this kind may contain the name of the model */
  #note(kind: EventKind, event: Buffer): boolean {
    if (kind === 'comment' || kind === 'drop') return false
    if (!this.#hasEvent) {
      this.#hasEvent = true
      // a server may report another name than the configured one: the first event shows it
      this.#isRenamed = this.#host.isRenamed || renamedEvent(event, this.#host.job.askedName) !== event
      this.#host.began()
    }
    this.#sentEvents++
    if (kind === 'start') this.#isStarted = true
    if (kind === 'finish') this.#isFinished = this.#endsLast(event)
    return this.#isRenamed
  }

  /** Whether every answer of the request has ended with an event: a stream may break between the ends of two. */
  #endsLast(event: Buffer): boolean {
    const { choices = 1 } = this.#host.job
    if (choices <= 1 || this.#translation) return true // a translated request asks for one
    const ended = endedChoices(event)
    for (const index of ended ?? []) this.#ended.add(index)
    return ended === undefined || this.#ended.size >= choices
  }

  #pass(bytes: Buffer): void {
    if (bytes.length === 0) return
    if (this.isOpen || this.#hasEvent) return this.#write(bytes)
    this.#prefaceBytes += bytes.length
    if (this.#prefaceBytes <= MAX_PREFACE_BYTES) this.#preface.push(bytes)
  }

  #write(bytes: Buffer): void {
    this.#host.write(this.#opened(bytes))
  }

  #finish(bytes: Buffer): void {
    this.#isEnded = true
    this.#host.finish(this.#opened(bytes))
  }

  /** Sends the head if it was not sent. @returns the bytes that were held back, then `bytes` */
  #opened(bytes: Buffer): Buffer {
    if (this.isOpen) return bytes
    this.isOpen = true
    const processing = this.#head?.headers['openai-processing-ms']
    this.#host.open(typeof processing === 'string' ? [...FIXED_HEADERS, 'openai-processing-ms', processing] : FIXED_HEADERS)
    const preface = this.#preface
    this.#preface = []
    return preface.length === 0 ? bytes : Buffer.concat([...preface, bytes])
  }

  /** The last event of a response that failed: its usage counts, and the gateway's own frame has its words. @param before as of `#errorEvent` */
  #failedEvent(event: Buffer, before: readonly Buffer[]): void {
    this.#report(event)
    this.#pass(Buffer.concat(before))
    this.#hasEvent = true // the server has worked, even if this is the first event
    const body = asObject(parseObject(parseSseEvent(event).data ?? '')?.response)
    this.#host.refused({ status: statusIn(body), body })
  }

  /** @param before earlier events of the same chunk */
  #errorEvent(event: Buffer, before: readonly Buffer[]): void {
    this.#pass(Buffer.concat(before))
    if (reportsWork(this.#report(event)?.report)) this.#hasEvent = true
    const body = parseObject(parseSseEvent(event).data ?? '')
    this.#host.refused({ status: statusIn(body), body })
  }

  #fail(reason: string, isRetryable: boolean): void {
    this.#host.fail(backendBroken(reason, { isRetryable }))
  }
}

/** @throws UnreadableAnswer for an event that is no chunk: its text would be lost */
function chunkIn(event: Buffer): JsonObject {
  const chunk = parseObject(parseSseEvent(event).data ?? '')
  if (chunk === undefined) throw new UnreadableAnswer('an event of its stream is not a JSON object')
  return chunk
}

/** Whether the rest is an event without its last line end, which some servers omit. Half an event would crash the client's parser. */
function isWholeEvent(rest: Buffer): boolean {
  const { data } = parseSseEvent(rest)
  return data !== undefined && (data.trim() === '[DONE]' || parseObject(data) !== undefined)
}

function reasonOf({ row, params }: GatewayError, format: ErrorFormat): string | undefined {
  return row.id === 'backendError' && params.reason !== undefined ? params.reason : errorMessage(row, params, format)
}
