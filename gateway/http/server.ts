import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { takeAnswer } from './connection-answers.ts'
import { messageClasses } from './express-classes.ts'
import type { ErrorSender } from './send-error.ts'

/** Times of the listening side, ms. */
export interface ServerSettings {
  /** Longer than the idle time of load balancers: whoever closes first causes resets (nodejs/node#47130). */
  readonly keepAliveTimeoutMs: number
  readonly headersTimeoutMs: number
  /** Header and body together; it does not cut answers. */
  readonly requestTimeoutMs: number
  /** A socket without progress while a request is under way; running model calls have time-outs of their own. */
  readonly stalledTimeoutMs: number
  /** How often headers and requests are looked at. */
  readonly checkEveryMs: number
}

/** What production uses. */
export const SERVER_SETTINGS: ServerSettings = {
  keepAliveTimeoutMs: 75_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  stalledTimeoutMs: 60_000,
  checkEveryMs: 1_000,
}

/**
 * Makes the HTTP server of the gateway; it does not listen yet.
 * @param errors answers what Node's parser refuses, in the same JSON as all other errors
 */
export function createGatewayServer(app: RequestListener, errors: ErrorSender, settings: Partial<ServerSettings> = {}): Server {
  const { keepAliveTimeoutMs, headersTimeoutMs, requestTimeoutMs, stalledTimeoutMs, checkEveryMs } = { ...SERVER_SETTINGS, ...settings }
  const options = {
    ...messageClasses(app),
    keepAliveTimeout: keepAliveTimeoutMs,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: checkEveryMs,
    requireHostHeader: false, // `isReadable` asks for it: Node's own answer has no body
    noDelay: true, // Nagle and delayed ACK together cost 40 ms a frame
  }
  const listener: RequestListener = (request, response) => {
    if (!takeAnswer(request, response)) return
    if (isReadable(request)) app(request, response)
    else errors.sendUnrouted(request, response)
  }
  const server = createServer(options, listener).setTimeout(stalledTimeoutMs) // without a listener Node destroys the socket
  server.on('checkContinue', listener) // the body reader sends 100 when nothing speaks against the body
  server.on('checkExpectation', listener) // an expectation that we do not know is no reason to refuse
  server.on('clientError', (error, socket) => errors.sendToSocket(error, socket))
  return server
}

/** A target that Express can read, and the one Host that HTTP/1.1 asks for (RFC 9112, sections 3.2 and 3.3). */
function isReadable({ url = '', headers, httpVersion }: IncomingMessage): boolean {
  if (headers.host === undefined && httpVersion !== '1.0') return false
  return url.startsWith('/') || (/^https?:\/\//i.test(url) && URL.canParse(url))
}
