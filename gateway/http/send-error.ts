/** Writes all error answers, in both formats. The bytes of constant errors are built once. */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { constantError, sharedError, type ErrorFormat, type GatewayError } from '../errors.ts'
import { errorBody } from '../dialects/dialect.ts'
import { type Answer, Exchange, formatOfPath, newRequestId, commonHeaders } from './exchange.ts'

/** Placeholder of the request id in a prebuilt body. No id has this form. */
const ID_PLACE = 'req_here'

const NO_HOST = constantError('malformedRequest', { reason: 'HTTP/1.1 requires one Host header' })
const UNREADABLE_TARGET = constantError('malformedRequest', { reason: 'its target is neither a path nor a URL' })
const UNREADABLE = constantError('malformedRequest', { reason: 'its first line, a header or its body is not HTTP/1.1' })
const HTTP2 = constantError('malformedRequest', { reason: 'it is HTTP/2 without TLS, and this port speaks HTTP/1.1 alone' })

const PARSER_ERRORS: ReadonlyMap<string, GatewayError> = new Map([
  ['HPE_HEADER_OVERFLOW', sharedError('headersTooLarge')],
  ['ERR_HTTP_REQUEST_TIMEOUT', sharedError('bodyTimeout')],
  ['HPE_PAUSED_H2_UPGRADE', HTTP2],
])

/** The client has left, so no answer is possible. */
const CLIENT_LEFT: ReadonlySet<string> = new Set(['HPE_INVALID_EOF_STATE', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])

interface ParserError extends Error {
  readonly code?: string
  readonly rawPacket?: Buffer
}

/** Answers errors. There is one per server, because it counts the sockets that linger. */
export class ErrorSender {
  readonly #lingering: Lingering
  readonly #onUnread: (error: GatewayError) => void
  /** Bodies of constant errors before and after the request id. */
  readonly #prebuilt: Readonly<Record<ErrorFormat, WeakMap<GatewayError, readonly string[]>>> = {
    openai: new WeakMap(),
    anthropic: new WeakMap(),
  }

  /** @param onUnread called for each answer to bytes that never became a request. Such answers have no exchange that counts them */
  constructor(onUnread: (error: GatewayError) => void = () => undefined, lingering = new Lingering()) {
    this.#lingering = lingering
    this.#onUnread = onUnread
  }

  /** Destroys the connection if headers were sent, so that the client cannot take a truncated answer for a complete one. */
  send(exchange: Exchange, error: GatewayError): void {
    const { request, response, requestId, format } = exchange
    exchange.error = error
    if (response.writableEnded || response.destroyed) return
    if (response.headersSent) {
      response.destroy()
      return
    }
    const body = this.#body(format, error, requestId)
    response.writeHead(error.row.status[format], errorHeaders(error, body, exchange.ownHeaders()))
    if (!bodyPending(request)) response.end(body)
    // Node closes the connection after an `Expect: 100-continue` that was not answered with 100, because the body may or may not follow
    else if (error.row.close || request.headers.expect !== undefined) this.#answerThenClose(exchange, body)
    else this.#answerThenKeep(exchange, body)
  }

  /** Answers a request with an unreadable target or without Host. Such a request never becomes a counted exchange. */
  sendUnrouted(request: IncomingMessage, response: ServerResponse): void {
    const lacksHost = request.headers.host === undefined && request.httpVersion !== '1.0'
    const error = lacksHost ? NO_HOST : UNREADABLE_TARGET
    this.#onUnread(error)
    this.send(new Exchange(request, response, formatOfPath(request.url ?? '')), error)
  }

  /** Answers bytes that are not a request (`clientError` of the server), and requests that did not arrive in time. */
  sendToSocket(error: ParserError, socket: Duplex): void {
    if (socket.writableEnded) return // already answered; the parser also reports the bytes that arrive afterwards
    const exchange = exchangeOn(socket)
    const refusal = parserError(error.code)
    if (refusal && exchange && refusal.row.id === 'bodyTimeout') this.send(exchange, refusal)
    else if (refusal && socket.writable && !exchange?.response.headersSent) this.#answerRaw(refusal, error, exchange, socket)
    else socket.destroy()
  }

  #answerRaw(refusal: GatewayError, error: ParserError, exchange: Exchange | undefined, socket: Duplex): void {
    if (exchange) exchange.error = refusal
    else this.#onUnread(refusal)
    const path = error.rawPacket?.toString('latin1', 0, 64).split(' ')[1] ?? '' // a guess at the path, which decides the format
    socket.end(rawAnswer(refusal, exchange ?? unread(formatOfPath(path))))
    const timer = setTimeout(() => socket.destroy(), LINGER_LIMITS.lingerMs)
    socket.on('close', () => clearTimeout(timer))
  }

  #body(format: ErrorFormat, error: GatewayError, requestId: string): string {
    if (!error.isConstant) return errorBody(format, error, requestId)
    let parts = this.#prebuilt[format].get(error)
    if (!parts) {
      parts = errorBody(format, error, ID_PLACE).split(ID_PLACE)
      this.#prebuilt[format].set(error, parts)
    }
    return parts.join(requestId)
  }

  /** Ends the response when the client has sent its body: `response.end` closes the socket at once. */
  #answerThenClose(exchange: Exchange, body: string): void {
    const { response } = exchange
    const lingers = this.#lingering.discard(exchange, () => response.end())
    if (lingers) response.write(body)
    else response.end(body)
  }

  /** Keeps the connection if the rest of the body arrives soon. Most bodies arrive with the headers and need no timer. */
  #answerThenKeep(exchange: Exchange, body: string): void {
    exchange.response.end(body)
    setImmediate(() => {
      const { request } = exchange
      if (!request.complete && !request.socket.destroyed && !this.#lingering.discard(exchange)) request.socket.destroy()
    })
  }
}

/** @param headers of every answer; the others are appended */
function errorHeaders(error: GatewayError, body: string, headers: string[]): string[] {
  const { row, retryAfterMs, params } = error
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

type Answered = Pick<Exchange, 'format' | 'requestId' | 'ownHeaders'>

/** Bytes that never became a request get an id, too. */
function unread(format: ErrorFormat): Answered {
  const requestId = newRequestId()
  return { format, requestId, ownHeaders: () => commonHeaders(requestId) }
}

function rawAnswer(error: GatewayError, answered: Answered): string {
  const { format, requestId } = answered
  const status = error.row.status[format]
  const body = errorBody(format, error, requestId)
  const flat = errorHeaders(error, body, answered.ownHeaders())
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let i = 0; i < flat.length; i += 2) head += `${flat[i]}: ${flat[i + 1]}\r\n`
  return `${head}\r\n${body}`
}

function parserError(code: string | undefined): GatewayError | undefined {
  if (code === undefined || CLIENT_LEFT.has(code)) return undefined
  return PARSER_ERRORS.get(code) ?? UNREADABLE
}

/** Finds the exchange that a socket is busy with. Node has no public way from a `clientError` to it. */
function exchangeOn(socket: Duplex): Exchange | undefined {
  return (socket as Duplex & { _httpMessage?: Partial<Answer> })._httpMessage?.exchange
}

const LINGER_LIMITS = {
  /** Time for which their bytes are discarded before the socket is destroyed, ms. */
  lingerMs: 2_000,
  /** Further ones are destroyed at once. */
  maxSockets: 256,
}

/** Lets clients read a refusal while they upload: TCP resets a socket closed with unread bytes, and every SDK then retries. */
export class Lingering {
  readonly #limits: typeof LINGER_LIMITS
  #sockets = 0

  constructor(limits = LINGER_LIMITS) {
    this.#limits = limits
  }

  /** @param whenRead runs if the body ends in time @returns false when too many sockets linger; the socket is then unchanged */
  discard({ request }: Exchange, whenRead?: () => void): boolean {
    if (this.#sockets >= this.#limits.maxSockets) return false
    this.#sockets++
    const timer = setTimeout(() => request.socket.destroy(), this.#limits.lingerMs)
    const done = (): void => {
      clearTimeout(timer)
      this.#sockets--
      request.off('end', ended)
      request.socket.off('close', done)
    }
    const ended = (): void => {
      done()
      whenRead?.()
    }
    request.on('end', ended)
    request.socket.on('close', done) // the response closes as soon as the answer is sent, so its `close` is useless here
    request.resume()
    return true
  }
}
