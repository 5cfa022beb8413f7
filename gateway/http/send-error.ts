/**
 * The sole writer of error answers, in both formats. Bytes of refusals that need no values are built once.
 */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { constantError, isConstant, sharedError, type ErrorFormat, type GatewayError } from '../errors.ts'
import { errorBody } from '../dialects/error-body.ts'
import { Exchange, formatOfPath, type ExchangeLocals } from './exchange.ts'
import { Lingering, LINGER_LIMITS } from './lingering.ts'
import { newRequestId, requestIdHeaders } from './request-id.ts'

/** Splits a prebuilt body where the request id goes; no id has this form. */
const ID_PLACE = 'req_here'

const NO_HOST = constantError('malformedRequest', { reason: 'HTTP/1.1 requires one Host header' })
const UNREADABLE_TARGET = constantError('malformedRequest', { reason: 'its target is neither a path nor a URL' })
const UNREADABLE = constantError('malformedRequest', { reason: 'its first line, a header or its body is not HTTP/1.1' })
const HTTP2 = constantError('malformedRequest', { reason: 'it is HTTP/2 without TLS, and this port speaks HTTP/1.1 alone' })

/** By code of Node's parser. */
const PARSER_ERRORS: ReadonlyMap<string, GatewayError> = new Map([
  ['HPE_HEADER_OVERFLOW', sharedError('headersTooLarge')],
  ['ERR_HTTP_REQUEST_TIMEOUT', sharedError('bodyTimeout')],
  ['HPE_PAUSED_H2_UPGRADE', HTTP2],
])

/** The client has left: there is nobody to answer. */
const GONE: ReadonlySet<string> = new Set(['HPE_INVALID_EOF_STATE', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])

/** What Node's parser reports. */
export interface ParserError extends Error {
  readonly code?: string
  /** Bytes that it could not read. */
  readonly rawPacket?: Buffer
}

/** Bytes that are no request, and where they came from. */
interface Unread {
  readonly refusal: GatewayError
  readonly error: ParserError
  /** Of the request whose body they broke, if any. */
  readonly exchange: Exchange | undefined
  readonly socket: Duplex
}

/** What an ErrorSender may be given. */
export interface ErrorSenderOptions {
  readonly lingering?: Lingering
  /** Told of each answer to bytes that never became a request; such answers have no exchange to be counted by. */
  readonly onUnread?: (error: GatewayError) => void
}

/** Answers errors. One per server, since it counts the sockets that linger. */
export class ErrorSender {
  readonly #lingering: Lingering
  readonly #onUnread: ((error: GatewayError) => void) | undefined
  /** Bodies of constant errors before and after the request id. */
  readonly #prebuilt: Readonly<Record<ErrorFormat, WeakMap<GatewayError, readonly string[]>>> = {
    openai: new WeakMap(),
    anthropic: new WeakMap(),
  }

  constructor({ lingering = new Lingering(), onUnread }: ErrorSenderOptions = {}) {
    this.#lingering = lingering
    this.#onUnread = onUnread
  }

  /**
   * Answers with an error and notes it on the exchange. If the answer has begun already there is nothing left to say in HTTP: the
   * connection is cut, so that the client does not take a truncated answer for a whole one.
   */
  send(exchange: Exchange, error: GatewayError): void {
    const { request, response, requestId, format } = exchange
    exchange.error = error
    if (response.writableEnded || response.destroyed) return
    if (response.headersSent) {
      response.destroy()
      return
    }
    const body = this.#body(format, error, requestId)
    const status = error.row.status[format]
    response.writeHead(status, errorHeaders(error, body, requestId))
    if (!bodyPending(request)) response.end(body)
    else if (closesConnection(error, request)) this.#answerThenClose(exchange, body)
    else this.#answerThenKeep(exchange, body)
  }

  /** Answers a request whose target or Host cannot be read; it never becomes an exchange. */
  sendUnrouted(request: IncomingMessage, response: ServerResponse): void {
    const lacksHost = request.headers.host === undefined && request.httpVersion !== '1.0'
    const error = lacksHost ? NO_HOST : UNREADABLE_TARGET
    this.#onUnread?.(error)
    this.send(new Exchange(request, response, formatOfPath(request.url ?? '')), error)
  }

  /**
   * Answers what could not be read as a request at all (`clientError` of the server), or not in time.
   * @param error of Node's parser; its code tells the row
   */
  sendToSocket(error: ParserError, socket: Duplex): void {
    if (socket.writableEnded) return // answered already; the parser goes on complaining about what still arrives
    const exchange = exchangeOn(socket)
    const refusal = parserError(error.code)
    if (refusal && exchange && refusal.row.id === 'bodyTimeout') this.send(exchange, refusal)
    else if (refusal && socket.writable && !exchange?.response.headersSent) this.#answerRaw({ refusal, error, exchange, socket })
    else socket.destroy()
  }

  #answerRaw({ refusal, error, exchange, socket }: Unread): void {
    if (exchange) exchange.error = refusal
    else this.#onUnread?.(refusal)
    const path = error.rawPacket?.toString('latin1', 0, 64).split(' ')[1] ?? '' // good enough to guess who asks
    socket.end(rawAnswer(refusal, exchange?.format ?? formatOfPath(path), exchange?.requestId ?? newRequestId()))
    const timer = setTimeout(() => socket.destroy(), LINGER_LIMITS.lingerMs)
    socket.on('close', () => clearTimeout(timer))
  }

  #body(format: ErrorFormat, error: GatewayError, requestId: string): string {
    if (!isConstant(error)) return errorBody(format, error, requestId)
    let parts = this.#prebuilt[format].get(error)
    if (!parts) {
      parts = errorBody(format, error, ID_PLACE).split(ID_PLACE)
      this.#prebuilt[format].set(error, parts)
    }
    return parts.join(requestId)
  }

  /** `response.end` would close the socket at once, so it waits until the client has sent what it is sending. */
  #answerThenClose(exchange: Exchange, body: string): void {
    const { response } = exchange
    const lingers = this.#lingering.discard(exchange, () => response.end())
    if (lingers) response.write(body)
    else response.end(body)
  }

  /** The connection stays usable if the rest of the body comes soon; most bodies came with the headers and need no timer. */
  #answerThenKeep(exchange: Exchange, body: string): void {
    exchange.response.end(body)
    setImmediate(() => {
      const { request } = exchange
      if (!request.complete && !request.socket.destroyed && !this.#lingering.discard(exchange)) request.socket.destroy()
    })
  }
}

function errorHeaders(error: GatewayError, body: string, requestId: string): string[] {
  const { row, retryAfterMs, params } = error
  const headers = requestIdHeaders(requestId)
  headers.push('content-type', 'application/json', 'content-length', String(Buffer.byteLength(body)))
  if (row.noRetry) headers.push('x-should-retry', 'false')
  if (row.challenge) headers.push('www-authenticate', 'Bearer')
  if (row.close) headers.push('connection', 'close')
  if (row.id === 'wrongMethod' && params.allow !== undefined) headers.push('allow', params.allow)
  if (retryAfterMs !== undefined)
    headers.push('retry-after', String(Math.ceil(retryAfterMs / 1_000)), 'retry-after-ms', String(retryAfterMs))
  headers.push(...error.headers)
  return headers
}

function bodyPending(request: IncomingMessage): boolean {
  if (request.complete) return false
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  return encoding !== undefined || (length !== undefined && length !== '0')
}

/** Node closes by itself after an `Expect: 100-continue` that was not answered with 100: nobody knows whether the body will come. */
function closesConnection(error: GatewayError, request: IncomingMessage): boolean {
  return error.row.close || request.headers.expect !== undefined
}

/** Answer to bytes that never became a request, for a socket without a `ServerResponse`. */
function rawAnswer(error: GatewayError, format: ErrorFormat, requestId: string): string {
  const status = error.row.status[format]
  const body = errorBody(format, error, requestId)
  const flat = errorHeaders(error, body, requestId)
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let i = 0; i < flat.length; i += 2) head += `${flat[i]}: ${flat[i + 1]}\r\n`
  return `${head}\r\n${body}`
}

/** @returns undefined when the client left in the middle: there is nobody to answer */
function parserError(code: string | undefined): GatewayError | undefined {
  if (code === undefined || GONE.has(code)) return undefined
  return PARSER_ERRORS.get(code) ?? UNREADABLE
}

/** Node keeps the answer under way on its socket; there is no public way from a `clientError` to it. */
function exchangeOn(socket: Duplex): Exchange | undefined {
  const { _httpMessage: response } = socket as Duplex & { _httpMessage?: ServerResponse & { locals?: Partial<ExchangeLocals> } }
  return response?.locals?.exchange
}
