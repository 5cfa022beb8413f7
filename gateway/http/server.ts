import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Answer } from './exchange.ts'
import type { ErrorSender } from './send-error.ts'

/** Time-outs of the server, ms. */
export const SERVER_SETTINGS = {
  /** Longer than that of load balancers: closing an idle connection first would reset requests on their way (nodejs/node#47130). */
  keepAliveTimeoutMs: 75_000,
  headersTimeoutMs: 10_000,
  /** For headers and body together. It does not end answers. */
  requestTimeoutMs: 60_000,
  /** For a socket without progress, except during a POST: model calls have their own time-outs, and a timer per call would cost 1 µs. */
  stalledTimeoutMs: 60_000,
  checkEveryMs: 1_000,
}

/** @param errors answers requests that Node's parser refuses, in the same JSON as all other errors */
export function createGatewayServer(app: RequestListener, errors: ErrorSender, settings: Partial<typeof SERVER_SETTINGS> = {}): Server {
  const { keepAliveTimeoutMs, headersTimeoutMs, requestTimeoutMs, stalledTimeoutMs, checkEveryMs } = { ...SERVER_SETTINGS, ...settings }
  const options = {
    ServerResponse: Answer,
    keepAliveTimeout: keepAliveTimeoutMs,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: checkEveryMs,
    requireHostHeader: false, // `isReadable` checks it: the answer of Node has no body
    noDelay: true, // Nagle's algorithm with delayed ACKs would delay each frame by 40 ms
  }
  const listener: RequestListener = (request, response) => {
    const underWay = takeAnswer(request, response)
    if (underWay === 0) return
    // not behind another answer: a timer would also end a silent model call. Node destroys the socket when there is no listener
    if (underWay === 1 && request.method !== 'POST') request.socket.setTimeout(stalledTimeoutMs)
    if (isReadable(request)) app(request, response)
    else errors.sendUnrouted(request, response)
  }
  const server = createServer(options, listener)
  server.on('checkContinue', listener) // the body reader sends 100 once nothing has refused the request
  server.on('checkExpectation', listener) // an unknown expectation is no reason to refuse
  server.on('clientError', (error, socket) => errors.sendToSocket(error, socket))
  return server
}

/** Whether a request has a target that Express can read, and the Host header that HTTP/1.1 requires (RFC 9112, sections 3.2 and 3.3). */
function isReadable({ url = '', headers, httpVersion }: IncomingMessage): boolean {
  if (headers.host === undefined && httpVersion !== '1.0') return false
  return url.startsWith('/') || (/^https?:\/\//i.test(url) && URL.canParse(url))
}

/** No SDK pipelines requests. A client with more answers in progress on a connection could fill the process without reading. */
const MAX_UNDER_WAY = 4
/** Return value of `onIncoming` for an upgraded connection: the parser stops, since the next bytes are not HTTP. */
const STOP_PARSING = 2

/** Answers in progress. A property costs less than a WeakMap, whose entries each young collection visits. */
const UNDER_WAY = Symbol('answers under way')

/** A connection with the property of this file and Node's undocumented field `parser`. */
interface Connection extends Socket {
  [UNDER_WAY]?: number
  parser?: { onIncoming?: (() => number) | null } | null
}

/** Counts an answer until it closes. @returns the answers in progress; 0 when the connection is closed, so that nothing is answered */
function takeAnswer(request: IncomingMessage, response: ServerResponse): number {
  const connection: Connection = request.socket
  if (connection.destroyed) return 0
  const underWay = (connection[UNDER_WAY] ?? 0) + 1
  if (underWay > MAX_UNDER_WAY) {
    cutOff(connection)
    return 0
  }
  connection[UNDER_WAY] = underWay
  response.on('close', answerClosed)
  return underWay
}

function answerClosed(this: ServerResponse): void {
  const connection: Connection = this.req.socket
  connection[UNDER_WAY] = (connection[UNDER_WAY] ?? 1) - 1
}

/** One chunk can hold more than a thousand requests, and Node would make objects of all of them for a client without a key. */
function cutOff(connection: Connection): void {
  connection.destroy()
  if (connection.parser) connection.parser.onIncoming = () => STOP_PARSING
}
